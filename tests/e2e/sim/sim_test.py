#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`belay sim` and the programs and libraries of the toolkit.

    sim_test.py BELAY
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import unittest

BELAY = ""
LIBRARIES = ("libascendcl.so", "libacl_op_compiler.so", "libnnopbase.so",
             "libopapi.so")
ROOT = pathlib.Path(__file__).resolve().parents[3]


def belay(*args, **env):
    run = subprocess.run([BELAY, *args], capture_output=True, text=True,
                         check=False, env={**os.environ, **env})
    return run.returncode, run.stdout, run.stderr


def in_sim(*program, profile=None, **env):
    options = ["--profile", profile] if profile else []
    return belay("sim", "run", *options, "--", *program, **env)


class Commands(unittest.TestCase):
    def test_env_can_be_evaluated(self):
        code, out, _ = belay("sim", "env", "--profile", "Ascend910_9391",
                             "--devices", "3", "--strict")
        self.assertEqual(code, 0)
        shell = subprocess.run(
            ["sh", "-c", out + 'echo "$CANNSIM_PROFILE $CANNSIM_DEVICES '
             '$CANNSIM_STRICT"; command -v npu-smi'],
            capture_output=True, text=True, check=True).stdout.split("\n")
        self.assertEqual(shell[0], "Ascend910_9391 3 1")
        self.assertTrue(shell[1].endswith("/cannsim/bin/npu-smi"), shell[1])

    def test_env_as_json(self):
        code, out, _ = belay("sim", "env", "--json", LD_LIBRARY_PATH="/x")
        self.assertEqual(code, 0)
        env = json.loads(out)
        custom = env["ASCEND_CUSTOM_OPP_PATH"]
        self.assertTrue(env["LD_LIBRARY_PATH"].endswith(
            f"/cannsim/lib64:{custom}/op_api/lib:/x"))
        self.assertNotIn("CANNSIM_PROFILE", env)

    def test_custom_operators_are_those_of_the_generation(self):
        """A program finds the package of its chip, as on the machine."""
        for profile, wanted in (("Ascend910B3", "A2"),
                                ("Ascend910_9391", "A3"),
                                ("Ascend950PR_9589", "A5"),
                                ("Ascend310P3", None)):
            env = json.loads(belay("sim", "env", "--json", "--profile",
                                   profile, ASCEND_CUSTOM_OPP_PATH="")[1])
            custom = env.get("ASCEND_CUSTOM_OPP_PATH")
            if wanted is None:
                self.assertIsNone(custom)
                continue
            self.assertTrue(custom.endswith(f"/opp/vendors/cannsim_{wanted}"))
            self.assertTrue(os.path.exists(
                f"{custom}/op_api/lib/libcust_opapi.so"))

    def test_program_keeps_arguments_and_exit_code(self):
        code, out, _ = in_sim("sh", "-c", 'echo "$1"; exit 7', "sh", "--json")
        self.assertEqual((code, out), (7, "--json\n"))

    def test_mistakes(self):
        code, _, err = in_sim("true", profile="Ascend1")
        self.assertEqual(code, 3)
        self.assertIn("SYS-001", err)
        self.assertIn("Ascend950PR_9589", err)  # what there is
        code, _, err = belay("sim", "env", "--root", "/nowhere")
        self.assertEqual(code, 3)
        self.assertIn("/nowhere/version.info", err)
        code, _, err = in_sim("no-such-program-here")
        self.assertEqual(code, 3)
        self.assertIn("no-such-program-here", err)
        self.assertEqual(belay("sim")[0], 2)
        self.assertEqual(belay("sim", "run")[0], 2)


class Top(unittest.TestCase):
    """`belay top` through the simulator's npu-smi, without a terminal."""

    def test_devices(self):
        for profile, name in (("Ascend910B3", "910B3"),
                              ("Ascend910_9391", "Ascend910"),
                              ("Ascend950PR_9589", "Ascend950PR"),
                              ("Ascend310P3", "310P3")):
            code, out, err = in_sim(BELAY, "top", "--once", "--json",
                                    profile=profile)
            self.assertEqual(code, 0, err)
            view = json.loads(out)
            self.assertGreater(len(view["devices"]), 0, profile)
            for device in view["devices"]:
                self.assertEqual(device["name"], name)
                self.assertEqual(device["health"], "OK")
                self.assertEqual(device["ai_core_percent"], 0)
                self.assertGreater(device["temperature_c"], 0)
                self.assertGreater(device["total_mb"], device["used_mb"])
            self.assertIsNone(view["engine"])

    def test_text(self):
        code, out, err = in_sim(BELAY, "top", "--count", "2", "--interval",
                                "0.05")
        self.assertEqual(code, 0, err)
        self.assertEqual(out.count("health"), 2)
        self.assertNotIn("\x1b", out)


class Doctor(unittest.TestCase):
    """`belay doctor` takes the stand-in for a healthy machine."""

    def test_healthy(self):
        for profile, expected in (("Ascend910B3", []),
                                  ("Ascend910_9391", []),
                                  ("Ascend950PR_9589", []),
                                  ("Ascend310P3", ["DOCT-080"])):
            code, out, err = in_sim(BELAY, "doctor", "--json", "--scope",
                                    "container,cann,model", profile=profile)
            verdict = json.loads(out)
            ids = [finding["id"] for finding in verdict["findings"]]
            self.assertEqual(ids, expected, profile + out)
            self.assertEqual(code, 1 if expected else 0, err)
            self.assertGreater(verdict["npus"], 0)
            self.assertNotEqual(verdict["simulator"], "")
            self.assertNotEqual(verdict["cann"], "")

    def test_host(self):
        code, out, err = in_sim(BELAY, "doctor", "--json", "--scope", "host")
        ids = {finding["id"] for finding in json.loads(out)["findings"]}
        # Limits and memory are those of whoever runs this.
        self.assertLessEqual(ids, {"DOCT-053", "DOCT-060", "DOCT-065"}, err)


class NpuSmi(unittest.TestCase):
    """Tables are split at '|', as their readers must."""

    def rows(self, profile, **env):
        code, out, err = in_sim("npu-smi", "info", profile=profile, **env)
        self.assertEqual(code, 0, err)
        return [[cell.strip() for cell in line.strip("|").split("|")]
                for line in out.splitlines() if line.startswith("|")]

    def test_910b(self):
        rows = self.rows("Ascend910B3")
        self.assertIn("npu-smi 24.1.1", rows[0][0])
        self.assertEqual(rows[1][0].split(), ["NPU", "Name"])
        self.assertEqual(rows[3][0].split(), ["0", "910B3"])
        self.assertEqual(rows[3][1], "OK")
        self.assertRegex(rows[4][1], r"^0000:[0-9A-F]{2}:00.0$")
        self.assertTrue(rows[4][2].endswith("/ 65536"))
        self.assertEqual(sum(row[0].startswith("No running") for row in rows),
                         8)

    def test_a3_has_two_dies_a_card(self):
        rows = self.rows("Ascend910_9391")
        self.assertEqual(rows[5][0].split(), ["0", "Ascend910"])
        self.assertEqual(rows[5][2].split()[0], "-")
        self.assertEqual(rows[6][0].split(), ["1", "1"])  # chip, Phy-ID

    def test_950_has_no_chips(self):
        rows = self.rows("Ascend950PR_9589")
        self.assertEqual(rows[3][:3], ["0", "Ascend950PR", "OK"])
        self.assertTrue(rows[4][3].endswith("/ 131072"))

    def test_310p_has_no_hbm(self):
        rows = self.rows("Ascend310P3")
        self.assertNotIn("HBM", rows[2][2])
        self.assertTrue(rows[4][2].endswith("/ 22528"))

    def test_queries(self):
        _, out, _ = in_sim("npu-smi", "info", "-l", profile="Ascend910_9391")
        self.assertRegex(out, r"Total Count\s*: 8")
        _, out, _ = in_sim("npu-smi", "info", "-t", "board", "-i", "0",
                           profile="Ascend950PR_9589")
        self.assertRegex(out, r"Chip Name\s*: Ascend950PR")
        self.assertRegex(out, r"NPU Name\s*: 9589")
        code, out, _ = in_sim("npu-smi", "info", "-t", "health", "-i", "9")
        self.assertEqual((code, out), (1, "Invalid card id.\n"))
        code, _, err = in_sim("npu-smi", "frob")
        self.assertEqual(code, 2)

    def test_visible_devices(self):
        rows = self.rows("Ascend910B3", ASCEND_RT_VISIBLE_DEVICES="2,5")
        self.assertEqual([row[0].split()[0] for row in rows[3:6:2]],
                         ["2", "5"])

    def test_bad_profile(self):
        code, _, err = in_sim("npu-smi", "info", CANNSIM_PROFILE="/dev/null")
        self.assertEqual(code, 3)
        self.assertIn("SIM-001", err)


class Atc(unittest.TestCase):
    def test_help_and_version(self):
        self.assertEqual(in_sim("atc", "--help")[0], 0)
        self.assertIn("cannsim", in_sim("atc", "--version")[1])

    def test_checks(self):
        for args, said in [
                (["--frob=1"], "no option --frob"),
                (["--mode=2"], "none of"),
                (["--mode=6"], "--om is needed"),
                (["--framework=5"], "--model is needed"),
                (["--model=/none", "--framework=5"], "does not exist"),
                (["--model=/dev/null", "--framework=4"], "must be 0, 1, 3"),
                (["--model=/dev/null", "--framework=5"], "--output is needed"),
                (["--model=/dev/null", "--framework=5", "--output=x",
                  "--soc_version=Ascend910B3", "--dynamic_dims=1",
                  "--dynamic_batch_size=1,2"], "exclude each other"),
                (["--model=/dev/null", "--framework=5", "--output=x",
                  "--soc_version=Ascend910B3"], "SIM-002")]:
            code, out, _ = in_sim("atc", *args)
            self.assertEqual(code, 1, args)
            self.assertIn("ATC run failed", out)
            self.assertIn(said, out)


class Libraries(unittest.TestCase):
    def exported(self, library):
        env = json.loads(belay("sim", "env", "--json")[1])
        out = subprocess.run(
            ["nm", "-D", "--defined-only",
             f"{env['ASCEND_HOME_PATH']}/lib64/{library}"],
            capture_output=True, text=True, check=True).stdout
        return {line.split()[-1] for line in out.splitlines()}

    def test_symbols_of_the_manifest(self):
        functions = [f for name in ("acl", "nnopbase") for f in json.loads(
            (ROOT / f"data/abi/{name}.json").read_text())["functions"]]
        for library in LIBRARIES[:3]:
            symbols = self.exported(library)
            # Offline models are a room that is not there yet.
            missing = [f["name"] for f in functions
                       if f["library"] == library
                       and f.get("declared", True)
                       and f["header"] != "acl/acl_mdl.h"
                       and f["name"] not in symbols]
            self.assertEqual(missing, [])

    def test_operators_that_ggml_calls(self):
        abi = json.loads((ROOT / "data/abi/aclnn.json").read_text())
        symbols = self.exported("libopapi.so")
        wanted = {f"aclnn{o['name']}{part}" for o in abi["operators"]
                  if o["set"] == "ggml" for part in ("", "GetWorkspaceSize")}
        wanted |= {helper["name"] for helper in abi["helpers"]}
        self.assertEqual(sorted(wanted - symbols), [])

    def test_nothing_else_is_seen(self):
        ours = {"cannsim_" + name for name in
                ("fail", "enter", "leave", "launch", "launch_op", "worker",
                 "profile", "missing", "quirk", "tell", "compiled", "fault",
                 "log", "get_counters", "strict", "finding", "workspace",
                 "say", "launch_task", "is_recorded", "hccl_settings")}
        for library in LIBRARIES:
            # libopapi builds its operators on two classes of libnnopbase.
            strange = [s for s in self.exported(library)
                       if not s.startswith("acl") and s not in ours
                       and not re.match(r"_ZN7cannsim6Phase[12]", s)]
            self.assertEqual(strange, [])


class Catalogue(unittest.TestCase):
    def test_every_id_is_explained(self):
        """Ids in cannsim's sources are in the catalogue, and the reverse."""
        used = set()
        for path in (ROOT / "cannsim").rglob("*.cc"):
            used |= set(re.findall(r"SIM-\d{3}", path.read_text()))
        known = json.loads(
            (ROOT / "data/catalogue/pitfalls/sim.json").read_text())
        self.assertEqual(used, {e["id"] for e in known["entries"]})
        self.assertEqual(belay("explain", "SIM-010")[0], 0)


if __name__ == "__main__":
    BELAY = os.path.abspath(sys.argv.pop(1))
    unittest.main()
