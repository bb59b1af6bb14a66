# SPDX-License-Identifier: Apache-2.0
"""What clients do to a server, and what it does about it."""

import json
import os
import random
import selectors
import shutil
import signal
import socket
import tempfile
import time
import unittest

from belay_server import ROOT, Server

CHAT = "/v1/chat/completions"
LONG = {"messages": [{"role": "user", "content": "Hello!"}],
        "ignore_eos": True, "max_tokens": 3000, "temperature": 0}


def raw_request(path, body):
    data = json.dumps(body).encode()
    return (f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: "
            f"{len(data)}\r\n\r\n").encode() + data


class ClientsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server("--max-batch", "8", "--max-context", "4096",
                            "--body-timeout", "0.5")

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0

    def tearDown(self):
        self.server.wait_metric("belay_requests_live", 0)

    def test_lost_clients_free_their_slots(self):
        gone = self.server.metrics()["belay_clients_gone_total"]
        for stream in (True, False):
            with self.server.open_socket() as client:
                client.sendall(raw_request(CHAT, {**LONG, "stream": stream}))
                self.server.wait_metric("belay_requests_running", 1)
            self.server.wait_metric("belay_requests_live", 0)
        self.assertEqual(self.server.metrics()["belay_clients_gone_total"],
                         gone + 2)

    def test_two_hundred_streams_and_a_thousand_idle(self):
        n_threads = self.server.n_threads()
        idle = [self.server.open_socket() for _ in range(1000)]
        selector = selectors.DefaultSelector()
        answers = {}
        body = {"messages": [{"role": "user", "content": "Hello!"}],
                "temperature": 0, "stream": True, "max_tokens": 12}
        for _ in range(200):
            client = self.server.open_socket()
            client.sendall(raw_request(CHAT, body))
            client.setblocking(False)
            selector.register(client, selectors.EVENT_READ)
            answers[client] = b""
        self.assertEqual(self.server.n_threads(), n_threads)
        waiting = set(answers)
        end = time.monotonic() + 60
        while waiting and time.monotonic() < end:
            for key, _ in selector.select(1):
                client = key.fileobj
                answers[client] += client.recv(65536)
                if b"[DONE]" in answers[client]:
                    selector.unregister(client)
                    waiting.discard(client)
        self.assertEqual(len(waiting), 0)
        texts = {text.split(b"\r\n\r\n", 1)[0].split(b"\r\n")[0] + b"|" +
                 b"".join(json.loads(line[6:])["choices"][0]["delta"]
                          .get("content", "").encode()
                          for line in text.split(b"\n")
                          if line.startswith(b"data: {"))
                 for text in answers.values()}
        self.assertEqual(len(texts), 1)
        self.assertTrue(texts.pop().startswith(b"HTTP/1.1 200 OK|Hello! I am"))
        for client in (*answers, *idle[:500]):
            client.close()
        # The others are still served.
        idle[-1].sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertIn(b"200 OK", idle[-1].recv(4096))
        for client in idle[500:]:
            client.close()

    def test_slow_bodies_are_cut_off(self):
        with self.server.open_socket() as client:
            client.sendall(b"POST /infer HTTP/1.1\r\nHost: x\r\n"
                           b"Content-Length: 1000\r\n\r\n{")
            answer = b""
            while True:
                part = client.recv(4096)
                answer += part
                if not part:
                    break
        self.assertTrue(answer.startswith(b"HTTP/1.1 408 "), answer)
        self.assertIn(b"HTTP-013", answer)

    def test_readers_that_stop_reading_are_cut_off(self):
        with self.server.open_socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.sendall(raw_request(CHAT, {
                **LONG, "stream": True, "n": 8, "logprobs": True,
                "top_logprobs": 20}))
            self.server.wait_metric("belay_requests_running", 8)
            # Reading nothing: the server must end this by itself, and long
            # before all of the 24,000 tokens are there.
            self.server.wait_metric("belay_requests_live", 0)

    def test_no_request_stops_the_engine(self):
        random.seed(7)
        good = json.dumps({"messages": [{"role": "user", "content": "hi"}],
                           "max_tokens": 1, "stop": ["a"], "n": 1,
                           "logit_bias": {"5": 1}, "tools": [],
                           "response_format": {"type": "text"}}).encode()
        for _ in range(300):
            body = bytearray(good)
            for _ in range(random.randint(1, 4)):
                at = random.randrange(len(body))
                kind = random.randrange(3)
                if kind == 0:
                    body[at] = random.randrange(256)
                elif kind == 1:
                    del body[at:at + random.randint(1, 8)]
                else:
                    body[at:at] = random.choice(
                        [b"{", b"]", b'"', b"null", b"1e999", b"-1", b"\xff"])
            path = random.choice([CHAT, "/v1/completions", "/infer",
                                  "/v1/tokenize", "/v1/detokenize"])
            status, _, text = self.server.request("POST", path, bytes(body))
            self.assertIn(status, (200, 400, 404), text)
            json.loads(text)
        self.assertEqual(self.server.chat("Hello!", max_tokens=1)
                         ["usage"]["completion_tokens"], 1)


class LifeTest(unittest.TestCase):
    def test_the_port_is_open_while_the_model_loads(self):
        server = Server(wait=False)
        try:
            status, _, body = server.request("GET", "/health")
            self.assertEqual(status, 200)
            status, _, body = server.request("GET", "/ready")
            self.assertIn(json.loads(body)["stage"],
                          ("loading", "canary", "ready"))
            status, headers, body = server.request("POST", CHAT, LONG | {
                "max_tokens": 1})
            if status != 200:
                self.assertEqual(status, 503)
                self.assertIn("Retry-After", headers)
                self.assertEqual(json.loads(body)["error"]["code"], "API-010")
            server.wait_ready()
        finally:
            self.assertEqual(server.stop(), 0)

    def test_a_full_queue_says_when_to_come_again(self):
        server = Server("--max-batch", "1", "--max-queue", "1", "--no-canary")
        try:
            clients = []
            for n in (1, 2):
                client = server.open_socket()
                client.sendall(raw_request(CHAT, {**LONG, "stream": True}))
                clients.append(client)
                server.wait_metric("belay_requests_live", n)
            status, headers, body = server.request("POST", CHAT, LONG)
            self.assertEqual(status, 429)
            self.assertGreaterEqual(int(headers["Retry-After"]), 1)
            error = json.loads(body)["error"]
            self.assertEqual((error["code"], error["type"]),
                             ("ENG-006", "rate_limit_error"))
            self.assertEqual(
                server.metrics()['belay_errors_total{id="ENG-006"}'], 1)
            for client in clients:
                client.close()
            server.wait_metric("belay_requests_live", 0)
            server.chat("Hello!", max_tokens=1)
        finally:
            self.assertEqual(server.stop(), 0)

    def test_the_first_signal_drains_and_the_second_stops(self):
        server = Server("--no-canary", "--max-context", "4096")
        client = server.open_socket()
        client.sendall(raw_request(CHAT, {**LONG, "stream": True,
                                          "max_tokens": 150}))
        self.assertIn(b"200 OK", client.recv(64))
        server.process.send_signal(signal.SIGTERM)
        answer = b""
        while part := client.recv(65536):
            answer += part
        self.assertIn(b"[DONE]", answer)
        self.assertIn(b'"finish_reason":"length"', answer)
        client.close()
        with self.assertRaises(OSError):
            server.open_socket()
        self.assertEqual(server.wait(), 0)

        server = Server("--no-canary", "--max-context", "4096")
        client = server.open_socket()
        client.sendall(raw_request(CHAT, {**LONG, "stream": True}))
        self.assertIn(b"200 OK", client.recv(64))
        server.process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        self.assertIsNone(server.process.poll())
        self.assertEqual(server.stop(), -signal.SIGTERM)
        client.close()

    def test_keys(self):
        key = "0123456789abcdef-test"
        with tempfile.NamedTemporaryFile("w", suffix=".keys") as f:
            f.write(f"# a comment\n{key}\n")
            f.flush()
            server = Server("--api-key-file", f.name, "--no-canary",
                            "--cors-origin", "http://page.example")
        try:
            for header in ({}, {"Authorization": "Bearer nonsense"},
                           {"Authorization": "Bearer " + key[:-1]},
                           {"Authorization": "Bearer " + key + "x"},
                           {"Authorization": "Basic " + key}):
                status, headers, body = server.request("GET", "/v1/models",
                                                       headers=header)
                self.assertEqual(status, 401, header)
                self.assertEqual(headers["WWW-Authenticate"], "Bearer")
                self.assertEqual(json.loads(body)["error"]["code"], "API-005")
            self.assertEqual(server.request("GET", "/metrics")[0], 401)
            self.assertEqual(server.request("GET", "/ready")[0], 200)
            header = {"Authorization": "Bearer " + key,
                      "Origin": "http://page.example"}
            status, headers, _ = server.request("GET", "/v1/models",
                                                headers=header)
            self.assertEqual(status, 200)
            self.assertEqual(headers["Access-Control-Allow-Origin"],
                             "http://page.example")
            status, headers, _ = server.request(
                "OPTIONS", CHAT, headers={"Origin": "http://page.example"})
            self.assertEqual(status, 204)
            self.assertIn("POST", headers["Access-Control-Allow-Methods"])
        finally:
            self.assertEqual(server.stop(), 0)

    def test_faults_at_start_are_told(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(os.path.join(ROOT, "data/demo/tokenizer.json"), folder)
            for options, model, code, exit_code in (
                    ((), folder, "CKPT-014", 3),
                    (("--api-key-file", "/dev/null"), "data/demo", "SRV-002",
                     3),
                    (("--host", "192.0.2.1"), "data/demo", "HTTP-001", 3),
                    (("--max-batch", "0"), "data/demo", "ARG-001", 2)):
                try:
                    server = Server(*options, model=model, wait=False)
                    self.assertEqual(server.wait(), exit_code)
                    text = "\n".join(server.lines)
                except AssertionError as error:
                    text = str(error)
                self.assertIn(code, text)


if __name__ == "__main__":
    unittest.main(verbosity=1)
