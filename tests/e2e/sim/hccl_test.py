#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Collectives of cannsim: the symbols of libhccl.so, and what a failed
collective leaves in logs and reports.

    hccl_test.py BELAY CLIENT TOOLKIT
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BELAY = ""
CLIENT = ""
TOOLKIT = ""
ROOT = pathlib.Path(__file__).resolve().parents[3]


def run(*args, **env):
    done = subprocess.run(args, capture_output=True, text=True, check=False,
                          timeout=60, env={**os.environ, **env})
    return done.returncode, done.stdout, done.stderr


class Symbols(unittest.TestCase):
    def test_all_of_the_manifest(self):
        code, out, err = run("nm", "-D", "--defined-only",
                             f"{TOOLKIT}/lib64/libhccl.so")
        self.assertEqual(code, 0, err)
        there = {line.split()[2] for line in out.splitlines()
                 if line.split()[1] == "T"}
        manifest = json.loads((ROOT / "data/abi/hccl.json").read_text())
        # Also those whose arguments are not known (declared: false).
        wanted = {entry["name"] for entry in manifest["functions"]}
        self.assertGreater(len(wanted), 35)
        self.assertEqual(wanted, there)


class Ranks(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.log = f"{folder.name}/log"
        self.report = f"{folder.name}/report-%p.json"
        self.folder = pathlib.Path(folder.name)

    def client(self, *args, options=()):
        return run(BELAY, "sim", "run", "--log", self.log, "--report",
                   self.report, "--devices", "4", *options, "--", CLIENT,
                   *args, HCCL_EXEC_TIMEOUT="200", CANNSIM_HCCL_SECOND="0.002")

    def codes(self):
        """What `belay logs` finds, and the ids of its causes."""
        _, out, err = run(BELAY, "logs", "--json", self.log)
        self.assertEqual(err, "")
        return out

    def reports(self):
        return [json.loads(path.read_text())
                for path in sorted(self.folder.glob("report-*.json"))]

    def test_good(self):
        code, out, err = self.client()
        self.assertEqual((code, err), (0, ""), out)
        runs = [task["runs"] for report in self.reports()
                for task in report["tasks"] if task["name"] == "HcclAllReduce"]
        self.assertEqual(runs, [3, 3, 3, 3])
        self.assertFalse(list(self.folder.rglob("debug/plog/*.log")))

    def test_never_calls(self):
        code, out, _ = self.client("never-calls")
        self.assertEqual(code, 1)
        self.assertIn("\nEI0002: ", out)
        self.assertIn("remote rank: [2]", out)
        self.assertIn("ESTR-043", self.codes())

    def test_killed(self):
        code, out, _ = self.client("killed")
        self.assertEqual(code, 1)
        self.assertIn("of rank 2 has ended", out)
        self.assertIn("rank 2 of 4 ended with -9", out)
        self.assertIn("ESTR-043", self.codes())

    def test_never_connects(self):
        code, out, _ = self.client("never-connects")
        self.assertEqual(code, 1)
        self.assertIn("EI0006: ", out)
        self.assertIn("ESTR-046", self.codes())

    def test_other_count(self):
        code, out, err = self.client("other-count", options=("--strict",))
        self.assertEqual(code, 1)
        self.assertEqual(out.count("\nEI0005: "), 4)
        self.assertIn("rank 2 calls HcclAllReduce (count 3, fp32, sum)", out)
        self.assertIn("SIM-019", err)
        found = self.codes()
        self.assertIn("EI0005", found)
        self.assertIn("ESTR-044", found)

    def test_leak(self):
        code, out, err = self.client("leak", options=("--strict-exit",))
        self.assertEqual(code, 1, out)
        self.assertIn("SIM-012 the communicator cannsim_", err)
        self.assertIn("cannsim_hccl_client", err)  # the place

    def test_fault(self):
        code, out, err = self.client(
            options=("--fault", "at 2nd AllReduce on device 1 return 507035"))
        self.assertEqual(code, 1, out)
        self.assertIn("SIM-030", err)
        self.assertIn("507035", out)


if __name__ == "__main__":
    TOOLKIT = os.path.abspath(sys.argv.pop(3))
    CLIENT = os.path.abspath(sys.argv.pop(2))
    BELAY = os.path.abspath(sys.argv.pop(1))
    unittest.main()
