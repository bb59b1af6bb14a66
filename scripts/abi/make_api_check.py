#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a C++ file that compiles only if src/cann_api/abi fits data/abi.

    make_api_check.py --abi data/abi --api src/cann_api/abi --out check.cc

The headers declare the part of CANN that Belay calls, as lists and enums of
its own namespace. Every name in them must be in the manifest; its value or
type becomes a static_assert.
"""

import argparse
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import manifest  # noqa: E402 (needs the line above)

HEADERS = ("types.h", "codes.h", "functions.h", "operators.h")
START = """// SPDX-License-Identifier: Apache-2.0
// Generated from data/abi by scripts/abi/make_api_check.py.
#include <type_traits>

#include "cann_api/abi/codes.h"
#include "cann_api/abi/functions.h"
#include "cann_api/abi/operators.h"
#include "cann_api/abi/types.h"

namespace belay::cann_api {
namespace {
#define BELAY_FUNCTION(name, type, cost) using Type_##name = type;
BELAY_ACL_FUNCTIONS(BELAY_FUNCTION)
#define BELAY_OPERATOR(name, args) using Args_##name = void args;
BELAY_ACLNN_OPERATORS(BELAY_OPERATOR)
BELAY_ACLNN_OPTIONAL_OPERATORS(BELAY_OPERATOR)
#define BELAY_CODE(name, value) constexpr long long kCode_##name = value;
BELAY_ACL_CODES(BELAY_CODE)
"""
END = """}  // namespace
}  // namespace belay::cann_api
int CannApiCheckHasCompiled() { return 0; }
"""


class Unknown(Exception):
    pass


def find(table, name):
    if name not in table:
        raise Unknown(f"{name} is not in data/abi")
    return table[name]


def check(condition, name):
    return f'static_assert({condition}, "{name}");'


def types(args):
    return ", ".join(kind for kind, _ in args)


def check_types(text, abi):
    aliases = {t["name"]: t["c"] for t in abi.entries("types")}
    for name in re.findall(r"^using (\w+) =", text, re.M):
        yield check(f"std::is_same_v<{name}, {find(aliases, name)}>", name)
    opaque = {t["name"] for t in abi.entries("opaque")}
    for name in re.findall(r"^struct (\w+);", text, re.M):
        if name not in opaque:
            raise Unknown(f"{name} is not in data/abi")
    enums = {e["name"]: e["values"] for e in abi.entries("enums")}
    for enum, body in re.findall(r"^enum (\w+) : int \{(.*?)\};", text,
                                 re.M | re.S):
        values = find(enums, enum)
        yield check(f"sizeof({enum}) == 4", enum)
        for name in re.findall(r"^\s+(\w+) =", body, re.M):
            yield check(f"static_cast<long long>({name}) == "
                        f"{find(values, name)}LL", name)


def check_lists(texts, abi):
    macros = {m["name"]: m["value"] for m in abi.entries("macros")}
    for name in re.findall(r"X\((\w+), -?\d+\)", texts["codes.h"]):
        yield check(f"kCode_{name} == {find(macros, name)}LL", name)
    functions = {f["name"]: f for f in abi.functions()}
    for name in re.findall(r"^  X\((\w+), ", texts["functions.h"], re.M):
        entry = find(functions, name)
        yield check(f"std::is_same_v<Type_{name}, "
                    f"{entry['returns']}({types(entry['args'])})>", name)
    operators = {o["name"]: o for o in abi.operators()}
    for name in re.findall(r"^  X\((\w+), ", texts["operators.h"], re.M):
        args = types(find(operators, name)["args"])
        yield check(f"std::is_same_v<Args_{name}, void({args})>", name)


def generate(abi, texts):
    lines = list(check_types(texts["types.h"], abi))
    lines += check_lists(texts, abi)
    return START + "\n".join(lines) + "\n" + END


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--abi", required=True)
    parser.add_argument("--api", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    args = parser.parse_args()
    texts = {name: (args.api / name).read_text() for name in HEADERS}
    try:
        text = generate(manifest.Manifest(args.abi), texts)
    except Unknown as unknown:
        print(f"make_api_check: {unknown}", file=sys.stderr)
        return 1
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
