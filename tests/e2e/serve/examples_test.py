# SPDX-License-Identifier: Apache-2.0
"""The files of examples/ that start a server: each is well formed, and says
nothing that the server does not know."""

import configparser
import json
import os
import re
import shutil
import subprocess
import tempfile
import tomllib
import unittest

from belay_server import PROGRAM, ROOT

EXAMPLES = os.path.join(ROOT, "examples")


def read(*path):
    with open(os.path.join(EXAMPLES, *path), encoding="utf-8") as f:
        return f.read()


def run(*command, **options):
    return subprocess.run(command, cwd=ROOT, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False,
                          env={**os.environ, "LC_ALL": "C.UTF-8",
                               **options.pop("env", {})}, **options)


def flags():
    return set(re.findall(r"--[a-z][a-z-]+", run(PROGRAM, "serve", "--help").stdout))


class ExamplesTest(unittest.TestCase):
    def check_command(self, words):
        """`words` behind "belay": a subcommand with flags that it has."""
        self.assertEqual(words[0], "serve")
        known = flags()
        self.assertIn("--max-batch", known)
        for word in words[1:]:
            if word.startswith("--"):
                self.assertIn(word.split("=")[0], known)

    def test_the_configuration_is_taken(self):
        text = read("systemd", "belay.toml")
        # As it stands, and with all that is commented out in it.
        whole = re.sub(r"(?m)^#(\w[\w-]* = )", r"\1", text)
        self.assertNotEqual(text, whole)
        known = flags()
        for one in (text, whole):
            for name, value in tomllib.loads(one).items():
                for key in value if isinstance(value, dict) else (name,):
                    self.assertIn("--" + key, known)
            with tempfile.NamedTemporaryFile("w", suffix=".toml") as f:
                f.write(one)
                f.flush()
                # The model of the file is not here: every key before that was
                # taken, and every value.
                got = run(PROGRAM, "serve", "--config", f.name, "--port", "0",
                          "--api-key-file", "")
                self.assertEqual(got.returncode, 3, got.stdout)
                self.assertRegex(got.stdout, r"\b(CKPT|TOK|SYS)-\d+")
                self.assertIn("deepseek-v4-flash", got.stdout)
        # And a key that is none is refused, so that this test can fail.
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as f:
            f.write(text + "\nmax-batches = 3\n")
            f.flush()
            got = run(PROGRAM, "serve", "--config", f.name)
            self.assertEqual(got.returncode, 3, got.stdout)
            self.assertIn("CFG-", got.stdout)

    def test_the_unit(self):
        text = read("systemd", "belay.service")
        unit = configparser.ConfigParser(strict=False, interpolation=None,
                                         delimiters="=")
        unit.optionxform = str
        unit.read_string(text)
        self.assertEqual(unit.sections(), ["Unit", "Service", "Install"])
        words = unit["Service"]["ExecStart"].split()
        self.assertEqual(os.path.basename(words[0]), "belay")
        self.check_command(words[1:])
        if shutil.which("systemd-analyze") is None:
            self.skipTest("the unit was NOT verified: no systemd-analyze here")
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "belay.service")
            with open(path, "w", encoding="utf-8") as f:
                f.write(text.replace("/usr/local/bin/belay",
                                     os.path.abspath(PROGRAM)))
            got = run("systemd-analyze", "verify", path)
            # It says so of every line that it does not know.
            self.assertNotIn("belay.service:", got.stdout)

    def test_the_container_file(self):
        text = re.sub(r"\\\n\s*", " ", read("container", "Containerfile"))
        lines = [line for line in text.splitlines()
                 if line.strip() and not line.startswith("#")]
        command = {}
        for line in lines:
            name, rest = line.split(None, 1)
            self.assertIn(name, ("ARG", "FROM", "RUN", "COPY", "WORKDIR", "USER",
                                 "EXPOSE", "ENTRYPOINT", "CMD"))
            if name in ("ENTRYPOINT", "CMD"):
                command[name] = json.loads(rest)
        words = command["ENTRYPOINT"] + command["CMD"]
        self.assertEqual(words[0], "belay")
        self.check_command(words[1:])
        # What its build asks the tree for is there.
        self.assertIn("scripts/bootstrap", text)
        self.assertTrue(os.access(os.path.join(ROOT, "scripts/bootstrap"), os.X_OK))
        with open(os.path.join(ROOT, "CMakePresets.json"), encoding="utf-8") as f:
            presets = json.load(f)
        preset = re.search(r"cmake --preset (\w+)", text)[1]
        self.assertIn(preset, [p["name"] for p in presets["configurePresets"]])
        self.assertIn(f"build/{preset}/bin/belay", text)

    def test_the_start_script(self):
        script = os.path.join(EXAMPLES, "container", "run-ascend")
        self.assertEqual(run("bash", "-n", script).returncode, 0)
        self.assertEqual(run(script).returncode, 2)
        with tempfile.TemporaryDirectory(prefix="a model ") as model:
            got = run("bash", "-c", f'eval "printf \'%s\\n\' $("$0" "$@")"', script,
                      model, "image", "serve", "--model", "/models", "--max-batch",
                      "4", env={"DRY_RUN": "1", "NPUS": "0 3"})
        words = got.stdout.splitlines()
        at = words.index("image")
        self.assertIn("docker", words)
        self.assertIn(os.path.realpath(model) + ":/models:ro", words[:at])
        self.assertIn("/dev/davinci0", words[:at])
        self.assertIn("/dev/davinci3", words[:at])
        self.assertEqual(words[at + 1:],
                         ["serve", "--model", "/models", "--max-batch", "4"])
        self.check_command(words[at + 1:])


if __name__ == "__main__":
    unittest.main(verbosity=1)
