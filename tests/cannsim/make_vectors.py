#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes vectors.jsonl: operators of cannsim by numpy, in double precision.

    make_vectors.py > vectors.jsonl        (needs numpy; the tests do not)

One case a line: the operator, its arguments in the order of data/abi, and what
is expected: the exact value of each element of an output before it is rounded
to the output's dtype (the test allows half a unit in the last place), or the
code of a refusal. Shares nothing with cannsim/ops.
"""

import sys

import layer_cases
import numpy as np
from vectors import (FLOATS, RNG, Tensor, emit, erf, gelu_tanh, ints, out,
                     round_to, scalar, sigmoid, values, whole)


def unary():
    table = {
        "Abs": np.abs, "Cos": np.cos, "Exp": np.exp, "Gelu": gelu_tanh,
        "Hardsigmoid": lambda x: np.clip(x / 6 + 0.5, 0, 1),
        "Hardswish": lambda x: x * np.clip(x / 6 + 0.5, 0, 1),
        "Neg": np.negative, "Relu": lambda x: np.maximum(x, 0),
        "Sigmoid": sigmoid, "Sign": np.sign,
        "Silu": lambda x: x * sigmoid(x), "Sin": np.sin, "Tanh": np.tanh}
    for op, f in table.items():
        for dtype, layout in zip(FLOATS, ("plain", "transposed", "sparse")):
            x = Tensor(values((2, 3, 4), -4, 4), dtype, layout)
            emit(op, [x, out(x.dims, dtype)], {1: f(x.x)})
    for op, f in (("Log", np.log), ("Sqrt", np.sqrt)):
        for dtype in FLOATS:
            x = Tensor(values((3, 5), 0.01, 9), dtype, "transposed")
            emit(op, [x, out(x.dims, dtype, "sparse")], {1: f(x.x)})
    for op in ("Abs", "Neg", "Relu", "Sign"):
        x = Tensor(whole((7,)), "INT32")
        emit(op, [x, out([7], "INT32")], {1: table[op](x.x)})
    for op in ("InplaceCos", "InplaceExp", "InplaceSin"):
        x = Tensor(values((4, 3)), "FLOAT", "transposed")
        f = table[op[len("Inplace"):]]
        emit(op, [x], {0: f(x.x)}, inplace=True)
    x = Tensor(values((2, 6)), "FLOAT")
    gelu_erf = 0.5 * x.x * (1 + erf(x.x / np.sqrt(2)))
    emit("GeluV2", [x, 0, out(x.dims, "FLOAT")], {2: gelu_erf})
    emit("GeluV2", [x, 1, out(x.dims, "FLOAT")], {2: gelu_tanh(x.x)})
    emit("GeluV2", [x, 2, out(x.dims, "FLOAT")], code=161002)
    emit("Elu", [x, scalar(1.5), scalar(2.0), scalar(0.5),
                 out(x.dims, "FLOAT")],
         {4: np.where(x.x > 0, 2 * x.x, 3 * np.expm1(x.x * 0.5))})
    emit("LeakyRelu", [x, scalar(0.25), out(x.dims, "FLOAT")],
         {2: np.where(x.x > 0, x.x, x.x * 0.25)})
    emit("Softplus", [x, scalar(2.0), scalar(3.0), out(x.dims, "FLOAT")],
         {3: np.where(x.x * 2 > 3, x.x, np.log1p(np.exp(2 * x.x)) / 2)})
    emit("InplaceThreshold", [x, scalar(0.5), scalar(-7.0)],
         {0: np.where(x.x > 0.5, x.x, -7)}, inplace=True)
    emit("Abs", [x, out([2, 5], "FLOAT")], code=161002)
    emit("Abs", [None, out([2, 6], "FLOAT")], code=161001)
    emit("Exp", [Tensor(whole((3,)), "INT32"), out([3], "INT32")],
         code=161002)


def binary():
    pairs = [("FLOAT", "FLOAT", "FLOAT"), ("FLOAT16", "FLOAT16", "FLOAT16"),
             ("BF16", "FLOAT", "FLOAT"), ("FLOAT16", "FLOAT16", "FLOAT"),
             ("BF16", "FLOAT16", "FLOAT"), ("INT32", "FLOAT16", "FLOAT16")]
    together = ["FLOAT", "FLOAT16", "FLOAT", "FLOAT16", "FLOAT", "FLOAT16"]
    for (a, b, c), both in zip(pairs, together):
        x = Tensor(whole((2, 1, 4)) if a == "INT32" else values((2, 1, 4)), a,
                   "sparse")
        y = Tensor(values((3, 1), 0.5, 3), b, "transposed")
        shape = [2, 3, 4]
        for op, f in (("Mul", x.x * y.x), ("Div", x.x / y.x)):
            emit(op, [x, y, out(shape, c)], {2: round_to(f, both)})
        for op, sign in (("Add", 1), ("Sub", -1)):
            emit(op, [x, y, scalar(0.5), out(shape, c, "sparse")],
                 {3: round_to(x.x + sign * 0.5 * y.x, both)})
    big = Tensor([2.0 ** 52, -5, 7], "INT64")
    small = Tensor([3, 3, -2], "INT64")
    emit("Add", [big, small, scalar(1, "INT64"), out([3], "INT64")],
         {3: big.x + small.x})
    emit("Mul", [small, small, out([3], "INT64")], {2: small.x * small.x})
    emit("Div", [small, Tensor([2, 2, 4], "INT64"), out([3], "FLOAT")],
         {2: [1.5, 1.5, -0.5]})
    x = Tensor(values((3, 4)), "FLOAT", "transposed")
    y = Tensor(values((4,)), "FLOAT")
    wide = Tensor(values((3, 4)), "FLOAT", "broadcast")
    emit("InplaceAdd", [x, wide, scalar(2.0)], {0: x.x + 2 * wide.x},
         inplace=True)
    emit("InplaceSub", [x, y, scalar(1.0)], {0: x.x - y.x}, inplace=True)
    emit("InplaceMul", [x, y], {0: x.x * y.x}, inplace=True)
    emit("InplaceDiv", [x, y], {0: x.x / y.x}, inplace=True)
    emit("InplaceMuls", [x, scalar(0.5)], {0: x.x * 0.5}, inplace=True)
    emit("InplaceDivs", [x, scalar(3.0)], {0: x.x / 3}, inplace=True)
    emit("InplaceAdds", [x, scalar(0.5), scalar(3.0)], {0: x.x + 1.5},
         inplace=True)
    emit("InplaceSubs", [x, scalar(0.5), scalar(3.0)], {0: x.x - 1.5},
         inplace=True)
    emit("Muls", [x, scalar(-2.0), out(x.dims, "BF16")], {2: x.x * -2})
    emit("InplaceAdd", [y, x, scalar(1.0)], code=161002)  # would grow
    emit("Add", [x, Tensor(values((5,)), "FLOAT"), scalar(1.0),
                 out([3, 4], "FLOAT")], code=161002)
    emit("Add", [x, y, None, out([3, 4], "FLOAT")], code=161001)
    z = Tensor(np.where(RNG.random((3, 4)) < 0.5, x.x, 0), "FLOAT")
    emit("EqTensor", [x, z, out([3, 4], "FLOAT")], {2: x.x == z.x})
    emit("GtScalar", [x, scalar(0.0), out([3, 4], "BOOL")], {2: x.x > 0})
    positive = Tensor(values((5,), 0.1, 3), "FLOAT")
    power = Tensor(values((5,)), "FLOAT")
    emit("InplacePowTensorTensor", [positive, power],
         {0: positive.x ** power.x}, inplace=True)
    emit("PowScalarTensor", [scalar(2.0), power, out([5], "FLOAT")],
         {2: 2 ** power.x})
    emit("Clamp", [x, scalar(-1.0), scalar(0.5), out([3, 4], "FLOAT")],
         {3: np.clip(x.x, -1, 0.5)})
    emit("ClampMin", [x, scalar(0.0), out([3, 4], "FLOAT")],
         {2: np.maximum(x.x, 0)})
    emit("InplaceClampMax", [x, scalar(0.0)], {0: np.minimum(x.x, 0)},
         inplace=True)
    emit("Clamp", [x, None, None, out([3, 4], "FLOAT")], code=161002)


def copies():
    x = Tensor(values((3, 4), -300, 300), "FLOAT", "transposed")
    enum = {"FLOAT": 0, "FLOAT16": 1, "INT8": 2, "INT32": 3, "BF16": 27}
    for dtype in ("FLOAT16", "BF16", "FLOAT"):
        emit("Cast", [x, enum[dtype], out([3, 4], dtype)], {2: x.x})
    emit("Cast", [x, 3, out([3, 4], "INT32")], {2: np.trunc(x.x)})
    emit("Cast", [x, 0, out([3, 4], "FLOAT16")], code=161002)
    emit("InplaceCopy", [out([2, 3, 4], "FLOAT16", "sparse"), x],
         {0: np.broadcast_to(x.x, (2, 3, 4))})
    emit("InplaceCopy", [out([3], "FLOAT"), x], code=161002)
    emit("InplaceFillScalar", [out([2, 3], "BF16", "sparse"), scalar(1.5)],
         {0: np.full((2, 3), 1.5)})
    emit("InplaceZero", [out([2, 3], "INT32", "transposed")],
         {0: np.zeros((2, 3))})
    emit("Arange", [scalar(1.0), scalar(4.0), scalar(0.5), out([6], "FLOAT")],
         {3: np.arange(1, 4, 0.5)})
    emit("Arange", [scalar(1.0), scalar(4.0), scalar(0.5), out([5], "FLOAT")],
         code=161002)


def products():
    f16 = lambda x: round_to(x, "FLOAT16")  # noqa: E731
    for dtype in FLOATS:
        a = Tensor(values((5, 7)), dtype, "transposed")
        b = Tensor(values((7, 3)), dtype, "sparse")
        emit("Mm", [a, b, out([5, 3], dtype), 0], {2: a.x @ b.x})
    a = Tensor(values((5, 7)), "FLOAT")
    b = Tensor(values((7, 3)), "FLOAT", "transposed")
    # USE_FP16: what goes in is rounded to FP16.
    emit("Mm", [a, b, out([5, 3], "FLOAT"), 2], {2: f16(a.x) @ f16(b.x)})
    a = Tensor(values((2, 4, 6)), "FLOAT16")
    b = Tensor(values((2, 6, 5)), "FLOAT16", "transposed")
    emit("BatchMatMul", [a, b, out([2, 4, 5], "FLOAT"), 2], {2: a.x @ b.x})
    one = Tensor(values((1, 6, 5)), "FLOAT16")
    emit("BatchMatMul", [a, one, out([2, 4, 5], "FLOAT16"), 0],
         {2: a.x @ one.x})
    a = Tensor(values((2, 3, 2, 4)), "BF16")
    b = Tensor(values((1, 3, 4, 5)), "BF16")
    emit("Matmul", [a, b, out([2, 3, 2, 5], "FLOAT"), 1], {2: a.x @ b.x})
    m = Tensor(values((4, 6)), "FLOAT16", "sparse")
    v = Tensor(values((6,)), "FLOAT16", "sparse")
    emit("Mv", [m, v, out([4], "FLOAT16"), 1], {2: m.x @ v.x})
    emit("Mm", [m, Tensor(values((5, 2)), "FLOAT16"), out([4, 2], "FLOAT16"),
                0], code=161002)
    emit("Mm", [m, Tensor(values((6, 2)), "FLOAT16"), out([4, 3], "FLOAT16"),
                0], code=161002)
    emit("Mm", [a, b, out([2, 2], "BF16"), 0], code=161002)
    emit("Mm", [m, Tensor(values((6, 2)), "FLOAT16"), out([4, 2], "FLOAT16"),
                9], code=161002)


def reductions():
    for dtype, layout in zip(FLOATS, ("plain", "transposed", "sparse")):
        x = Tensor(values((2, 3, 4)), dtype, layout)
        code = {"FLOAT": 0, "FLOAT16": 1, "BF16": 27}[dtype]
        emit("ReduceSum", [x, ints(0, -1), True, 0, out([1, 3, 1], "FLOAT")],
             {4: x.x.sum((0, 2), keepdims=True)})
        emit("ReduceSum", [x, ints(1), False, code, out([2, 4], dtype)],
             {4: x.x.sum(1)})
        emit("ReduceSum", [x, ints(), False, 0, out([], "FLOAT")],
             {4: x.x.sum()})
        emit("Mean", [x, ints(2), True, 0, out([2, 3, 1], "FLOAT")],
             {4: x.x.mean(2, keepdims=True)})
        emit("Norm", [x, scalar(2.0), ints(1), True, out([2, 1, 4], dtype)],
             {4: np.sqrt((x.x ** 2).sum(1, keepdims=True))})
        emit("Cumsum", [x, 2, code, out([2, 3, 4], dtype)],
             {3: x.x.cumsum(2)})
        emit("ArgMax", [x, 2, False, out([2, 3], "INT32")],
             {3: x.x.argmax(2)})
        for descending in (False, True):
            order = np.argsort(-x.x if descending else x.x, -1, kind="stable")
            emit("Argsort", [x, -1, descending, out([2, 3, 4], "INT64")],
                 {3: order})
    ties = Tensor([1, 3, 3, 2, 3], "INT32")
    emit("ArgMax", [ties, 0, True, out([1], "INT64")], {3: [1]})
    emit("Argsort", [ties, 0, True, out([5], "INT64")], {3: [1, 2, 4, 3, 0]})
    emit("ReduceSum", [x, ints(3), True, 0, out([2, 3, 4], "FLOAT")],
         code=161002)
    emit("ReduceSum", [x, ints(1, -2), True, 0, out([2, 1, 4], "FLOAT")],
         code=161002)
    emit("ReduceSum", [x, ints(1), True, 0, out([2, 4], "FLOAT")],
         code=161002)
    emit("Cumsum", [x, 5, 0, out([2, 3, 4], "FLOAT")], code=161002)


def norms():
    for dtype in FLOATS:
        x = Tensor(values((2, 3, 8)), dtype, "sparse")
        gamma = Tensor(values((8,), 0.5, 1.5), "FLOAT")
        r = 1 / np.sqrt((x.x ** 2).mean(-1, keepdims=True) + 1e-5)
        emit("RmsNorm", [x, gamma, 1e-5, out([2, 3, 8], dtype),
                         out([2, 3, 1], "FLOAT")],
             {3: x.x * r * gamma.x, 4: r})
        y = Tensor(values((2, 3, 8)), dtype)
        total = round_to(x.x + y.x, dtype)
        r = 1 / np.sqrt((total ** 2).mean(-1, keepdims=True) + 1e-6)
        emit("AddRmsNorm", [x, y, gamma, 1e-6, out([2, 3, 8], dtype),
                            out([2, 3, 1], "FLOAT"), out([2, 3, 8], dtype)],
             {4: total * r * gamma.x, 5: r, 6: total})
        mean = x.x.mean((1, 2), keepdims=True)
        deviation = np.sqrt(x.x.var((1, 2), keepdims=True) + 1e-5)
        w = Tensor(values((3, 8)), "FLOAT")
        b = Tensor(values((3, 8)), "FLOAT", "transposed")
        emit("LayerNorm", [x, ints(3, 8), w, b, 1e-5, out([2, 3, 8], dtype),
                           None, None],
             {5: (x.x - mean) / deviation * w.x + b.x})
        emit("LayerNorm", [x, ints(3, 8), None, None, 1e-5,
                           out([2, 3, 8], dtype), None, None],
             {5: (x.x - mean) / deviation})
        for dim in (1, -1):
            e = np.exp(x.x - x.x.max(dim, keepdims=True))
            emit("Softmax", [x, dim, out([2, 3, 8], dtype, "transposed")],
                 {2: e / e.sum(dim, keepdims=True)})
    far = Tensor([[1000, 999, -1000]], "FLOAT")
    e = np.exp(far.x - 1000)
    emit("Softmax", [far, 1, out([1, 3], "FLOAT")], {2: e / e.sum()})
    emit("RmsNorm", [x, Tensor(values((7,)), "FLOAT"), 1e-5,
                     out([2, 3, 8], "BF16"), out([2, 3, 1], "FLOAT")],
         code=161002)
    emit("RmsNorm", [x, gamma, 1e-5, out([2, 3, 8], "BF16"),
                     out([2, 3, 8], "FLOAT")], code=161002)


def moves():
    for dtype, layout in (("FLOAT", "sparse"), ("BF16", "transposed"),
                          ("INT32", "plain")):
        x = Tensor(whole((2, 3, 4)), dtype, layout)
        emit("Permute", [x, ints(2, 0, 1), out([4, 2, 3], dtype)],
             {2: x.x.transpose(2, 0, 1)})
        emit("Slice", [x, 2, 1, 4, 2, out([2, 3, 2], dtype)],
             {5: x.x[:, :, 1:4:2]})
        emit("Slice", [x, 1, -2, 99, 1, out([2, 2, 4], dtype, "sparse")],
             {5: x.x[:, -2:]})
        emit("Repeat", [x, ints(2, 1, 3, 1), out([2, 2, 9, 4], dtype)],
             {2: np.tile(x.x, (2, 1, 3, 1))})
        emit("RepeatInterleaveIntWithDim",
             [x, 3, 1, 9, out([2, 9, 4], dtype)], {4: x.x.repeat(3, 1)})
        emit("Roll", [x, ints(1, -2), ints(0, 2), out([2, 3, 4], dtype)],
             {3: np.roll(x.x, (1, -2), (0, 2))})
        emit("ConstantPadNd", [x, ints(1, 2, 0, 1), scalar(7.0),
                               out([2, 4, 7], dtype)],
             {3: np.pad(x.x, ((0, 0), (0, 1), (1, 2)), constant_values=7)})
        emit("ConstantPadNd", [x, ints(-1, 0), scalar(0.0),
                               out([2, 3, 3], dtype)], {3: x.x[:, :, 1:]})
        emit("ReflectionPad1d", [x, ints(3, 2), out([2, 3, 9], dtype)],
             {2: np.pad(x.x, ((0, 0), (0, 0), (3, 2)), "reflect")})
        for k in (-1, 0, 2):
            emit("Tril", [x, k, out([2, 3, 4], dtype)], {2: np.tril(x.x, k)})
            emit("Triu", [x, k, out([2, 3, 4], dtype)], {2: np.triu(x.x, k)})
        emit("InplaceTriu", [x, 1], {0: np.triu(x.x, 1)}, inplace=True)
        y = Tensor(whole((2, 2, 4)), dtype, "transposed")
        emit("Cat", [[x, y], 1, out([2, 5, 4], dtype, "sparse")],
             {2: np.concatenate([x.x, y.x], 1)})
    emit("Permute", [x, ints(0, 0, 1), out([2, 2, 3], "INT32")], code=161002)
    emit("Cat", [[x, y], 2, out([2, 5, 4], "INT32")], code=161002)
    emit("ReflectionPad1d", [x, ints(4, 0), out([2, 3, 8], "INT32")],
         code=161002)


def indices():
    for kind in ("INT32", "INT64"):
        x = Tensor(values((5, 3)), "FLOAT16", "transposed")
        i = Tensor([4, 0, 4, 2], kind)
        emit("IndexSelect", [x, 0, i, out([4, 3], "FLOAT16")],
             {3: x.x[[4, 0, 4, 2]]})
        j = Tensor([[1, 4], [0, 3], [2, 2]], kind, "sparse")
        emit("GatherV2", [x, 0, j, out([3, 2, 3], "FLOAT16")],
             {3: x.x[j.x.astype(int)]})
        emit("GatherV2", [x, 1, Tensor([2, 0], kind), out([5, 2], "FLOAT16")],
             {3: x.x[:, [2, 0]]})
        source = Tensor(values((2, 3)), "FLOAT16")
        copied = x.x.copy()
        copied[[3, 1]] = source.x
        emit("InplaceIndexCopy", [x, 0, Tensor([3, 1], kind), source],
             {0: copied}, inplace=True)
    filled = x.x.copy()
    filled[:, [0, 2]] = 9
    emit("InplaceIndexFillTensor", [x, 1, ints(0, 2), scalar(9.0)],
         {0: filled}, inplace=True)
    emit("InplaceIndexFillTensor", [x, 1, ints(3), scalar(9.0)], code=161002)
    emit("IndexSelect", [x, 0, Tensor([1.0], "FLOAT"), out([1, 3], "FLOAT16")],
         code=161002)
    # Out of range: accepted, and an exception of the core when it runs.
    emit("IndexSelect", [x, 0, Tensor([5], "INT32"), out([1, 3], "FLOAT16")],
         run_code=507015)


def main():
    for part in (unary, binary, copies, products, reductions, norms, moves,
                 indices) + layer_cases.PARTS:
        part()
    return 0


if __name__ == "__main__":
    sys.exit(main())
