# SPDX-License-Identifier: Apache-2.0
"""Starts `belay serve` and talks to it with nothing but the standard library."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__)))))
PROGRAM = sys.argv.pop(1) if len(sys.argv) > 1 else os.path.join(
    ROOT, "build", "release", "bin", "belay")


class Server:
    """One process; the kernel chooses the port."""

    def __init__(self, *options, model="data/demo", wait=True):
        self.lines = []
        self.listening = threading.Event()
        self.port = None
        environment = dict(os.environ, LC_ALL="C.UTF-8")
        self.process = subprocess.Popen(
            [PROGRAM, "serve", "--model", model, "--port", "0", *options],
            cwd=ROOT, env=environment, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True)
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()
        if not self.listening.wait(60) or self.port is None:
            self.process.kill()
            self.wait()
            raise AssertionError("no server: " + "\n".join(self.lines))
        if wait:
            self.wait_ready()

    def _read(self):
        for line in self.process.stderr:
            self.lines.append(line.rstrip("\n"))
            match = re.search(r"http://[^ ]*:(\d+)", line)
            if match and self.port is None:
                self.port = int(match.group(1))
                self.listening.set()
        self.listening.set()

    def wait_ready(self):
        for _ in range(1200):
            status, _, body = self.request("GET", "/ready")
            if status == 200:
                return
            if json.loads(body)["stage"] == "failed":
                break
            time.sleep(0.05)
        raise AssertionError("not ready: " + "\n".join(self.lines))

    def request(self, method, path, body=None, headers=None, timeout=60):
        """(status, headers, body) on a connection of its own."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port,
                                                timeout=timeout)
        try:
            if body is not None and not isinstance(body, (bytes, str)):
                body = json.dumps(body)
            if isinstance(body, str):
                body = body.encode("utf-8", "surrogatepass")
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def post(self, path, body, headers=None, expect=200):
        status, _, text = self.request("POST", path, body, headers)
        if status != expect:
            raise AssertionError(f"{path}: {status}, not {expect}: {text}")
        return json.loads(text)

    def chat(self, content, expect=200, **fields):
        messages = content if isinstance(content, list) else [
            {"role": "user", "content": content}]
        fields.setdefault("temperature", 0)
        return self.post("/v1/chat/completions",
                         {"messages": messages, **fields}, expect=expect)

    def events(self, path, body, headers=None):
        """The data of each event of a stream, as it comes."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port,
                                                timeout=60)
        try:
            connection.request("POST", path, json.dumps({**body,
                                                         "stream": True}),
                               headers or {})
            answer = connection.getresponse()
            if answer.status != 200:
                raise AssertionError(f"{answer.status}: {answer.read()}")
            for line in answer:
                line = line.decode().rstrip("\r\n")
                if line.startswith("data: "):
                    yield line[6:]
        finally:
            connection.close()

    def metrics(self):
        _, _, body = self.request("GET", "/metrics")
        values = {}
        for line in body.decode().splitlines():
            if not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                values[name] = float(value)
        return values

    def wait_metric(self, name, value):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            if self.metrics().get(name) == value:
                return
            time.sleep(0.02)
        raise AssertionError(f"{name} is {self.metrics().get(name)}, "
                             f"not {value}")

    def n_threads(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as f:
            return int(re.search(r"Threads:\s+(\d+)", f.read()).group(1))

    def open_socket(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=60)

    def stop(self):
        """Ends the process; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.wait()

    def wait(self):
        """Waits for an end that was asked for already."""
        try:
            code = self.process.wait(120)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise
        self.reader.join(10)
        self.process.stderr.close()
        return code


def joined(events, field="content"):
    """The text of a chat stream's deltas."""
    text = ""
    for event in events:
        if event != "[DONE]":
            for choice in json.loads(event)["choices"]:
                text += choice["delta"].get(field) or ""
    return text
