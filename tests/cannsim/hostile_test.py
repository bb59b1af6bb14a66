#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Operators of DeepSeek-V4 with arguments that do not fit: any answer is right,
but the process must live to give it.

    hostile_test.py TOOLKIT ABI.json PROFILE GENERATION VECTORS.jsonl [SEED] [N]

Each case that should work is changed N times in one or two arguments: shapes,
dtypes, strides, contents, numbers, nulls.
"""

import collections
import copy
import ctypes
import json
import math
import os
import pathlib
import random
import sys

import ops_test

NUMBERS = [0, 1, -1, 2, 3, 5, 2 ** 31, -2 ** 31, 2 ** 63 - 1, -2 ** 63]


def changed_tensor(spec, rng):
    spec = copy.deepcopy(spec)
    dims = spec["dims"]
    strides = spec.get("strides") or [math.prod(dims[i + 1:])
                                      for i in range(len(dims))]
    way = rng.randrange(8)
    axis = rng.randrange(len(dims)) if dims else 0
    if way < 3 and dims:
        dims[axis] = (dims[axis] // 2, 0, 1)[way]
    elif way == 3:
        dims[:], strides = [], []
    elif way == 4 and dims:
        del dims[-1], strides[-1]
    elif way == 5:
        dims.insert(0, 1)
        strides.insert(0, 0)
    elif way == 6 and "hex" in spec:
        spec["dtype"] = rng.choice(["INT8", "UINT8", "BOOL", "FLOAT8_E4M3FN"])
    elif "hex" in spec:
        data = bytearray.fromhex(spec["hex"])
        for _ in range(4):
            data[rng.randrange(len(data))] = rng.randrange(256)
        spec["hex"] = data.hex()
    return {"offset": 0, **spec, "strides": strides}


def changed(argument, kind, rng):
    if isinstance(argument, dict):
        if rng.random() < 0.1:
            return None
        if "tensor" in argument:
            return {"tensor": changed_tensor(argument["tensor"], rng)}
        if "list" in argument:
            return {"list": [changed_tensor(t, rng) for t in argument["list"]]}
        if "ints" in argument:
            return {"ints": [rng.choice(NUMBERS) for _ in argument["ints"]]}
        return argument
    if isinstance(argument, bool):
        return not argument
    if kind == "int64_t":
        return rng.choice(NUMBERS)
    if kind == "double":
        return rng.choice([0.0, -1.0, math.nan, math.inf])
    return argument


def run(toolkit, signature, case):
    """What the two phases and the wait said."""
    call = ops_test.Call(toolkit, signature, case)
    name = f"aclnn{case['op']}"
    size, executor = ctypes.c_uint64(), ctypes.c_void_p()
    code = toolkit.find(f"{name}GetWorkspaceSize")(
        *call.args, ctypes.byref(size), ctypes.byref(executor))
    if code == 0:
        code = toolkit.find(name)(None, ctypes.c_uint64(0), executor,
                                  toolkit.stream)
        wait = toolkit.acl.aclrtSynchronizeStream(toolkit.stream)
        code = code or wait
    for function, handle in call.destroy:
        function(handle)
    call.free()
    return code


def main():
    folder, abi, profile, generation, vectors, *rest = sys.argv[1:]
    seed, n = (int(x) for x in rest + ["1", "2"][len(rest):])
    operators = {o["name"]: o["args"] for o in json.loads(
        pathlib.Path(abi).read_text())["operators"]}
    os.environ["CANNSIM_PROFILE"] = profile
    toolkit = ops_test.Toolkit(folder, generation)
    rng = random.Random(seed)
    codes = collections.Counter()
    for number, line in enumerate(
            pathlib.Path(vectors).read_text().splitlines(), 1):
        case = json.loads(line)
        if generation not in case["soc"] or "code" in case:
            continue
        signature = operators[case["op"]]
        for _ in range(n):
            hostile = copy.deepcopy(case)
            for _ in range(rng.choice([1, 1, 2])):
                i = rng.randrange(len(signature))
                hostile["args"][i] = changed(hostile["args"][i],
                                             signature[i][0], rng)
            # The last line before a crash names the case.
            print(f"line {number}: {case['op']}", flush=True)
            try:
                codes[run(toolkit, signature, hostile)] += 1
            except RuntimeError:  # aclCreateTensor refuses it already
                codes["no tensor"] += 1
    print(f"hostile_test: {sum(codes.values())} calls: {dict(codes)}")
    # Something has to get through, and something to be refused.
    fine = codes[0] > 0 and codes[161002] > 0 and codes[161001] > 0
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
