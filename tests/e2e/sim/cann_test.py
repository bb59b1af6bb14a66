#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`--backend cann` as users meet it, on the stand-in for CANN.

    cann_test.py BELAY
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BELAY = ""
MODEL = "data/demo"
PROMPT = "What is error 507034?"


def belay(*args, timeout=120, **env):
    clean = {k: v for k, v in os.environ.items()
             if not k.startswith("ASCEND_") and k != "LD_LIBRARY_PATH"}
    done = subprocess.run([BELAY, *args], capture_output=True, text=True,
                          check=False, timeout=timeout, env={**clean, **env})
    return done.returncode, done.stdout, done.stderr


def ask(backend, n, *more, prompt=PROMPT):
    return ["run", "--model", MODEL, "--backend", backend, "--prompt", prompt,
            "--max-tokens", str(n), "--json", *more]


def in_sim(command, *options):
    return belay("sim", "run", *options, "--", BELAY, *command)


def tokens(answer):
    code, out, err = answer
    assert code == 0, (code, out[:500], err[:500])
    return json.loads(out)["tokens"]


def failure(*fault, more=()):
    code, out, _ = in_sim(ask("cann", 4, *more), *fault)
    assert code == 3, (code, out[:500])
    return json.loads(out)["error"]


class Same(unittest.TestCase):
    def test_tokens_of_cpu(self):
        for prompt in (PROMPT, "Hi"):
            want = tokens(belay(*ask("cpu", 16, prompt=prompt)))
            got = tokens(in_sim(ask("cann", 16, prompt=prompt)))
            self.assertEqual(got, want)

    def test_sampled_drafted_and_chunked_tokens_of_cpu(self):
        for more in (["--temp", "0.8", "--top-p", "0.9", "--seed", "7"],
                     ["--speculative", "--draft-tokens", "2"],
                     ["--tokens-per-step", "7"]):
            want = tokens(belay(*ask("cpu", 8, *more)))
            self.assertEqual(tokens(in_sim(ask("cann", 8, *more))), want, more)

    def test_strict_mode_finds_nothing(self):
        code, out, err = in_sim(ask("cann", 6), "--strict-exit",
                                "--workspace", "4096")
        self.assertEqual((code, err), (0, ""), out)

    def test_quirks_change_nothing(self):
        plain = tokens(in_sim(ask("cann", 6)))
        code, out, err = in_sim(ask("cann", 6), "--quirk", "all")
        self.assertEqual(code, 0, err)
        self.assertEqual(json.loads(out)["tokens"], plain)
        for naive in ("SIM-020", "SIM-021", "SIM-022", "SIM-023", "SIM-024"):
            self.assertNotIn(naive, err)


class Counted(unittest.TestCase):
    def report(self, n):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "report.json"
            tokens(in_sim(ask("cann", n, "--max-context", "64"),
                          "--report", str(path)))
            return json.loads(path.read_text())

    def test_a_decode_step(self):
        few, more = self.report(4), self.report(12)
        step = {key: (more[key] - few[key]) / 8 for key in (
            "allocations", "frees", "host_allocations", "host_frees",
            "host_syncs", "blocking_copies", "bytes_to_host",
            "bytes_on_device", "compilations")}
        self.assertEqual(step, {
            "allocations": 0, "frees": 0, "host_allocations": 0,
            "host_frees": 0, "host_syncs": 1, "blocking_copies": 0,
            "bytes_to_host": 4, "bytes_on_device": 0, "compilations": 0})
        # The step's plan and index lists alone.
        uploaded = (more["bytes_to_device"] - few["bytes_to_device"]) / 8
        self.assertLess(uploaded, 16384)
        launches = (more["launches"] - few["launches"]) / 8
        print(f"a decode step: {launches:.0f} launches, "
              f"{uploaded:.0f} bytes to the device")


class Faults(unittest.TestCase):
    def test_each_ends_with_its_id(self):
        for fault, found, words in (
                ("at 3000th task return 507035", "CANN-006", "507035"),
                ("at 3000th task return 507014", "CANN-006", "507014"),
                ("at 100th task return 507053", "CANN-006", "507053"),
                ("at 6000th task lose device", "CANN-006", "507010"),
                ("at 2nd malloc return 207001", "CANN-004", "207001"),
                ("at byte 100MiB return 207001", "CANN-004", "are free"),
                ("always Topk missing", "CANN-007", "aclnnTopk"),
                ("at 1st wait return 507046", "CANN-009", "507046"),
                ("at 2nd wait return 507046", "CANN-005", "stream")):
            error = failure("--fault", fault)
            self.assertEqual(error["id"], found, fault)
            text = " ".join((error["where"], error["what"], error["got"]))
            self.assertIn(words, text, fault)

    def test_a_hung_stream_is_named_in_time(self):
        error = failure("--fault", "at 4000th task hang",
                        more=["--device-timeout", "1"])
        self.assertEqual(error["id"], "CANN-005")
        self.assertRegex(error["where"], r"device 0, stream \d+")

    def test_a_slow_device_is_only_slow(self):
        code, _, err = in_sim(ask("cann", 2), "--fault",
                              "always operator slow 9")
        self.assertEqual(code, 0, err)


class Refusals(unittest.TestCase):
    def test_no_cann(self):
        code, out, _ = belay(*ask("cann", 2))
        self.assertEqual(code, 3)
        self.assertEqual(json.loads(out)["error"]["id"], "CANN-001")

    def test_what_it_cannot_take(self):
        for options, more, found in (
                ([], ["--activations", "int8"], "BACK-002"),
                ([], ["--device", "99"], "CANN-008"),
                ([], ["--simd-target", "AVX2"], "BACK-002"),
                (["--profile", "Ascend310P3"], [], "BACK-002")):
            code, out, err = in_sim(ask("cann", 2, *more), *options)
            self.assertEqual(code, 3, err)
            self.assertEqual(json.loads(out)["error"]["id"], found, more)


class Explain(unittest.TestCase):
    def explain(self, profile):
        code, out, err = in_sim(ask("cann", 1, "--explain"), "--profile",
                                profile)
        self.assertEqual(code, 0, err)
        return json.loads(out)

    def test_start_and_choices(self):
        report = self.explain("Ascend910B3")
        self.assertEqual(
            [s["step"] for s in report["start"]],
            ["load", "symbols", "init", "count", "set device", "ready",
             "context", "stream", "pinned memory"])
        chosen = {}
        for one in report["implementations"]:
            if one["applies"]:
                chosen.setdefault(one["operator"], one["implementation"])
            else:
                self.assertIn("BACK-002", one["reason"])
        self.assertEqual(len(chosen), 21)
        fused = {op: name for op, name in chosen.items()
                 if not name.startswith("composed (")}
        self.assertEqual(fused, {"HcPre": "fused aclnnHcPreSinkhorn",
                                 "HcPost": "fused aclnnHcPost"})

    def test_a_fused_operator_says_whether_it_is_there(self):
        def reason(profile, name):
            return next(one["reason"]
                        for one in self.explain(profile)["implementations"]
                        if one["implementation"] == f"fused aclnn{name}")
        self.assertIn("not used yet", reason("Ascend910B3",
                                             "SparseAttnSharedkv"))
        self.assertIn("no aclnnKvQuantSparseAttnSharedkv in the libraries",
                      reason("Ascend910B3", "KvQuantSparseAttnSharedkv"))
        self.assertIn("not used yet", reason("Ascend950PR_9589",
                                             "KvQuantSparseAttnSharedkv"))


if __name__ == "__main__":
    BELAY = sys.argv.pop(1)
    unittest.main()
