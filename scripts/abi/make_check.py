#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a C++ file that compiles only against headers that fit data/abi.

    make_check.py --abi data/abi --out check.cc [--only acl nnopbase hccl]

Each enum value, macro, size and offset of a struct and each function's type
becomes a static_assert. Headers that the toolkit installs are named by include
path, so that the same check serves cannsim's headers and any others.
"""

import argparse
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import manifest  # noqa: E402 (needs the line above)


def check(condition, message):
    return f'static_assert({condition}, "{message}");'


def type_id(kind):
    """A C++ type for std::is_same; arrays stand behind: 'char[32]'."""
    return re.sub(r"\s*\[", "[", kind)


def check_types(file):
    for entry in file["types"]:
        yield check(f"std::is_same_v<{entry['name']}, {entry['c']}>",
                    entry["name"])
    for entry in file["opaque"]:
        yield check(f"std::is_class_v<{entry['name']}>", entry["name"])


def check_values(file):
    for enum in file["enums"]:
        yield check(f"std::is_enum_v<{enum['name']}> && "
                    f"sizeof({enum['name']}) == 4", enum["name"])
        for name, value in enum["values"].items():
            yield check(f"std::is_same_v<decltype({name}), {enum['name']}> && "
                        f"static_cast<long long>({name}) == {value}LL",
                        f"{name} is {value}")
    for macro in file["macros"]:
        name, value = macro["name"], macro["value"]
        if isinstance(value, str):
            yield check(f'std::string_view({name}) == "{value}"', name)
        else:
            yield check(f"static_cast<long long>({name}) == {value}LL",
                        f"{name} is {value}")


def offset(kind):
    base, _, array = kind.partition("[")
    return base.strip(), f"[{array}" if array else ""


def check_struct(struct):
    """The layout against a struct of our own with the manifest's fields."""
    name = struct["name"]
    lines = [f"struct Expected_{name} {{"]
    for kind, field in struct["fields"]:
        base, array = offset(kind)
        lines.append(f"  {base} {field}{array};")
    lines.append("};")
    if "size" in struct:
        lines.append(check(f"sizeof({name}) == {struct['size']}",
                           f"size of {name}"))
    lines.append(check(f"sizeof({name}) == sizeof(Expected_{name})",
                       f"size of {name}"))
    for kind, field in struct["fields"]:
        base, array = offset(kind)
        lines.append(check(
            f"offsetof({name}, {field}) == offsetof(Expected_{name}, {field})"
            f" && std::is_same_v<decltype({name}::{field}), {base}{array}>",
            f"{name}::{field}"))
    return lines


def check_function(entry):
    args = ", ".join(type_id(t) if "[" not in t else array_parameter(t)
                     for t, _ in entry["args"])
    return check(f"std::is_same_v<decltype(&{entry['name']}), "
                 f"{entry['returns']} (*)({args})>", entry["name"])


def array_parameter(kind):
    """The pointer that an array parameter really is."""
    base, array = offset(kind)
    rest = array[2:] if array.startswith("[]") else array
    if not rest:
        return f"{base}*"
    return f"{base} (*){rest}"


def generate(abi, only):
    headers, body = set(), []
    for name in only:
        file = abi.files[name]
        if name == "aclnn":
            entries = [p for o in file["operators"] for p in manifest.phases(o)]
            entries += file["helpers"]
            headers |= {f"aclnnop/{e['header']}" for e in entries}
            headers |= {f"aclnnop/{h}" for h in
                        file["headers_without_operators"]["headers"]}
        else:
            body += check_types(file)
            body += check_values(file)
            for struct in file["structs"]:
                body += check_struct(struct)
            entries = [e for e in file["functions"] if e.get("declared", True)]
            headers |= {e["header"] for e in entries}
            headers |= {m["header"] for m in file["macros"]}
        body += [check_function(e) for e in entries]
    includes = "\n".join(f'#include "{h}"' for h in sorted(headers))
    text = "\n".join(body)
    return ("// SPDX-License-Identifier: Apache-2.0\n"
            "// Generated from data/abi by scripts/abi/make_check.py.\n"
            "#include <cstddef>\n#include <cstdint>\n#include <string_view>\n"
            f"#include <type_traits>\n\n{includes}\n\n{text}\n"
            "int CannsimAbiCheckHasCompiled() { return 0; }\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--abi", required=True)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--only", nargs="+", choices=manifest.FILES,
                        default=manifest.FILES)
    args = parser.parse_args()
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(generate(manifest.Manifest(args.abi), args.only))
    return 0


if __name__ == "__main__":
    sys.exit(main())
