#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Faults of cannsim as their victims find them: in the logs that it wrote, in
the report, in the catalogue.

    faults_test.py BELAY CLIENT
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

BELAY = ""
CLIENT = ""
ROOT = pathlib.Path(__file__).resolve().parents[3]
LINE = re.compile(
    r"^\[(ERROR|WARNING|INFO|DEBUG)\] [A-Z]+\(\d+,[^)]*\):"
    r"\d{4}-\d\d-\d\d-\d\d:\d\d:\d\d\.\d{3}\.\d{3} \[[\w.]+:\d+\]\d+ \S.*$")


def run(*args, **env):
    done = subprocess.run(args, capture_output=True, text=True, check=False,
                          env={**os.environ, **env})
    return done.returncode, done.stdout, done.stderr


def client(log, *options, args=(), **env):
    return run(BELAY, "sim", "run", "--log", log, *options, "--", CLIENT, *args,
               **env)


def diagnosis(log):
    code, out, err = run(BELAY, "logs", "--json", log)
    assert code in (0, 1), err
    return json.loads(out)


def lines_of(log):
    return [line for path in sorted(pathlib.Path(log).rglob("*.log"))
            for line in path.read_text().splitlines()]


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.log = folder.name


class Logs(InFolder):
    """`belay logs` names the cause from what cannsim logged."""

    def first_cause(self, *options, args=()):
        code, _, err = client(self.log, *options, args=args)
        self.assertEqual(code, 1, err)
        return diagnosis(self.log)["first_cause"]

    def check(self, expected, code, *options, args=()):
        with tempfile.TemporaryDirectory() as self.log:
            cause = self.first_cause(*options, args=args)
            self.assertIsNotNone(cause, options)
            self.assertEqual(cause["id"], expected, (options, cause))
            said = {c for f in diagnosis(self.log)["findings"]
                    for c in f["codes"]}
            self.assertIn(code, said, options)
            for line in lines_of(self.log):
                self.assertRegex(line, LINE)

    def test_codes_of_tasks(self):
        for code, expected in (
                ("507014", "RT-039"), ("507034", "RT-046"),
                ("507035", "RT-047"), ("507015", "RT-040"),
                ("507018", "RT-041"), ("507053", "RT-050"),
                ("507054", "EVENT-001")):
            self.check(expected, code, "--fault",
                       f"at 2nd Add on device 0 return {code}")

    def test_other_faults(self):
        self.check("RT-035", "507010", "--fault", "at 1st Add lose device")
        self.check("RT-022", "207001", "--fault",
                   "at byte 40 on device 0 return 207001")
        self.check("RT-049", "507046", "--fault", "at 1st Add hang",
                   args=["short"])
        self.check("ACLNN-006", "561003", "--fault", "always Add missing")

    def test_the_operator_is_named(self):
        cause = self.first_cause("--fault", "at 2nd Add return 507035")
        self.assertEqual(cause["operator"], "aclnnAdd")
        self.assertEqual(cause["device"], 0)

    def test_what_no_log_tells(self):
        """A slow card and an operator that did nothing report success."""
        for fault in ("always operator slow 9", "at 1st Add ignore"):
            with tempfile.TemporaryDirectory() as log:
                client(log, "--fault", fault)
                self.assertIsNone(diagnosis(log)["first_cause"], fault)

    def test_healthy(self):
        code, _, err = client(self.log)
        self.assertEqual((code, err), (0, ""))
        self.assertEqual(run(BELAY, "logs", self.log)[0], 0)
        self.assertFalse((pathlib.Path(self.log) / "debug").exists())
        names = [p.name for p in pathlib.Path(self.log).glob("run/plog/*")]
        self.assertEqual(len(names), 1)
        self.assertRegex(names[0], r"^plog-\d+_\d{17}\.log$")


class Variables(InFolder):
    """CANN's own variables of logging."""

    FAULT = ("--fault", "at 1st Add return 507035")

    def test_levels(self):
        client(self.log, *self.FAULT, ASCEND_GLOBAL_LOG_LEVEL="4")
        self.assertFalse((pathlib.Path(self.log) / "debug").exists())
        client(self.log, ASCEND_GLOBAL_LOG_LEVEL="0")
        self.assertTrue(any("[DEBUG] ASCENDCL(" in line and "aclrtMalloc" in
                            line for line in lines_of(self.log)))

    def test_modules(self):
        client(self.log, *self.FAULT, ASCEND_GLOBAL_LOG_LEVEL="4",
               ASCEND_MODULE_LOG_LEVEL="TS=4:RUNTIME=3")
        text = "\n".join(lines_of(self.log))
        self.assertIn("[ERROR] RUNTIME(", text)
        self.assertNotIn("ASCENDCL(", text.replace("[INFO] ASCENDCL(", ""))

    def test_stdout(self):
        _, out, _ = client(self.log, *self.FAULT,
                           ASCEND_SLOG_PRINT_TO_STDOUT="1")
        self.assertIn("[ERROR] RUNTIME(", out)
        self.assertEqual(lines_of(self.log), [])

    def test_places(self):
        env = {"HOME": self.log, "ASCEND_WORK_PATH": "",
               "ASCEND_PROCESS_LOG_PATH": ""}
        run(BELAY, "sim", "run", *self.FAULT, "--", CLIENT, **env)
        home = pathlib.Path(self.log)
        self.assertTrue(list(home.glob("ascend/log/debug/plog/plog-*.log")))
        self.assertTrue(
            list(home.glob("ascend/log/debug/device-0/device-*.log")))
        env["ASCEND_WORK_PATH"] = f"{self.log}/work"
        run(BELAY, "sim", "run", *self.FAULT, "--", CLIENT, **env)
        self.assertTrue(list(home.glob("work/log/debug/plog/plog-*.log")))

    def test_a_place_that_cannot_be(self):
        code, _, err = client("/dev/null/x")
        self.assertEqual((code, err), (0, ""))


class Options(InFolder):
    def test_scripts_from_files(self):
        script = pathlib.Path(self.log) / "script"
        script.write_text("# two\nat 1st Add\n")
        code, _, err = client(self.log, "--fault", str(script))
        self.assertEqual(code, 1)
        self.assertIn("SIM-003", err)
        self.assertIn("line 2, column 11", err)
        script.write_text("# one\nat 1st Add return 507035\n")
        code, _, err = client(self.log, "--fault", "at 9th Add hang", "--fault",
                              str(script))
        self.assertEqual(code, 1)
        self.assertIn("SIM-030 line 3 of the fault script", err)
        code, _, err = run(CLIENT, CANNSIM_FAULTS=str(script),
                           ASCEND_PROCESS_LOG_PATH=self.log)
        self.assertEqual(code, 1)
        self.assertIn("SIM-030 line 2 of the fault script", err)

    def test_unknown_quirk(self):
        code, _, err = client(self.log, "--quirk", "frob")
        self.assertEqual(code, 1)
        self.assertIn("SIM-003", err)
        self.assertIn("early-malloc", err)

    def test_careful_client_survives_all_quirks_it_may_meet(self):
        code, _, err = client(self.log, "--quirk", "early-malloc", "--quirk",
                              "first-run,cache-order")
        self.assertEqual((code, err), (0, ""))


class Report(InFolder):
    def report(self, name, *options):
        path = pathlib.Path(self.log) / name
        code, _, err = client(self.log, "--report", str(path), *options)
        self.assertEqual(code, 0, err)
        return path.read_text()

    def test_json(self):
        report = json.loads(self.report("r.json"))
        self.assertEqual(report["profile"], "Ascend910B3")
        self.assertEqual(report["launches"], 2)
        self.assertEqual(report["operators"], 2)
        self.assertEqual(report["host_syncs"], 2)
        self.assertEqual(report["blocking_copies"], 3)
        self.assertEqual(report["allocations"], 2)
        self.assertEqual(report["frees"], 2)
        self.assertEqual(report["bytes_to_device"], 64)
        self.assertEqual(report["bytes_to_host"], 32)
        self.assertEqual(report["compilations"], 0)
        self.assertEqual(report["devices"][0]["memory_peak_bytes"], 64)
        tasks = {t["name"]: t for t in report["tasks"]}
        self.assertEqual(tasks["aclnnAdd"]["runs"], 2)
        self.assertGreaterEqual(tasks["aclnnAdd"]["simulated_ms"], 0.02)

    def test_same_program_same_times(self):
        def times(*options):
            return json.loads(self.report("r.json", *options))["tasks"]
        self.assertEqual(times(), times())
        slow = {t["name"]: t for t in times("--fault",
                                            "always Add slow 10")}
        self.assertGreaterEqual(slow["aclnnAdd"]["simulated_ms"], 0.2)

    def test_text(self):
        text = self.report("r.txt")
        self.assertRegex(text, r"waits of the host +2\n")
        self.assertRegex(text, r"aclnnAdd +2 +0\.02\d\n")
        code, _, err = client(self.log, "--report", "-")
        self.assertEqual(code, 0)
        self.assertIn("bytes to the host", err)

    def test_nowhere_to_write(self):
        code, _, err = client(self.log, "--report", "/dev/null/x")
        self.assertEqual(code, 0)
        self.assertIn("SIM-004", err)


class Strict(InFolder):
    def client(self, *args, option="--strict-exit"):
        code, _, err = client(self.log, option, args=args)
        return code, err

    def test_exit_codes(self):
        self.assertEqual(self.client(), (0, ""))
        code, err = self.client("leak-stream")
        self.assertEqual(code, 1)
        self.assertIn("SIM-012", err)
        self.assertIn("a stream made by aclrtCreateStream", err)
        self.assertIn("cannsim_log_client", err)  # the place
        code, err = self.client("leak-stream", option="--strict")
        self.assertEqual(code, 0)
        self.assertIn("SIM-012", err)

    def test_told_at_the_end(self):
        code, err = self.client("leak-tensor")
        self.assertEqual(code, 1)
        self.assertIn("SIM-018 1 objects (aclTensor) live at the end", err)

    def test_free_twice(self):
        code, err = self.client("free-twice")
        self.assertEqual(code, 1)
        self.assertIn("SIM-013", err)

    def test_no_wait(self):
        _, err = self.client("no-wait")
        self.assertIn("SIM-015", err)
        self.assertIn("aclnnAdd", err)


class Explain(unittest.TestCase):
    def test_every_id(self):
        known = json.loads(
            (ROOT / "data/catalogue/pitfalls/sim.json").read_text())
        for entry in known["entries"]:
            for lang in ("en", "zh"):
                code, out, _ = run(BELAY, "explain", entry["id"], "--lang",
                                   lang)
                self.assertEqual(code, 0)
                self.assertIn(entry["title"][lang], out)


if __name__ == "__main__":
    CLIENT = os.path.abspath(sys.argv.pop(2))
    BELAY = os.path.abspath(sys.argv.pop(1))
    unittest.main()
