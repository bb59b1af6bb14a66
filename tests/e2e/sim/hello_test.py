#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`belay doctor --hello`: one operator through ACL on the device.

    hello_test.py BELAY
"""

import json
import os
import re
import subprocess
import sys
import unittest

BELAY = ""
STEPS = ["load", "symbols", "init", "count", "set device", "ready", "context",
         "stream", "malloc", "malloc host", "copy in", "operator", "wait",
         "copy back", "numbers", "free", "teardown"]


def run(*command, **env):
    """Exit code, stdout, stderr, without a CANN of the machine's own."""
    clean = {k: v for k, v in os.environ.items()
             if not k.startswith("ASCEND_") and k != "LD_LIBRARY_PATH"}
    done = subprocess.run([BELAY, *command], capture_output=True, text=True,
                          check=False, timeout=60, env={**clean, **env})
    return done.returncode, done.stdout, done.stderr


def hello(*sim, args=(), **env):
    return run("sim", "run", *sim, "--", BELAY, "doctor", "--hello", *args,
               **env)


class Hello(unittest.TestCase):
    def test_runs_on_each_generation(self):
        for profile in ("Ascend910B3", "Ascend910_9391", "Ascend950PR_9589",
                        "Ascend950DT_9582"):
            code, out, err = hello("--profile", profile, "--strict-exit",
                                   args=["--json"])
            self.assertEqual((code, err), (0, ""), profile)
            report = json.loads(out)
            self.assertTrue(report["ok"])
            self.assertEqual(report["soc"], profile)
            self.assertEqual([s["name"] for s in report["steps"]], STEPS)
            self.assertEqual(report["missing"], [])
            self.assertTrue(all(s["ms"] >= 0 for s in report["steps"]))

    def test_text_names_each_step_and_the_chip(self):
        code, out, _ = hello()
        self.assertEqual(code, 0)
        for step in STEPS:
            self.assertRegex(out, rf"(?m)^  {step} +\d+\.\d+ ms  ok$")
        self.assertIn("Ascend910B3: aclnnAdd ran", out)

    def test_no_cann_is_one_line(self):
        code, out, err = run("doctor", "--hello")
        self.assertEqual(code, 1)
        self.assertEqual(err, "")
        self.assertRegex(out, r"\ACANN-001: no CANN on this machine[^\n]*\n\Z")
        code, out, _ = run("doctor", "--hello", "--json")
        self.assertEqual(json.loads(out)["error"]["id"], "CANN-001")

    def failure(self, fault, *args):
        code, out, _ = hello(*fault, args=[*args, "--json"])
        self.assertEqual(code, 1, out)
        report = json.loads(out)
        self.assertFalse(report["ok"])
        failed = [s["name"] for s in report["steps"] if not s["ok"]]
        self.assertEqual(failed, [report["steps"][-1]["name"]])
        self.assertTrue(report["error"]["fix"])
        return failed[0], report["error"]["id"], report["error"]["message"]

    def test_each_failure_has_its_step_and_id(self):
        for fault, step, found, words in (
                ("at 1st Add return 507035", "wait", "CANN-006", "507035"),
                ("at 1st Add ignore", "numbers", "CANN-010", "aclnnAdd"),
                ("always Add missing", "operator", "CANN-007", "561003"),
                ("at 1st malloc return 207001", "malloc", "CANN-004",
                 "are free"),
                ("at 1st copy return 507015", "wait", "CANN-006", "507015"),
                ("at 1st wait return 507046", "ready", "CANN-009", "507046"),
                ("at 1st Add lose device", "wait", "CANN-006", "507010")):
            got = self.failure(["--fault", fault])
            self.assertEqual(got[:2], (step, found), fault)
            self.assertIn(words, got[2], fault)

    def test_a_hung_stream_is_named_in_time(self):
        step, found, message = self.failure(
            ["--fault", "at 1st Add hang"], "--timeout", "1")
        self.assertEqual((step, found), ("wait", "CANN-005"))
        self.assertRegex(message, r"device 0, stream \d+")

    def test_a_wrong_device_is_named(self):
        step, found, message = self.failure(["--devices", "2"],
                                            "--device", "2")
        self.assertEqual((step, found), ("count", "CANN-008"))
        self.assertIn("device 2", message)

    def test_no_device_at_all(self):
        found = self.failure(["--devices", "0"])
        self.assertIn(found[1], ("CANN-008", "CANN-003", "CANN-012"))

    def test_is_immune_to_quirks_and_large_workspaces(self):
        code, out, _ = hello("--quirk", "all", "--workspace", "4096")
        self.assertEqual(code, 0, out)

    def test_in_chinese(self):
        code, out, _ = hello(args=["--lang", "zh"])
        self.assertEqual(code, 0)
        self.assertTrue(re.search("数值正确", out), out)


if __name__ == "__main__":
    BELAY = sys.argv.pop(1)
    unittest.main()
