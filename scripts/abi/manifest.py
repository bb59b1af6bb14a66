# SPDX-License-Identifier: Apache-2.0
"""Reads data/abi/*.json: names, numbers and signatures of CANN's C interface.

A file has `types` (name, c), `opaque` (structs known by pointer only), `enums`
(name, values), `macros` (name, value), `structs` (name, fields as
[type, name], size, `names: ours` where only the layout is a fact), `functions`
(name, returns, args as [type, name], header, library; `declared: false` where
an argument's type is not known). aclnn.json has `operators` and `helpers`.
Each entry names its source by a tag of the file's `sources`.
"""

import json
import pathlib

FILES = ("acl", "nnopbase", "hccl", "aclnn")
PHASE_2 = [["void*", "workspace"], ["uint64_t", "workspaceSize"],
           ["aclOpExecutor*", "executor"], ["const aclrtStream", "stream"]]


class Manifest:
    def __init__(self, folder):
        folder = pathlib.Path(folder)
        self.files = {name: json.loads((folder / f"{name}.json").read_text())
                      for name in FILES}
        for name, file in self.files.items():
            if file.get("schema") != 1:
                raise ValueError(f"{name}.json: schema {file.get('schema')}")

    def entries(self, kind):
        """All entries of a kind, over all files."""
        for file in self.files.values():
            yield from file.get(kind, ())

    def functions(self):
        """All C functions that headers declare, operators' phases included."""
        for entry in self.entries("functions"):
            if entry.get("declared", True):
                yield entry
        for operator in self.operators():
            yield from phases(operator)
        yield from self.files["aclnn"]["helpers"]

    def operators(self):
        return self.files["aclnn"]["operators"]


def phases(operator):
    """The two functions of an operator."""
    name = f"aclnn{operator['name']}"
    rest = {"returns": "aclnnStatus", "header": operator["header"],
            "library": "libopapi.so", "source": operator["source"]}
    size = [["uint64_t*", "workspaceSize"], ["aclOpExecutor**", "executor"]]
    yield {"name": f"{name}GetWorkspaceSize", "args": operator["args"] + size,
           **rest}
    yield {"name": name, "args": PHASE_2, **rest}


def declarator(kind, name):
    """C declaration of `name`; arrays stand behind the type: 'char [32]'."""
    base, _, array = kind.partition("[")
    return f"{base.strip()} {name}" + (f"[{array}" if array else "")


def parameters(args):
    return ", ".join(t if t == "..." else declarator(t, n)
                     for t, n in args) or "void"
