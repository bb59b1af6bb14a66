# SPDX-License-Identifier: Apache-2.0
"""What the cases of DeepSeek-V4's operators add to vectors.py: quantised
numbers as codes, storages that a seed describes, samples of large results."""

import json

import numpy as np
import vectors
from vectors import Tensor

ALL = ["A2", "A3", "A5"]
OLD = ["A2", "A3"]
NEW = ["A5"]
CODED = {"FLOAT8_E4M3FN": np.uint8, "FLOAT8_E5M2": np.uint8,
         "FLOAT8_E8M0": np.uint8}
vectors.NUMPY.update(CODED)


def e4m3_table():
    """Values of the codes 0 .. 126, by the definition of the format."""
    code = np.arange(127)
    exponent, mantissa = code >> 3, code & 7
    return np.where(exponent == 0, np.ldexp(mantissa / 8.0, -6),
                    np.ldexp(1 + mantissa / 8.0, exponent - 7))


def e5m2_table():
    code = np.arange(124)
    exponent, mantissa = code >> 2, code & 3
    return np.where(exponent == 0, np.ldexp(mantissa / 4.0, -14),
                    np.ldexp(1 + mantissa / 4.0, exponent - 15))


TABLES = {"FLOAT8_E4M3FN": (e4m3_table(), 128),
          "FLOAT8_E5M2": (e5m2_table(), 128),
          "FLOAT4_E2M1": (np.array([0, .5, 1, 1.5, 2, 3, 4, 6]), 8)}


def to_codes(x, dtype):
    """Nearest code, ties to the even one, saturating; -0 is kept."""
    x = np.asarray(x, np.float64)
    table, sign = TABLES[dtype]
    size = np.minimum(np.abs(x), table[-1])
    low = np.clip(np.searchsorted(table, size, "right") - 1, 0,
                  len(table) - 2)
    down, up = size - table[low], table[low + 1] - size
    code = low + ((up < down) | ((up == down) & (low % 2 == 1)))
    return code + sign * np.signbit(x)


def from_codes(codes, dtype):
    codes = np.asarray(codes).astype(int)
    if dtype == "FLOAT8_E8M0":
        return np.ldexp(1.0, codes - 127)
    if dtype not in TABLES:
        return codes.astype(np.float64)
    table, sign = TABLES[dtype]
    return np.where(codes >= sign, -1, 1) * table[codes % sign]


class Coded(Tensor):
    """Given by its codes (integers of INT4 and INT8 are their own); `v` are
    the numbers."""

    def __init__(self, codes, dtype, layout="plain"):
        self.dtype = dtype
        codes = np.asarray(codes, np.float64)
        super().__init__(codes, "INT8", layout)
        self.dtype = dtype
        self.v = from_codes(codes, dtype)


class Filled:
    """A storage of n numbers that a seed describes, seen through strides (which
    may overlap). Numbers are integers of 8 bits times `scale`, or, for E4M3,
    codes."""

    def __init__(self, dims, dtype, seed, scale=1.0, strides=None):
        self.dims, self.dtype = list(dims), dtype
        full = [int(np.prod(dims[i + 1:])) for i in range(len(dims))]
        self.strides = list(strides) if strides else full
        n = sum((d - 1) * s for d, s in zip(dims, self.strides)) + 1
        self.spec = {"seed": seed, "scale": scale, "n": int(n)}
        with np.errstate(over="ignore"):
            h = (np.arange(n, dtype=np.uint64) * 2654435761
                 + seed * 2246822519) & 0xffffffff
            h = ((h ^ h >> np.uint64(15)) * np.uint64(3266489917)) & (
                np.uint64(0xffffffff))
            top = ((h ^ h >> np.uint64(13)) >> np.uint64(24)).astype(np.int64)
        if dtype == "FLOAT8_E4M3FN":
            numbers = from_codes(top - (top & 0x7f == 0x7f), dtype)
        else:
            numbers = (top - 128) * (1.0 if dtype == "INT8" else scale)
        self.v = np.lib.stride_tricks.as_strided(
            numbers, self.dims, [8 * s for s in self.strides])
        self.x = self.v

    def json(self, filled=True):
        spec = {"dims": self.dims, "dtype": self.dtype, **self.spec,
                "strides": self.strides, "offset": 0}
        return {"tensor": spec}


def out(dims, dtype, layout="plain"):
    """A result of any dtype; what it holds before is not 0."""
    zeros = np.zeros(dims)
    if dtype in CODED or dtype in ("FLOAT4_E2M1", "INT4"):
        return Coded(zeros, dtype, layout)
    return Tensor(zeros, dtype, layout)


def sample(values, every):
    """Of a large result only each so many-th element."""
    flat = np.asarray(values, np.float64).reshape(-1)[::every]
    return {"every": every, "values": [short(v) for v in flat]}


def short(v):
    """12 digits: the test allows half a unit of 24 bits and 1e-5 of that."""
    number = float(f"{float(v):.12g}")
    return int(number) if number.is_integer() and number else number


def shorter(tensor):
    """A storage of one number throughout is written once."""
    spec = tensor["tensor"]
    for unit in (2, 4, 8, 16):
        n, rest = divmod(len(spec["hex"]), unit)
        if n > 4 and not rest and spec["hex"] == spec["hex"][:unit] * n:
            spec.update(hex=spec["hex"][:unit], repeat=n)
            break
    return tensor


def argument(arg, filled):
    if isinstance(arg, Filled):
        return arg.json()
    if isinstance(arg, Tensor):
        return shorter(arg.json(filled))
    if isinstance(arg, list):
        return {"list": [argument(t, filled)["tensor"] for t in arg]}
    return arg


def emit(op, args, expect=None, soc=ALL, code=None, run_code=None,
         inplace=()):
    """expect: {index, or "index.member" of a list: values or a sample}."""
    outputs = expect or {}
    record = {"op": op, "soc": soc, "args": []}
    for i, arg in enumerate(args):
        result = i in outputs or f"{i}.0" in outputs
        record["args"].append(argument(arg, not result or i in inplace))
    if code:
        record["code"] = code
    if run_code:
        record["run_code"] = run_code
    for i, values in outputs.items():
        if not isinstance(values, dict):
            flat = np.asarray(values, np.float64).reshape(-1)
            values = [short(v) for v in flat]
        record.setdefault("expect", {})[str(i)] = values
    print(json.dumps(record))
