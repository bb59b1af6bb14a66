# SPDX-License-Identifier: Apache-2.0
"""What the cases of make_vectors.py are written with: tensors in views of many
kinds, and one line of JSON a case."""

import json

import numpy as np

RNG = np.random.default_rng(20261201)
HALVES = ("FLOAT16", "BF16")
FLOATS = ("FLOAT",) + HALVES
NUMPY = {"FLOAT": np.float32, "FLOAT16": np.float16, "DOUBLE": np.float64,
         "INT32": np.int32, "INT64": np.int64, "INT8": np.int8,
         "UINT8": np.uint8, "BOOL": np.uint8, "INT16": np.int16}


def round_to(x, dtype):
    """float64 -> the nearest of the dtype, as float64; ties to even."""
    x = np.asarray(x, np.float64)
    if dtype == "BF16":
        m, e = np.frexp(x)
        step = np.where(e < -125, 8 - (-125 - e), 8)
        return np.ldexp(np.rint(np.ldexp(m, step)), e - step)
    if dtype in ("FLOAT", "FLOAT16"):
        with np.errstate(over="ignore"):
            return x.astype(NUMPY[dtype]).astype(np.float64)
    return x


def encode(x, dtype):
    if dtype in ("INT4", "FLOAT4_E2M1"):  # two a byte, the first in the low half
        n = np.asarray(x).astype(np.int64) & 15
        n = np.concatenate([n, np.zeros(len(n) % 2, np.int64)])
        return (n[0::2] | n[1::2] << 4).astype(np.uint8).tobytes()
    if dtype == "BF16":
        f = np.ascontiguousarray(x, np.float32)
        return (f.view(np.uint32) >> 16).astype(np.uint16).tobytes()
    return np.ascontiguousarray(x).astype(NUMPY[dtype]).tobytes()


def size_of(dtype):
    return 2 if dtype == "BF16" else np.dtype(NUMPY[dtype]).itemsize


class Tensor:
    """A view in a storage: contiguous, transposed, sparse or broadcast."""

    def __init__(self, values, dtype, layout="plain"):
        self.dtype = dtype
        values = np.asarray(values, np.float64)
        self.x = values if dtype in ("INT32", "INT64", "INT8", "UINT8",
                                     "INT4", "BOOL") else round_to(values, dtype)
        dims = list(self.x.shape)
        self.dims, self.offset = dims, 0
        if layout == "plain":
            self.strides, n = None, int(np.prod(dims))
        elif layout == "transposed":  # first axis innermost, and an offset
            step, self.strides = 1, []
            for dim in dims:
                self.strides.append(step)
                step *= dim
            self.offset, n = 5, step + 5
        elif layout == "sparse":  # gaps in every axis
            step, strides = 2, []
            for dim in reversed(dims):
                strides.append(step)
                step *= dim + 1
            self.strides, n = strides[::-1], step
        elif layout == "broadcast":  # stride 0 in the first axis
            self.x = np.broadcast_to(self.x[:1], self.x.shape)
            rest = int(np.prod(dims[1:]))
            inner, step = [], 1
            for dim in reversed(dims[1:]):
                inner.append(step)
                step *= dim
            self.strides, n = [0] + inner[::-1], rest
        self.n_storage = n

    def json(self, filled=True):
        storage = np.full(self.n_storage, 3.0)
        if filled:
            index = np.indices(self.dims).reshape(len(self.dims), -1)
            strides = self.strides
            if strides is None:
                strides = [int(np.prod(self.dims[i + 1:]))
                           for i in range(len(self.dims))]
            at = self.offset + sum(
                (index[i] * s for i, s in enumerate(strides)),
                np.zeros(index.shape[1], np.int64))
            storage[at] = self.x.reshape(-1)
        out = {"dims": self.dims, "dtype": self.dtype,
               "hex": encode(storage, self.dtype).hex()}
        if self.strides is not None:
            out.update(strides=self.strides, offset=self.offset)
        return {"tensor": out}


def out(dims, dtype, layout="plain"):
    return Tensor(np.zeros(dims), dtype, layout)


def scalar(value, dtype="FLOAT"):
    return {"scalar": value, "dtype": dtype}


def ints(*values):
    return {"ints": list(values)}


def emit(op, args, expect=None, code=None, **more):
    """expect: {index of the argument: exact values}."""
    record = {"op": op, "args": []}
    outputs = expect or {}
    for i, arg in enumerate(args):
        if isinstance(arg, Tensor):
            inplace = i in outputs and more.get("inplace")
            arg = arg.json(filled=i not in outputs or inplace or bool(code))
        elif isinstance(arg, list):
            arg = {"list": [t.json()["tensor"] for t in arg]}
        record["args"].append(arg)
    if code:
        record["code"] = code
    for i, values in outputs.items():
        flat = np.asarray(values, np.float64).reshape(-1)
        record.setdefault("expect", {})[str(i)] = [float(v) for v in flat]
    if "run_code" in more:
        record["run_code"] = more["run_code"]
    print(json.dumps(record))


def values(dims, low=-3.0, high=3.0):
    return RNG.uniform(low, high, dims)


def whole(dims, low=-9, high=9):
    return RNG.integers(low, high, dims).astype(np.float64)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi)
                                  * (x + 0.044715 * x ** 3)))


def erf(x):
    """By its series and continued fraction: numpy has none."""
    result = np.empty_like(x)
    for i, v in np.ndenumerate(x):
        total, term = 0.0, v
        for n in range(200):
            total += term / (2 * n + 1)
            term *= -v * v / (n + 1)
        result[i] = 2 / np.sqrt(np.pi) * total
    return result
