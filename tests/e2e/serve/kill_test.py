# SPDX-License-Identifier: Apache-2.0
"""kill -9 while prefixes are written to disk, then a restart on the same
folder: every answer is, letter for letter, that of a server that knows no such
folder."""

import http.client
import os
import random
import signal
import tempfile
import threading
import time
import unittest

from belay_server import Server

STEM = ("Error 507034 is told when a stream was destroyed before its tasks had "
        "ended. Tell me what to look at first, and what next. ") * 16
OPTIONS = ("--no-canary", "--max-batch", "4", "--max-context", "2048")


def bodies():
    """Prompts that share beginnings, some of several pages."""
    for n in (1, 2, 4, 8):
        for end in ("one", "two"):
            yield {"messages": [{"role": "user",
                                 "content": STEM[:len(STEM) * n // 8] + end}],
                   "temperature": 0, "max_tokens": 12, "ignore_eos": True}


def ask(server, body):
    answer = server.post("/v1/chat/completions", body)
    return (answer["choices"][0]["message"]["content"],
            answer["usage"]["prompt_tokens_details"]["cached_tokens"])


class KillTest(unittest.TestCase):
    def test_a_killed_server_leaves_nothing_wrong(self):
        server = Server(*OPTIONS, "--prefix-cache-mib", "0")
        cold = [ask(server, body) for body in bodies()]
        self.assertEqual(server.stop(), 0)
        self.assertEqual({n for _, n in cold}, {0})
        cold = [text for text, _ in cold]

        random.seed(5)
        n_cached = n_halves = 0
        with tempfile.TemporaryDirectory() as folder:
            for round_ in range(6):
                server = Server(*OPTIONS, "--spill-dir", folder)
                # The rest of what was being written is gone.
                self.assertEqual(self.halves(folder), [])
                self.kill_during_writes(server, folder, round_)
                n_halves += len(self.halves(folder))

                server = Server(*OPTIONS, "--spill-dir", folder)
                for body, text in zip(bodies(), cold):
                    got, n = ask(server, body)
                    self.assertEqual(got, text, f"round {round_}")
                    n_cached += n
                server.process.kill()
                server.wait()
                if round_ % 2:  # some rounds begin with an empty folder
                    for name in os.listdir(folder):
                        os.unlink(os.path.join(folder, name))
        self.assertGreater(n_cached, 0, "nothing was reused")
        print(f"{n_halves} of 6 kills met a half-written file")

    @staticmethod
    def halves(folder):
        return [name for name in os.listdir(folder) if ".tmp-" in name]

    def kill_during_writes(self, server, folder, round_):
        def load():
            try:
                for body in bodies():
                    ask(server, body)
            except (OSError, AssertionError, http.client.HTTPException):
                pass  # it was killed

        client = threading.Thread(target=load)
        client.start()
        end = time.monotonic() + 30
        wait_for_half = round_ % 3 != 2
        delay = random.uniform(0.02, 0.5)
        if not wait_for_half:
            time.sleep(delay)
        while wait_for_half and client.is_alive() and time.monotonic() < end:
            if self.halves(folder):
                break
        server.process.send_signal(signal.SIGKILL)
        self.assertEqual(server.wait(), -signal.SIGKILL)
        client.join(60)
        self.assertFalse(client.is_alive())


if __name__ == "__main__":
    unittest.main(verbosity=1)
