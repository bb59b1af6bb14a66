#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes aclnnop/aclnn_<op>.h: the operators' headers, from data/abi.

    make_headers.py --abi data/abi --out DIR

They hold two declarations an operator and nothing else, so writing them by
hand could only add mistakes. The headers of the runtime are written by hand
and checked against the same manifest (make_check.py).
"""

import argparse
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import manifest  # noqa: E402 (needs the line above)

OPERATOR = """
// Phase 1: checks the arguments and makes an executor.
aclnnStatus {name}GetWorkspaceSize(
    {args},
    uint64_t* workspaceSize, aclOpExecutor** executor);
// Phase 2: queues the work and consumes the executor.
aclnnStatus {name}(void* workspace, uint64_t workspaceSize,
    aclOpExecutor* executor, aclrtStream stream);
"""


def header(name, operators, helpers):
    guard = "CANNSIM_ACLNNOP_" + re.sub(r"\W", "_", name).upper() + "_"
    text = ["// SPDX-License-Identifier: Apache-2.0\n"
            "// Generated from data/abi/aclnn.json by "
            "scripts/abi/make_headers.py.\n"]
    if not operators and not helpers:
        text.append("// Clients include it; its operators are not known here.\n")
    text.append(f"#ifndef {guard}\n#define {guard}\n\n"
                '#include "aclnn/aclnn_base.h"\n\n'
                '#ifdef __cplusplus\nextern "C" {\n#endif\n')
    for helper in helpers:
        text.append(f"\n{helper['returns']} {helper['name']}("
                    f"{manifest.parameters(helper['args'])});\n")
    for operator in operators:
        args = [manifest.declarator(t, n) for t, n in operator["args"]]
        text.append(OPERATOR.format(name=f"aclnn{operator['name']}",
                                    args=",\n    ".join(args)))
    text.append("\n#ifdef __cplusplus\n}\n#endif\n\n"
                f"#endif  // {guard}\n")
    return "".join(text)


def headers(abi):
    """{file name: text} of all operator headers."""
    aclnn = abi.files["aclnn"]
    by_name = {name: ([], [])
               for name in aclnn["headers_without_operators"]["headers"]}
    for operator in aclnn["operators"]:
        by_name.setdefault(operator["header"], ([], []))[0].append(operator)
    for helper in aclnn["helpers"]:
        by_name.setdefault(helper["header"], ([], []))[1].append(helper)
    return {name: header(name, *parts) for name, parts in by_name.items()}


def write_if_changed(path, text):
    """A file that did not change keeps its time: nothing is rebuilt."""
    if not path.is_file() or path.read_text() != text:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--abi", required=True)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--stamp", type=pathlib.Path)
    args = parser.parse_args()
    made = headers(manifest.Manifest(args.abi))
    for name, text in made.items():
        write_if_changed(args.out / name, text)
    for old in args.out.glob("*.h"):
        if old.name not in made:
            old.unlink()
    if args.stamp:
        args.stamp.write_text(f"{len(made)} headers\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
