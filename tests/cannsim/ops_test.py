#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Operators of cannsim against vectors.jsonl (make_vectors.py), through the C
interface as a client uses it: two phases, descriptors destroyed right after
the second, buffers on the device. Argument types come from data/abi.

    ops_test.py TOOLKIT ABI.json PROFILE GENERATION VECTORS.jsonl ...

Runs the cases that name no generation, or this one. Shows also which operators
this generation has: custom ones by their symbols, CANN's by what phase 1 says.
"""

import collections
import ctypes
import json
import math
import os
import pathlib
import struct
import sys

DTYPES = {"FLOAT": 0, "FLOAT16": 1, "INT8": 2, "INT32": 3, "UINT8": 4,
          "INT16": 6, "INT64": 9, "DOUBLE": 11, "BOOL": 12, "BF16": 27,
          "INT4": 29, "FLOAT8_E5M2": 35, "FLOAT8_E4M3FN": 36,
          "FLOAT8_E8M0": 37, "FLOAT4_E2M1": 40}
SIZES = {"FLOAT": 4, "FLOAT16": 2, "INT8": 1, "INT32": 4, "UINT8": 1,
         "INT16": 2, "INT64": 8, "DOUBLE": 8, "BOOL": 1, "BF16": 2}
CODES = {"FLOAT": "f", "FLOAT16": "e", "INT8": "b", "INT32": "i", "UINT8": "B",
         "INT16": "h", "INT64": "q", "DOUBLE": "d", "BOOL": "B"}
NIBBLES = ("INT4", "FLOAT4_E2M1")
for _name in ("FLOAT8_E5M2", "FLOAT8_E4M3FN", "FLOAT8_E8M0"):
    SIZES[_name], CODES[_name] = 1, "B"  # compared as codes
# Half a unit in the last place, relative, and the smallest step.
HALF_ULP = {"FLOAT": (2.0 ** -24, 2.0 ** -150), "FLOAT16": (2 ** -11, 2 ** -25),
            "BF16": (2.0 ** -8, 2.0 ** -134)}
SCALARS = {"int64_t": ctypes.c_int64, "int8_t": ctypes.c_int8,
           "int32_t": ctypes.c_int32, "int": ctypes.c_int,
           "double": ctypes.c_double, "float": ctypes.c_float,
           "bool": ctypes.c_bool, "aclDataType": ctypes.c_int}
ND = 2
FRACTAL_NZ = 29


def count_of(data, dtype):
    return len(data) * 2 if dtype in NIBBLES else len(data) // SIZES[dtype]


def decode(data, dtype):
    if dtype in NIBBLES:
        codes = [half for byte in data for half in (byte & 15, byte >> 4)]
        return [c - 16 if c >= 8 and dtype == "INT4" else c for c in codes]
    n = len(data) // SIZES[dtype]
    if dtype == "BF16":
        halves = struct.unpack(f"<{n}H", data)
        return [struct.unpack("<f", struct.pack("<I", h << 16))[0]
                for h in halves]
    return list(struct.unpack(f"<{n}{CODES[dtype]}", data))


def generated(spec):
    """Storage that a case describes by a seed: see Filled in v4_vectors.py."""
    seed, scale, dtype = spec["seed"], spec["scale"], spec["dtype"]
    numbers = []
    for i in range(spec["n"]):
        h = (i * 2654435761 + seed * 2246822519) & 0xffffffff
        h = ((h ^ h >> 15) * 3266489917) & 0xffffffff
        numbers.append((h ^ h >> 13) >> 24)
    if dtype == "FLOAT8_E4M3FN":  # as codes, of which two are no numbers
        return bytes(n - (n & 0x7f == 0x7f) for n in numbers)
    if dtype == "INT8":
        return struct.pack(f"<{len(numbers)}b", *(n - 128 for n in numbers))
    floats = [(n - 128) * scale for n in numbers]
    if dtype == "BF16":
        raw = struct.pack(f"<{len(floats)}f", *floats)
        return b"".join(raw[i + 2:i + 4] for i in range(0, len(raw), 4))
    return struct.pack(f"<{len(floats)}{CODES[dtype]}", *floats)


class Toolkit:
    """The libraries, with only what the test needs."""

    def __init__(self, folder, generation):
        lib64 = pathlib.Path(folder) / "lib64"
        self.acl = ctypes.CDLL(str(lib64 / "libascendcl.so"),
                               mode=ctypes.RTLD_GLOBAL)
        self.nnop = ctypes.CDLL(str(lib64 / "libnnopbase.so"),
                                mode=ctypes.RTLD_GLOBAL)
        self.ops = ctypes.CDLL(str(lib64 / "libopapi.so"))
        self.custom = ctypes.CDLL(str(
            pathlib.Path(folder) / "opp" / "vendors" / f"cannsim_{generation}"
            / "op_api" / "lib" / "libcust_opapi.so"))
        for name in ("aclCreateTensor", "aclCreateScalar", "aclCreateIntArray",
                     "aclCreateBoolArray", "aclCreateTensorList"):
            getattr(self.nnop, name).restype = ctypes.c_void_p
        self.acl.aclGetRecentErrMsg.restype = ctypes.c_char_p
        self.ok(self.acl.aclInit(None))
        self.ok(self.acl.aclrtSetDevice(0))
        self.stream = ctypes.c_void_p()
        self.ok(self.acl.aclrtCreateStream(ctypes.byref(self.stream)))

    def find(self, name):
        """A function by name, custom packages first, as clients look."""
        return getattr(self.custom, name, None) or getattr(self.ops, name)

    def message(self):
        return self.acl.aclGetRecentErrMsg().decode()

    def ok(self, code):
        if code != 0:
            raise RuntimeError(f"{code}: {self.message()}")

    def to_device(self, data):
        address = ctypes.c_void_p()
        size = max(len(data), 1)
        self.ok(self.acl.aclrtMalloc(ctypes.byref(address),
                                     ctypes.c_size_t(size), 0))
        if data:
            self.ok(self.acl.aclrtMemcpy(address, ctypes.c_size_t(size), data,
                                         ctypes.c_size_t(len(data)), 1))
        return address

    def from_device(self, address, size):
        data = ctypes.create_string_buffer(size)
        self.ok(self.acl.aclrtMemcpy(data, ctypes.c_size_t(size), address,
                                     ctypes.c_size_t(size), 2))
        return data.raw


class Tensor:
    def __init__(self, toolkit, spec, data_format=ND):
        self.spec = spec
        self.toolkit = toolkit
        self.before = (bytes.fromhex(spec["hex"]) * spec.get("repeat", 1)
                       if "hex" in spec else generated(spec))
        self.address = toolkit.to_device(self.before)
        dims = spec["dims"]
        n_storage = count_of(self.before, spec["dtype"])
        strides = spec.get("strides")
        array = ctypes.c_int64 * max(len(dims), 1)
        self.handle = ctypes.c_void_p(toolkit.nnop.aclCreateTensor(
            array(*dims), ctypes.c_uint64(len(dims)), DTYPES[spec["dtype"]],
            array(*strides) if strides is not None else None,
            ctypes.c_int64(spec.get("offset", 0)), data_format,
            (ctypes.c_int64 * 1)(n_storage), ctypes.c_uint64(1),
            self.address))
        if not self.handle:
            raise RuntimeError(toolkit.message())

    def offsets(self):
        dims = self.spec["dims"]
        strides = self.spec.get("strides")
        if strides is None:
            strides = [math.prod(dims[i + 1:]) for i in range(len(dims))]
        at = [self.spec.get("offset", 0)]
        for dim, stride in zip(dims, strides):
            at = [a + i * stride for a in at for i in range(dim)]
        return at

    def compare(self, want):
        """What is wrong with the contents, or None."""
        dtype = self.spec["dtype"]
        data = self.toolkit.from_device(self.address, len(self.before))
        got, before = decode(data, dtype), decode(self.before, dtype)
        at = self.offsets()
        step = 1
        if isinstance(want, dict):  # a sample of a large result
            step, want = want["every"], want["values"]
        if len(want) != len(at[::step]):
            return f"{len(want)} values for {len(at[::step])} elements"
        for i, (offset, expected) in enumerate(zip(at[::step], want)):
            if not close(got[offset], expected, dtype):
                return f"element {i * step}: {got[offset]!r}, not {expected!r}"
        inside = set(at)
        for i, (now, then) in enumerate(zip(got, before)):
            if i not in inside and now != then:
                return f"storage element {i}, outside the view, was written"
        return None

    def free(self):
        self.toolkit.ok(self.toolkit.acl.aclrtFree(self.address))


def close(got, want, dtype):
    if dtype not in HALF_ULP:
        return got == want
    if math.isnan(want) or math.isinf(want):
        return got == want or (math.isnan(want) and math.isnan(got))
    relative, smallest = HALF_ULP[dtype]
    # A little more than half: both sides compute in double precision.
    return abs(got - want) <= (relative * abs(want) + smallest) * (1 + 1e-5)


class Call:
    """One case: arguments made, run, compared, freed."""

    def __init__(self, toolkit, signature, case):
        self.toolkit, self.case = toolkit, case
        self.tensors, self.destroy = {}, []
        self.args = [self.argument(i, kind, value) for i, ((kind, _), value)
                     in enumerate(zip(signature, case["args"]))]
        if len(signature) != len(case["args"]):
            raise RuntimeError("the case has another number of arguments")

    def argument(self, i, kind, value):
        nnop = self.toolkit.nnop
        if value is None:
            return None
        if not isinstance(value, dict):
            return SCALARS[kind.removeprefix("const ")](value)
        if "tensor" in value:
            self.tensors[i] = Tensor(self.toolkit, value["tensor"],
                                     self.case.get("format", ND))
            self.destroy.append((nnop.aclDestroyTensor,
                                 self.tensors[i].handle))
            return self.tensors[i].handle
        if "scalar" in value:
            code = CODES[value["dtype"]]
            number = value["scalar"]
            raw = struct.pack("<" + code,
                              number if code in "fde" else int(number))
            handle = ctypes.c_void_p(nnop.aclCreateScalar(
                raw, DTYPES[value["dtype"]]))
            self.destroy.append((nnop.aclDestroyScalar, handle))
            return handle
        if "text" in value:
            return ctypes.c_char_p(value["text"].encode())
        if "bools" in value:
            n = len(value["bools"])
            handle = ctypes.c_void_p(nnop.aclCreateBoolArray(
                (ctypes.c_bool * max(n, 1))(*value["bools"]),
                ctypes.c_uint64(n)))
            self.destroy.append((nnop.aclDestroyBoolArray, handle))
            return handle
        if "ints" in value:
            n = len(value["ints"])
            handle = ctypes.c_void_p(nnop.aclCreateIntArray(
                (ctypes.c_int64 * max(n, 1))(*value["ints"]),
                ctypes.c_uint64(n)))
            self.destroy.append((nnop.aclDestroyIntArray, handle))
            return handle
        members = [Tensor(self.toolkit, spec) for spec in value["list"]]
        for k, member in enumerate(members):
            self.tensors[f"{i}.{k}"] = member
        handle = ctypes.c_void_p(nnop.aclCreateTensorList(
            (ctypes.c_void_p * len(members))(*[m.handle for m in members]),
            ctypes.c_uint64(len(members))))
        # The list owns its members.
        self.destroy.append((nnop.aclDestroyTensorList, handle))
        return handle

    def run(self):
        """What went wrong, or None."""
        toolkit, name = self.toolkit, f"aclnn{self.case['op']}"
        size, executor = ctypes.c_uint64(), ctypes.c_void_p()
        code = toolkit.find(f"{name}GetWorkspaceSize")(
            *self.args, ctypes.byref(size), ctypes.byref(executor))
        wanted = self.case.get("code", 0)
        message = toolkit.message()
        if code == 0 and wanted == 0:
            code = toolkit.find(name)(
                None, ctypes.c_uint64(0), executor, toolkit.stream)
            message = toolkit.message()
        for function, handle in self.destroy:  # before it has run
            function(handle)
        if code != wanted:
            return f"returned {code}, not {wanted}: {message}"
        if code != 0:
            return None if name in message else f"no message: {message!r}"
        code = toolkit.acl.aclrtSynchronizeStream(toolkit.stream)
        if code != self.case.get("run_code", 0):
            return f"ran into {code}: {toolkit.message()}"
        for i, want in self.case.get("expect", {}).items():
            wrong = self.tensors[i if "." in i else int(i)].compare(want)
            if wrong:
                return f"argument {i}: {wrong}"
        return None

    def free(self):
        for tensor in self.tensors.values():
            tensor.free()


def check_protocol(toolkit):
    """Null streams, executors used twice, repeatable ones, null sizes."""
    faults = []
    spec = {"dims": [4], "dtype": "FLOAT", "hex": struct.pack(
        "<4f", 1, -2, 3, -4).hex()}
    x, y = Tensor(toolkit, spec), Tensor(toolkit, spec)
    size, executor = ctypes.c_uint64(9), ctypes.c_void_p()
    phase1 = toolkit.ops.aclnnAbsGetWorkspaceSize
    phase2 = toolkit.ops.aclnnAbs

    def expect(code, wanted, what):
        if code != wanted:
            faults.append(f"{what}: {code}, not {wanted}: {toolkit.message()}")

    def prepare():
        expect(phase1(x.handle, y.handle, ctypes.byref(size),
                      ctypes.byref(executor)), 0, "phase 1")

    expect(phase1(x.handle, y.handle, None, ctypes.byref(executor)), 161001,
           "null size")
    prepare()
    expect(phase2(None, ctypes.c_uint64(0), executor, None), 0, "null stream")
    if y.compare([1, 2, 3, 4]):  # done without waiting
        faults.append("null stream: not done at return")
    expect(phase2(None, ctypes.c_uint64(0), executor, None), 561102,
           "the same executor again")
    prepare()
    expect(toolkit.ops.aclnnNeg(None, ctypes.c_uint64(0), executor, None),
           561102, "another operator's executor")
    expect(toolkit.nnop.aclSetAclOpExecutorRepeatable(executor), 0,
           "repeatable")
    z = Tensor(toolkit, spec)
    for _ in range(3):
        expect(phase2(None, ctypes.c_uint64(0), executor, toolkit.stream), 0,
               "repeated")
    expect(toolkit.nnop.aclSetOutputTensorAddr(
        executor, ctypes.c_size_t(0), y.handle, z.address), 0, "new address")
    expect(toolkit.nnop.aclSetOutputTensorAddr(
        executor, ctypes.c_size_t(1), y.handle, z.address), 161002,
        "no such output")
    expect(phase2(None, ctypes.c_uint64(0), executor, toolkit.stream), 0,
           "with the new address")
    toolkit.ok(toolkit.acl.aclrtSynchronizeStream(toolkit.stream))
    if z.compare([1, 2, 3, 4]):
        faults.append("the new address was not written")
    expect(toolkit.nnop.aclDestroyAclOpExecutor(executor), 0, "destroy")
    expect(toolkit.nnop.aclDestroyAclOpExecutor(executor), 561103,
           "destroy again")
    y.free()
    prepare()  # the address is gone, which phase 1 does not look at
    expect(phase2(None, ctypes.c_uint64(0), executor, None), 361001,
           "memory that was freed")
    return faults


def check_nz_weights(toolkit):
    """Weights in the NZ format with the strides of a plain matrix and a storage
    of one axis, transformed on a null stream: as ggml declares them."""
    faults = []

    def tensor(dims, numbers, strides=None, data_format=ND):
        spec = {"dims": dims, "dtype": "FLOAT",
                "hex": struct.pack(f"<{len(numbers)}f", *numbers).hex()}
        if strides:
            spec["strides"] = strides
        return Tensor(toolkit, spec, data_format)

    x = tensor([2, 3], [1, 2, 3, 4, 5, 6])
    weight = tensor([3, 2], [1, 0, 2, 0, 1, -1], [1, 3], FRACTAL_NZ)
    y = tensor([2, 2], [0, 0, 0, 0])
    size, executor = ctypes.c_uint64(), ctypes.c_void_p()
    toolkit.ok(toolkit.ops.aclnnTransMatmulWeightGetWorkspaceSize(
        weight.handle, ctypes.byref(size), ctypes.byref(executor)))
    toolkit.ok(toolkit.ops.aclnnTransMatmulWeight(
        None, ctypes.c_uint64(0), executor, None))
    toolkit.ok(toolkit.ops.aclnnMmGetWorkspaceSize(
        x.handle, weight.handle, y.handle, ctypes.c_int8(2),
        ctypes.byref(size), ctypes.byref(executor)))
    toolkit.ok(toolkit.ops.aclnnMm(None, ctypes.c_uint64(0), executor,
                                   toolkit.stream))
    toolkit.ok(toolkit.acl.aclrtSynchronizeStream(toolkit.stream))
    wrong = y.compare([7, -1, 16, -1])
    if wrong:
        faults.append(f"NZ weights: {wrong}")
    shape = ctypes.c_void_p(toolkit.nnop.aclCreateIntArray(
        (ctypes.c_int64 * 2)(3, 2), ctypes.c_uint64(2)))
    toolkit.ok(toolkit.ops.aclnnCalculateMatmulWeightSizeV2(
        shape, 1, ctypes.byref(size)))
    if size.value != 6:
        faults.append(f"size of a weight: {size.value} elements, not 6")
    return faults


# Declared, so that clients compile, but in no library.
NOT_SIMULATED = {"IndexerCompressEpilogV2", "MoeDistributeDispatchV2",
                 "MoeDistributeCombineV2"}


def check_presence(toolkit, operators, generation):
    """Custom operators that the generation lacks have no symbol; CANN's own are
    there and say 561003 before they look at an argument."""
    faults = []
    for name, operator in operators.items():
        if "soc" not in operator or name in NOT_SIMULATED:
            continue
        wanted = generation in operator["soc"]
        if operator.get("package") == "custom":
            for symbol in (f"aclnn{name}", f"aclnn{name}GetWorkspaceSize"):
                if hasattr(toolkit.custom, symbol) != wanted:
                    faults.append(f"{symbol}: there or not, against data/abi")
                if hasattr(toolkit.ops, symbol):
                    faults.append(f"{symbol}: custom, but in libopapi.so")
            continue
        size, executor = ctypes.c_uint64(), ctypes.c_void_p()
        code = getattr(toolkit.ops, f"aclnn{name}GetWorkspaceSize")(
            *[SCALARS[kind](0) if kind in SCALARS else None
              for kind, _ in operator["args"]],
            ctypes.byref(size), ctypes.byref(executor))
        if (code == 561003) == wanted or code == 0:
            faults.append(f"{name}: {code} of null arguments: "
                          f"{toolkit.message()}")
    return faults


def run_cases(toolkit, operators, generation, path, seen):
    faults = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        case = json.loads(line)
        if generation not in case.get("soc", [generation]):
            continue
        call = Call(toolkit, operators[case["op"]]["args"], case)
        wrong = call.run()
        call.free()
        seen[case["op"]] += 1
        if wrong:
            faults.append(f"{path.name} line {number}, {case['op']}: {wrong}")
    return faults


def main():
    folder, abi, profile, generation, *vectors = sys.argv[1:]
    operators = {o["name"]: o for o in json.loads(
        pathlib.Path(abi).read_text())["operators"]}
    os.environ.update(CANNSIM_PROFILE=profile, CANNSIM_STRICT="1")
    toolkit = Toolkit(folder, generation)
    faults = check_protocol(toolkit) + check_nz_weights(toolkit)
    faults += check_presence(toolkit, operators, generation)
    seen = collections.Counter()
    for path in map(pathlib.Path, vectors):
        faults += run_cases(toolkit, operators, generation, path, seen)
    # An operator without a vector is not shown to be right.
    for name, operator in operators.items():
        there = (generation in operator["soc"] and name not in NOT_SIMULATED
                 if "soc" in operator else
                 hasattr(toolkit.ops, f"aclnn{name}") and len(vectors) > 1)
        if there and name not in seen and name != "TransMatmulWeight":
            faults.append(f"{name}: no vector")
    for fault in faults[:40]:
        print(f"ops_test: {fault}")
    print(f"ops_test: {sum(seen.values())} cases of {len(seen)} operators, "
          f"{len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
