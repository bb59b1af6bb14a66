#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loads a server for minutes as bad luck would, and counts everything.

    tests/e2e/soak/soak.py [--seconds 600] [--belay PATH] [--model FOLDER]
                           [--workers 8] [--seed 1]

Random requests (streamed and whole, with shared beginnings), clients that die
in the middle, and bytes that are no request. Fails when an answer is lost,
doubled or differs from the same request made alone, when a malformed request is
answered with anything but an error, when the server keeps a request that has
ended, or when its memory grows by more than 1 % between the first and the last
quarter behind the warm-up.
"""
import argparse
import http.client
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading
import time

WORDS = ("rope", "anchor", "cliff", "what", "is", "error", "the", "507034",
         "memory", "cache", "how", "does", "a", "stream", "end", "why")


class Server:
    def __init__(self, args):
        self.process = subprocess.Popen(
            [args.belay, "serve", "--model", args.model, "--port", "0",
             "--max-batch", "6", "--max-context", "1024", "--max-queue", "64",
             "--cache-tokens", "2560"] + args.serve,
            stderr=subprocess.PIPE, text=True, env={**os.environ, "LC_ALL": "C.UTF-8"})
        self.log = []
        self.port = None
        ready = threading.Event()

        def read():
            for line in self.process.stderr:
                self.log.append(line.rstrip())
                match = re.search(r"http://127\.0\.0\.1:(\d+)", line)
                if match:
                    self.port = int(match[1])
                if line.strip() == "ready":
                    ready.set()
            ready.set()

        threading.Thread(target=read, daemon=True).start()
        if not ready.wait(300) or self.process.poll() is not None:
            sys.exit("soak: the server did not start:\n" + "\n".join(self.log))

    def rss_kib(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return int(re.search(r"VmRSS:\s+(\d+)", status.read())[1])

    def metrics(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
        connection.close()
        return {m[1]: float(m[2]) for m in
                re.finditer(r"^(\w+(?:\{[^}]*\})?) (\S+)$", text, re.M)}

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


class Tally:
    def __init__(self):
        self.lock = threading.Lock()
        self.counts = {}
        self.faults = []
        self.ids = set()

    def count(self, name):
        with self.lock:
            self.counts[name] = self.counts.get(name, 0) + 1

    def fault(self, text):
        with self.lock:
            self.faults.append(text)

    def new_id(self, answer_id):
        with self.lock:
            if answer_id in self.ids:
                self.faults.append(f"an answer came twice: {answer_id}")
            self.ids.add(answer_id)


def make_bodies(rng, n):
    """Requests whose prompts share beginnings, so that prefixes are met."""
    stems = [" ".join(rng.choice(WORDS) for _ in range(length))
             for length in (3, 40, 150, 300)]
    bodies = []
    for _ in range(n):
        text = rng.choice(stems) + " " + " ".join(
            rng.choice(WORDS) for _ in range(rng.randrange(1, 6)))
        body = {"messages": [{"role": "user", "content": text}],
                "max_tokens": rng.choice((1, 4, 16, 48))}
        if rng.random() < 0.3:
            body |= {"temperature": 0.8, "seed": rng.randrange(1000)}
        else:
            body["temperature"] = 0
        if rng.random() < 0.2:
            body["response_format"] = {"type": "json_object"}
        bodies.append(body)
    return bodies


def ask(port, body, stream):
    """(id, text, finish); raises on anything odd."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
    try:
        connection.request("POST", "/v1/chat/completions",
                           json.dumps(body | {"stream": stream}),
                           {"Content-Type": "application/json"})
        response = connection.getresponse()
        data = response.read().decode()
    finally:
        connection.close()
    if response.status == 429:
        return None
    if response.status != 200:
        raise ValueError(f"HTTP {response.status}: {data[:200]}")
    if not stream:
        answer = json.loads(data)
        choice = answer["choices"][0]
        return answer["id"], choice["message"]["content"] or "", choice["finish_reason"]
    events = [line[6:] for line in data.split("\n") if line.startswith("data: ")]
    if not events or events[-1] != "[DONE]" or events.count("[DONE]") != 1:
        raise ValueError(f"a stream without one end: {data[-200:]}")
    text, finishes, ids = "", [], set()
    for event in map(json.loads, events[:-1]):
        ids.add(event["id"])
        for choice in event["choices"]:
            text += choice["delta"].get("content") or ""
            if choice.get("finish_reason"):
                finishes.append(choice["finish_reason"])
    if len(finishes) != 1 or len(ids) != 1:
        raise ValueError(f"a stream with {len(finishes)} ends and {len(ids)} ids")
    return ids.pop(), text, finishes[0]


def die_early(port, body, rng):
    """Sends a request and leaves: at once, or after some of the answer."""
    data = json.dumps(body | {"stream": True, "max_tokens": 200}).encode()
    with socket.create_connection(("127.0.0.1", port), timeout=60) as sock:
        head = (b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: "
                b"application/json\r\nContent-Length: %d\r\n\r\n" % len(data))
        whole = head + data
        sent = rng.choice((len(whole), len(whole), len(head), rng.randrange(len(whole))))
        sock.sendall(whole[:sent])
        if sent == len(whole) and rng.random() < 0.7:
            sock.recv(rng.choice((1, 300, 2000)))
        if rng.random() < 0.5:  # RST instead of FIN
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")


MALFORMED = (
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: -5\r\n\r\n",
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999\r\n\r\n",
    b"GET /health HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 40000 + b"\r\n\r\n",
    b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
)
BAD_BODIES = (b"", b"{", b"[]", b"null", b"\xff\xfe", b'{"messages": 3}',
              b'{"messages": []}', b'{"messages": [{"role": "wizard", "content": "x"}]}',
              b'{"messages": [{"role": "user", "content": "x"}], "max_tokens": -1}',
              b'{"messages": [{"role": "user", "content": "x"}], "temperature": "hot"}',
              b'{"messages": [{"role": "user", "content": "x"}], "response_format": '
              b'{"type": "json_schema", "json_schema": {"schema": {"not": {}}}}}',
              b"[" * 5000, b'{"messages":' + b"[" * 1000)


def malformed(port, rng):
    """Bytes that are no request; the status of the answer, or 0 for none."""
    if rng.random() < 0.5:
        data = rng.choice(MALFORMED)
    else:
        body = rng.choice(BAD_BODIES)
        data = (b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                b"Content-Length: %d\r\n\r\n" % len(body)) + body
    with socket.create_connection(("127.0.0.1", port), timeout=60) as sock:
        try:
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
            answer = sock.recv(100)
        except OSError:
            return 0  # closed in our face: fair
    match = re.match(rb"HTTP/1\.[01] (\d+)", answer)
    return int(match[1]) if match else 0


def work(server, bodies, answers, tally, rng, until):
    while time.monotonic() < until:
        index = rng.randrange(len(bodies))
        dice = rng.random()
        try:
            if dice < 0.15:
                die_early(server.port, bodies[index], rng)
                tally.count("clients that died")
            elif dice < 0.25:
                status = malformed(server.port, rng)
                tally.count("malformed requests")
                # 501 and 505 say what the matter is; other 5xx are our own fault.
                if 200 <= status < 400 or (status >= 500 and status not in (501, 505)):
                    tally.fault(f"a malformed request was answered with {status}")
            else:
                answer = ask(server.port, bodies[index], rng.random() < 0.6)
                if answer is None:
                    tally.count("refused with 429")
                    continue
                tally.count("answers")
                tally.new_id(answer[0])
                if answer[1:] != answers[index]:
                    tally.fault(f"wrong text for request {index}: {answer[1:]!r}, "
                                f"alone it is {answers[index]!r}")
        except (OSError, http.client.HTTPException, ValueError, KeyError) as error:
            if dice < 0.15 and isinstance(error, OSError):
                continue  # the dying client's own trouble
            tally.fault(f"request {index}: {type(error).__name__}: {error}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--belay", default="build/release/bin/belay")
    parser.add_argument("--model", default="data/demo")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("serve", nargs="*", help="further options of belay serve, behind --")
    args = parser.parse_args()

    rng = random.Random(args.seed)
    server = Server(args)
    bodies = make_bodies(rng, 40)
    answers = [ask(server.port, body, stream=False)[1:] for body in bodies]
    print(f"soak: {len(bodies)} requests answered alone; {args.seconds:.0f} s of load",
          flush=True)

    tally = Tally()
    begin = time.monotonic()
    until = begin + args.seconds
    threads = [threading.Thread(target=work, daemon=True, args=(
        server, bodies, answers, tally, random.Random(args.seed * 1000 + i), until))
        for i in range(args.workers)]
    for thread in threads:
        thread.start()
    memory = []  # (seconds, KiB)
    while any(thread.is_alive() for thread in threads):
        time.sleep(1)
        if server.process.poll() is not None:
            sys.exit("soak: the server died:\n" + "\n".join(server.log[-20:]))
        memory.append((time.monotonic() - begin, server.rss_kib()))
        if len(memory) % 30 == 0:
            print(f"soak: {memory[-1][0]:.0f} s, {memory[-1][1]} KiB, {tally.counts}, "
                  f"{len(tally.faults)} faults", flush=True)
    for thread in threads:
        thread.join()

    # Whoever left must be forgotten soon.
    for _ in range(100):
        metrics = server.metrics()
        left = (metrics["belay_requests_running"], metrics["belay_requests_waiting"],
                metrics["belay_requests_live"])
        if not any(left):
            break
        time.sleep(0.1)
    else:
        tally.fault(f"requests that have no client are still there: {left}")
    # And the server still says what it said.
    for index in range(5):
        if ask(server.port, bodies[index], stream=False)[1:] != answers[index]:
            tally.fault(f"request {index} is answered differently after the load")

    # Caches fill in the first quarter; what follows must be flat.
    def mean(first, last):
        part = [kib for s, kib in memory if first <= s / args.seconds < last]
        return sum(part) / max(1, len(part))

    early, late = mean(0.25, 0.5), mean(0.75, 2)
    growth = late / early - 1 if early else 0
    if growth > 0.01:
        tally.fault(f"memory grew by {100 * growth:.2f} %: {early:.0f} -> {late:.0f} KiB")
    code = server.stop()
    if code != 0:
        tally.fault(f"the server ended with {code}: " + "\n".join(server.log[-5:]))

    print(f"soak: {tally.counts}; memory {early:.0f} -> {late:.0f} KiB "
          f"({100 * growth:+.2f} %)")
    for fault in tally.faults[:20]:
        print(f"soak: FAULT {fault}")
    if not tally.counts.get("answers"):
        tally.faults.append("no answer at all")
    print(f"soak: {'FAILED, ' + str(len(tally.faults)) + ' faults' if tally.faults else 'passed'}")
    return 1 if tally.faults else 0


if __name__ == "__main__":
    sys.exit(main())
