# SPDX-License-Identifier: Apache-2.0
"""Reads docs/layers.txt: rooms, and which rooms each may include."""

import collections
import fnmatch
import re


class Layers:
    """docs/layers.txt."""

    def __init__(self, text):
        self.allowed = {}
        self.tests = collections.defaultdict(list)
        for line in text.splitlines():
            line = line.split("#")[0].strip()
            if not line:
                continue
            room, _, others = line.partition(":")
            match = re.fullmatch(r"(\S+)\s+\(tests\)", room.strip())
            if match:
                self.tests[match.group(1)] += others.split()
            else:
                self.allowed[room.strip()] = others.split()

    def room(self, path):
        """(room, its line) for a path below src/, or (None, None)."""
        parts = path.split("/")
        for n in range(len(parts) - 1, 0, -1):
            for listed in self.allowed:
                pattern = listed.split("/")
                if len(pattern) == n and all(
                        fnmatch.fnmatchcase(a, b)
                        for a, b in zip(parts, pattern)):
                    return "/".join(parts[:n]), listed
        return None, None

    def may_include(self, listed, room, other, in_test):
        if room == other:
            return True
        allowed = self.allowed[listed] + (
            self.tests[listed] if in_test else [])
        for pattern in allowed:
            if pattern == "*":
                return not other.startswith("cannsim")
            if fnmatch.fnmatchcase(other, pattern) and (
                    other.count("/") == pattern.count("/")):
                return True
        return False
