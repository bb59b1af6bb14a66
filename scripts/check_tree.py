#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the tree to docs/layers.txt and to the limits of its design.

    scripts/check_tree.py [--root DIR] [--quiet]

Prints findings as `path:line: rule: message`. Findings over a soft limit end
with "(warning)"; all others make the exit status 1. Exceptions, with reasons:
scripts/tree_exceptions.txt.
"""

import argparse
import collections
import fnmatch
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cpp_shape  # noqa: E402 (needs the line above)
import layers  # noqa: E402

LAYERS = "docs/layers.txt"
EXCEPTIONS = "scripts/tree_exceptions.txt"

# (soft, hard), the first pattern that fits.
FILE_LINES = [
    ("src/model/forward.cc", 150, 200),
    ("*_test.cc", 600, 900),
    ("*_test.py", 600, 900),
    ("*_test.c", 600, 900),
    # Somebody else's interface is as long as it is.
    ("cannsim/include/*.h", 600, 900),
    ("tests/*.cc", 600, 900),
    ("*-inl.h", 500, 800),
    ("*.h", 200, 300),
    ("*.cc", 400, 600),
    ("*.c", 400, 600),
    ("*.py", 400, 600),
]
FUNCTION_LINES = (60, 100)
PARAMETERS = (5, 6)
NESTING = (3, 4)
FILES_IN_FOLDER = (15, 25)

CPP_ROOTS = ("src/", "cannsim/", "tests/", "bench/")
ISA_FOLDERS = ("cmake", "backends", "kernels")
ISA_CONDITION = re.compile(
    r"^\s*#\s*(?:if|ifdef|ifndef|elif)\b.*?"
    r"(\b__AVX\w*|\b__SSE\w*|\b__aarch64__|\b__ARM\w*|\b__x86_64__|\b__amd64__"
    r"|\b__i386\w*|\b_M_X64|\b_M_ARM64|\b__F16C__|\b__FMA__|\b__riscv\w*"
    r"|\bHWY_TARGET\b|\bHWY_ARCH_\w+|\b\w*ASCEND\w*|\bBELAY_BACKEND\w*)")

PRINTING = re.compile(
    r"(?<![\w.>])(?:std::)?(?:cout|cerr|clog)\b"
    r"|(?<![\w.>])(?:std::)?(?:printf|vprintf|puts|putchar|perror)\s*\("
    r"|\b(?:fmt|std)::print(?:ln)?\s*\("
    r"|\b(?:fprintf|vfprintf)\s*\(\s*std(?:err|out)\b"
    r"|\b(?:fputs|fputc|fwrite)\s*\([^;]*\bstd(?:err|out)\b")
ENVIRONMENT = re.compile(r"\b(?:secure_getenv|getenv|setenv|putenv)\s*\(")

# Split, so that this file does not find itself.
HOSTS = ["deb." + "debian.org", "security." + "debian.org",
         "registry." + "npmjs.org", "py" + "pi.org",
         "files." + "pythonhosted.org", "archive." + "ubuntu.com"]
MACHINE = re.compile(
    r"(?<![\w.~$}*-])/(?:work|root|home/\w+)/|" +
    "|".join(re.escape(host) for host in HOSTS))

TEXT_SUFFIXES = {".cc", ".h", ".c", ".py", ".cmake", ".md", ".sh", ".txt"}
SPDX = "SPDX-License-Identifier: Apache-2.0"

Finding = collections.namedtuple(
    "Finding", "path line rule message hard function")


class Exceptions:
    """scripts/tree_exceptions.txt; remembers which lines were of use."""

    def __init__(self, text):
        self.lines = []
        self.bad = []
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            fields = line.split(None, 2)
            if len(fields) < 3:
                self.bad.append(number)
            else:
                self.lines.append([number, fields[0], fields[1], False])

    def excuses(self, finding):
        names = [finding.path]
        if finding.function:
            names.append(f"{finding.path}:{finding.function}")
        excused = False
        for line in self.lines:
            if line[2] == finding.rule and any(
                    fnmatch.fnmatchcase(n, line[1]) for n in names):
                line[3] = excused = True
        return excused


class Tree:
    """The files under a root, and what is wrong with them."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.findings = []
        self.paths = self._list()
        self.layers = layers.Layers(self.read_or_empty(LAYERS))
        self.folders = {p.split("/")[1] for p in self.paths
                        if p.startswith("src/") and p.count("/") > 1}

    def read_or_empty(self, path):
        file = self.root / path
        return file.read_text("utf-8") if file.is_file() else ""

    def _list(self):
        """Tracked files and new ones that are not ignored."""
        try:
            out = subprocess.run(
                ["git", "-c", "safe.directory=*", "ls-files", "-z", "-co",
                 "--exclude-standard"],
                cwd=self.root, capture_output=True, check=True).stdout
            names = out.decode("utf-8").split("\0")
        except (OSError, subprocess.CalledProcessError):
            names = [p.relative_to(self.root).as_posix()
                     for p in self.root.rglob("*")]
            names = [n for n in names
                     if not n.startswith(("build/", ".git/"))]
        return sorted(n for n in set(names)
                      if n and (self.root / n).is_file())

    def add(self, path, line, rule, message, hard=True, function=None):
        self.findings.append(
            Finding(path, line, rule, message, hard, function))

    def limit(self, path, line, rule, what, value, limits, function=None):
        soft, hard = limits
        if value > hard:
            self.add(path, line, rule, f"{what}: {value}, at most {hard}",
                     True, function)
        elif value > soft:
            self.add(path, line, rule, f"{what}: {value}, better {soft}",
                     False, function)

    def check(self):
        for path in self.paths:
            if path.endswith(".safetensors"):
                continue
            try:
                text = (self.root / path).read_bytes().decode("utf-8")
            except UnicodeDecodeError:
                continue  # a binary file
            check_machine(self, path, text)
            if is_source(path):
                check_text(self, path, text)
                check_license(self, path, text)
                check_length(self, path, text)
            if path.endswith("CMakeLists.txt"):
                check_cmake(self, path, text)
            if path.startswith(CPP_ROOTS) and path.endswith(
                    (".h", ".cc", ".c")):
                check_cpp(self, path, text)
        check_folders(self)
        return self.findings


def is_source(path):
    """Sources and docs, but not data and not the inputs of tests."""
    name = path.rsplit("/", 1)[-1]
    suffix = pathlib.PurePosixPath(path).suffix
    if path.startswith(("data/", "tests/")) and suffix in ("", ".txt", ".md"):
        return name == "CMakeLists.txt"
    if path.startswith(("scripts/", ".ci/")) and suffix == "":
        return True
    return suffix in TEXT_SUFFIXES


def is_test(path):
    return path.endswith("_test.cc")


def check_machine(tree, path, text):
    for match in MACHINE.finditer(text):
        tree.add(path, text.count("\n", 0, match.start()) + 1, "machine",
                 f"'{match.group()}' belongs to one machine or network")


def check_text(tree, path, text):
    for number, line in enumerate(text.split("\n"), 1):
        if "\r" in line:
            tree.add(path, number, "text", "carriage return")
        elif line != line.rstrip():
            tree.add(path, number, "text", "white space at the end")
        if "\t" in line:
            tree.add(path, number, "text", "tab")
    if text and not text.endswith("\n"):
        tree.add(path, text.count("\n") + 1, "text", "no newline at the end")


def check_license(tree, path, text):
    if path.endswith((".md", ".txt")) and not path.endswith("CMakeLists.txt"):
        return
    lines = text.split("\n", 2)
    first = lines[1] if lines[0].startswith("#!") and len(lines) > 1 else (
        lines[0])
    comment = "//" if path.endswith((".h", ".cc", ".c")) else "#"
    if first != f"{comment} {SPDX}":
        tree.add(path, 1, "license", f"does not begin with '{comment} {SPDX}'")


def check_length(tree, path, text):
    for pattern, soft, hard in FILE_LINES:
        if fnmatch.fnmatchcase(path, pattern):
            tree.limit(path, 1, "file-lines", "lines", text.count("\n"),
                       (soft, hard))
            return


def check_cpp(tree, path, text):
    check_includes(tree, path, text)
    check_shape(tree, path, text)
    if path.endswith(".h"):
        check_guard(tree, path, text)
    lines = cpp_shape.code_lines(text)
    folders = path.split("/")[:-1]
    for number, line in lines:
        match = ISA_CONDITION.match(line)
        if match and not any(f in ISA_FOLDERS for f in folders):
            tree.add(path, number, "isa",
                     f"#if on {match.group(1)} outside backends/ and kernels/")
        if path.startswith("cannsim/"):
            # Its libraries live in other people's processes.
            if ENVIRONMENT.search(line) and not path.startswith(
                    ("cannsim/config/", "cannsim/tests/")):
                tree.add(path, number, "environment",
                         "cannsim reads the environment in cannsim/config only")
            if PRINTING.search(line) and not path.startswith(
                    ("cannsim/tools/", "cannsim/tests/")):
                tree.add(path, number, "printing",
                         "only the programs of cannsim/tools print")
            continue
        if not path.startswith("src/") or path.startswith("src/apps/") or (
                is_test(path)):
            continue
        if PRINTING.search(line):
            tree.add(path, number, "printing", "only apps/ prints")
        if ENVIRONMENT.search(line):
            tree.add(path, number, "environment",
                     "only apps/ reads the environment; pass an option")


def check_includes(tree, path, text):
    if not path.startswith(("src/", "cannsim/")):
        return
    below = path[len("src/"):] if path.startswith("src/") else path
    room, listed = tree.layers.room(below)
    if room is None:
        tree.add(path, 1, "layers", f"no room in {LAYERS} holds this file")
        return
    for match in re.finditer(
            r"^[ \t]*#[ \t]*include[ \t]+([\"<])([^\">]+)[\">]", text,
            re.MULTILINE):
        line = text.count("\n", 0, match.start()) + 1
        quote, target = match.groups()
        top = target.split("/")[0]
        if quote == '"' and ("/" not in target or top in (".", "..")):
            tree.add(path, line, "include",
                     f'"{target}": spell it from the include root')
            continue
        if top not in tree.folders and top != "cannsim":
            continue  # somebody else's header
        if quote == "<":
            tree.add(path, line, "include", f"<{target}>: ours take quotes")
        other, _ = tree.layers.room(target)
        if other is None:
            tree.add(path, line, "layers",
                     f'"{target}": no room in {LAYERS} holds it')
        elif not tree.layers.may_include(listed, room, other, is_test(path)):
            tree.add(path, line, "layers",
                     f'{room} may not include {other} ("{target}")')


def check_cmake(tree, path, text):
    """DEPS of rooms obey the same arrows as includes."""
    text = re.sub(r"#[^\n]*", "", text)
    for match in re.finditer(r"\bbelay_room\s*\(([^()]*)\)", text):
        words = match.group(1).split()
        if not words:
            continue
        room, listed = tree.layers.room(words[0] + "/CMakeLists.txt")
        line = text.count("\n", 0, match.start()) + 1
        if path != f"src/{words[0]}/CMakeLists.txt":
            tree.add(path, line, "layers",
                     f"belay_room({words[0]}) stands in another folder")
        elif room is None:
            tree.add(path, line, "layers", f"{words[0]} is not in {LAYERS}")
        in_test = False
        for word in words[1:]:
            if word in ("DEPS", "TEST_DEPS"):
                in_test = word == "TEST_DEPS"
            elif word == "COLD":
                continue
            elif "::" not in word and room is not None and (
                    not tree.layers.may_include(listed, room, word, in_test)):
                tree.add(path, line, "layers",
                         f"{room} may not depend on {word}")


def check_shape(tree, path, text):
    for function in cpp_shape.functions(text):
        name = function.name
        tree.limit(path, function.line, "function-lines", f"lines of {name}",
                   function.n_lines, FUNCTION_LINES, name)
        # The C functions of somebody else's ABI are as wide as they are.
        if not function.extern_c:
            tree.limit(path, function.line, "parameters",
                       f"parameters of {name}", function.n_params, PARAMETERS,
                       name)
        tree.limit(path, function.depth_line, "nesting", f"nesting in {name}",
                   function.depth, NESTING, name)


def check_guard(tree, path, text):
    below = path[len("src/"):] if path.startswith("src/") else path
    guard = "BELAY_" + re.sub(r"\W", "_", below).upper() + "_"
    plain = f"#ifndef {guard}\n#define {guard}\n" in text
    # Highway includes an -inl.h once for each target.
    toggled = path.endswith("-inl.h") and re.search(
        rf"#if defined\({guard}\) == defined\(HWY_TARGET_TOGGLE\)", text)
    if not plain and not toggled:
        tree.add(path, 1, "guard", f"include guard is not {guard}")


def check_folders(tree):
    counts = collections.Counter()
    for path in tree.paths:
        folder, _, name = path.rpartition("/")
        if path.startswith("src/") and any(
                part in ("common", "util") for part in folder.split("/")):
            tree.add(path, 1, "folder-name",
                     "no common/ or util/: a helper lives with its user")
        if path.startswith(CPP_ROOTS) and name.endswith((".h", ".cc")) and (
                not is_test(name)):
            counts[folder] += 1
    for folder, n in sorted(counts.items()):
        tree.limit(folder, 1, "folder-files", "source files", n,
                   FILES_IN_FOLDER)


def apply_exceptions(findings, exceptions):
    kept = [f for f in findings if not exceptions.excuses(f)]
    for number in exceptions.bad:
        kept.append(Finding(EXCEPTIONS, number, "exceptions",
                            "needs a path, a rule and a reason", True, None))
    for number, path, rule, used in exceptions.lines:
        if not used:
            kept.append(Finding(EXCEPTIONS, number, "exceptions",
                                f"excuses nothing: {path} {rule}", True, None))
    return sorted(kept, key=lambda f: (f.path, f.line, f.rule))


def main(argv):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--root", default=pathlib.Path(__file__).parent.parent)
    parser.add_argument("--quiet", action="store_true", help="no warnings")
    args = parser.parse_args(argv)
    tree = Tree(args.root)
    exceptions = Exceptions(tree.read_or_empty(EXCEPTIONS))
    findings = apply_exceptions(tree.check(), exceptions)
    n_hard = sum(f.hard for f in findings)
    for finding in findings:
        if finding.hard or not args.quiet:
            print(f"{finding.path}:{finding.line}: {finding.rule}: "
                  f"{finding.message}{'' if finding.hard else ' (warning)'}")
    print(f"check_tree: {len(tree.paths)} files, {n_hard} errors, "
          f"{len(findings) - n_hard} warnings")
    return 1 if n_hard else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
