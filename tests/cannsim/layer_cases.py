# SPDX-License-Identifier: Apache-2.0
"""Cases of make_vectors.py: gates, norms of groups, images, convolutions,
attention, quantised products."""

import numpy as np
from vectors import (FLOATS, RNG, Tensor, emit, erf, gelu_tanh, ints, out,
                     sigmoid, values, whole)


def gated():
    for dtype, layout in zip(FLOATS, ("plain", "transposed", "sparse")):
        x = Tensor(values((2, 3, 8)), dtype, layout)
        left, right = x.x[..., :4], x.x[..., 4:]
        emit("SwiGlu", [x, 2, out([2, 3, 4], dtype)],
             {2: left * sigmoid(left) * right})
        y = Tensor(values((2, 6, 3)), dtype, layout)
        a, b = y.x[:, :3], y.x[:, 3:]
        emit("SwiGlu", [y, 1, out([2, 3, 3], dtype, "sparse")],
             {2: a * sigmoid(a) * b})
        for approximate in (0, 1):
            f = gelu_tanh if approximate else (
                lambda v: 0.5 * v * (1 + erf(v / np.sqrt(2))))
            emit("GeGluV3", [x, -1, approximate, True, out([2, 3, 4], dtype),
                             out([2, 3, 4], dtype)],
                 {4: f(left) * right, 5: f(left)})
        emit("GeGluV3", [x, -1, 1, False, out([2, 3, 4], dtype),
                         out([2, 3, 4], dtype)],
             {4: gelu_tanh(right) * left, 5: gelu_tanh(right)})
    emit("SwiGlu", [x, 1, out([2, 1, 8], "BF16")], code=161002)
    for dtype in FLOATS:
        x = Tensor(values((2, 3, 2, 8)), dtype, "sparse")
        angle = values((1, 3, 1, 8))
        cos, sin = Tensor(np.cos(angle), dtype), Tensor(np.sin(angle), dtype)

        def half(v):
            n = v.shape[-1] // 2
            return np.concatenate([-v[..., n:], v[..., :n]], -1)

        pairs = np.stack([-x.x[..., 1::2], x.x[..., 0::2]], -1)
        turned = [half(x.x), pairs.reshape(x.x.shape), np.concatenate(
            [half(x.x[..., :4]), half(x.x[..., 4:])], -1)]
        for mode, t in enumerate(turned):
            emit("RotaryPositionEmbedding",
                 [x, cos, sin, mode, out([2, 3, 2, 8], dtype)],
                 {4: x.x * cos.x + t * sin.x})
    emit("RotaryPositionEmbedding",
         [x, cos, sin, 3, out([2, 3, 2, 8], "BF16")], code=161002)


def batches():
    for dtype, layout in zip(FLOATS, ("plain", "transposed", "sparse")):
        x = Tensor(values((2, 6, 4)), dtype, layout)
        g = x.x.reshape(2, 3, -1)
        mean = g.mean(-1)
        rstd = 1 / np.sqrt(g.var(-1) + 1e-5)
        y = ((g - mean[..., None]) * rstd[..., None]).reshape(2, 6, 4)
        emit("GroupNorm", [x, None, None, 2, 6, 4, 3, 1e-5,
                           out([2, 6, 4], dtype), out([2, 3], dtype),
                           out([2, 3], dtype)], {8: y, 9: mean, 10: rstd})
        gamma = Tensor(values((6,)), dtype)
        beta = Tensor(values((6,)), dtype, "sparse")
        emit("GroupNorm", [x, gamma, beta, 2, 6, 4, 3, 1e-5,
                           out([2, 6, 4], dtype, "sparse"),
                           out([2, 3], dtype), out([2, 3], dtype)],
             {8: y * gamma.x[:, None] + beta.x[:, None], 9: mean, 10: rstd})
    emit("GroupNorm", [x, None, None, 2, 6, 4, 4, 1e-5, out([2, 6, 4], "BF16"),
                       out([2, 4], "BF16"), out([2, 4], "BF16")], code=161002)
    logits = Tensor(values((3, 5)), "FLOAT", "sparse")
    p = RNG.random((3, 5))
    labels = Tensor(p / p.sum(1, keepdims=True), "FLOAT")
    log_p = logits.x - np.log(np.exp(logits.x).sum(1, keepdims=True))
    emit("SoftmaxCrossEntropyWithLogits",
         [logits, labels, out([3], "FLOAT"), out([3, 5], "FLOAT")],
         {2: -(labels.x * log_p).sum(1), 3: np.exp(log_p) - labels.x})
    b = Tensor(values((2, 4, 3)), "FLOAT")
    base = np.tril(values((2, 4, 4))) + 4 * np.eye(4)
    for upper in (False, True):
        for transpose in (False, True):
            for unit in (False, True):
                m = base.transpose(0, 2, 1) if upper else base
                full = Tensor(m + (np.tril(np.ones((4, 4)), -1) if upper else
                                   np.triu(np.ones((4, 4)), 1)), "FLOAT",
                              "transposed")
                used = np.triu(full.x) if upper else np.tril(full.x)
                if unit:
                    used = used - np.einsum("bij,ij->bij", used, np.eye(4)) + (
                        np.eye(4))
                if transpose:
                    used = used.transpose(0, 2, 1)
                emit("TriangularSolve",
                     [b, full, upper, transpose, unit,
                      out([2, 4, 3], "FLOAT"), out([2, 4, 4], "FLOAT")],
                     {5: np.linalg.solve(used, b.x), 6: full.x})
    emit("TriangularSolve", [b, b, False, False, False,
                             out([2, 4, 3], "FLOAT"), out([2, 4, 3], "FLOAT")],
         code=161002)


def windows(x, size, stride, before, after, fill, dilation=(1, 1)):
    """[N, C, places of H, places of W, kernel H, kernel W]."""
    padded = np.pad(x, ((0, 0), (0, 0), (before[0], after[0]),
                        (before[1], after[1])), constant_values=fill)
    rows = (padded.shape[2] - dilation[0] * (size[0] - 1) - 1) // stride[0] + 1
    cols = (padded.shape[3] - dilation[1] * (size[1] - 1) - 1) // stride[1] + 1
    seen = np.empty(x.shape[:2] + (rows, cols) + tuple(size))
    for i in range(rows):
        for j in range(cols):
            y0, x0 = i * stride[0], j * stride[1]
            seen[:, :, i, j] = padded[
                :, :, y0:y0 + dilation[0] * (size[0] - 1) + 1:dilation[0],
                x0:x0 + dilation[1] * (size[1] - 1) + 1:dilation[1]]
    return seen


def images():
    for dtype, layout in zip(FLOATS, ("plain", "transposed", "sparse")):
        x = Tensor(values((2, 2, 5, 6)), dtype, layout)
        seen = windows(x.x, (2, 3), (2, 1), (1, 1), (1, 1), 0)
        shape = list(seen.shape[:4])
        emit("AvgPool2d", [x, ints(2, 3), ints(2, 1), ints(1, 1), False, True,
                           0, 0, out(shape, dtype)], {8: seen.mean((4, 5))})
        inside = windows(np.ones_like(x.x), (2, 3), (2, 1), (1, 1), (1, 1), 0)
        emit("AvgPool2d", [x, ints(2, 3), ints(2, 1), ints(1, 1), False, False,
                           0, 0, out(shape, dtype)],
             {8: seen.sum((4, 5)) / inside.sum((4, 5))})
        emit("AvgPool2d", [x, ints(2, 3), ints(2, 1), ints(1, 1), False, True,
                           4, 0, out(shape, dtype)], {8: seen.sum((4, 5)) / 4})
        top = windows(x.x, (2, 3), (2, 1), (1, 1), (1, 1), -np.inf)
        emit("MaxPool", [x, ints(2, 3), ints(2, 1), 0, ints(1, 1, 1, 1),
                         ints(1, 1), 0, out(shape, dtype)],
             {7: top.max((4, 5))})
        emit("MaxPool", [x, ints(2, 3), ints(2, 1), 0, ints(0, 0, 0, 0),
                         ints(1, 1), 1, out([2, 2, 3, 4], dtype)],
             {7: windows(x.x, (2, 3), (2, 1), (0, 0), (1, 0),
                         -np.inf).max((4, 5))})
        columns = windows(x.x, (2, 2), (1, 2), (1, 0), (1, 0), 0, (2, 1))
        n = columns.shape[2] * columns.shape[3]
        emit("Im2col", [x, ints(2, 2), ints(2, 1), ints(1, 0), ints(1, 2),
                        out([2, 8, n], dtype)],
             {5: columns.transpose(0, 1, 4, 5, 2, 3).reshape(2, 8, n)})
        rows = [i * 5 // 7 for i in range(7)]
        cols = [j * 6 // 4 for j in range(4)]
        emit("UpsampleNearest2d", [x, ints(7, 4), out([2, 2, 7, 4], dtype)],
             {2: x.x[:, :, rows][..., cols]})
    emit("AvgPool2d", [x, ints(2, 3), ints(2, 1), ints(1, 1), False, True,
                       0, 0, out([2, 2, 3, 5], "BF16")], code=161002)
    emit("MaxPool", [x, ints(2, 2), ints(1, 1), 1, ints(0, 0), ints(1, 1), 0,
                     out([2, 2, 4, 5], "BF16")], code=161002)


def convolve(x, w, stride, padding, dilation, groups):
    """Plain loops over [N, C, L]."""
    n, _, length = x.shape
    outs, per, k = w.shape
    padded = np.pad(x, ((0, 0), (0, 0), (padding, padding)))
    m = (length + 2 * padding - dilation * (k - 1) - 1) // stride + 1
    y = np.zeros((n, outs, m))
    for o in range(outs):
        g = o // (outs // groups)
        for i in range(m):
            at = i * stride + dilation * np.arange(k)
            seen = padded[:, g * per:(g + 1) * per][:, :, at]
            y[:, o, i] = (seen * w[o]).sum((1, 2))
    return y


def transposed(x, w, stride, padding, groups):
    n, ins, length = x.shape
    _, per, k = w.shape
    full = np.zeros((n, per * groups, (length - 1) * stride + k))
    for c in range(ins):
        g = c // (ins // groups)
        for i in range(length):
            full[:, g * per:(g + 1) * per, i * stride:i * stride + k] += (
                x[:, c, i, None, None] * w[c])
    return full[:, :, padding:full.shape[2] - padding]


def convolutions():
    for dtype in FLOATS:
        x = Tensor(values((2, 4, 9)), dtype, "sparse")
        w = Tensor(values((6, 2, 3)), dtype)
        bias = Tensor(values((6,)), dtype)
        y = convolve(x.x, w.x, 2, 1, 2, 2)
        emit("Convolution", [x, w, bias, ints(2), ints(1), ints(2), False,
                             ints(0), 2, out(list(y.shape), dtype), 0],
             {9: y + bias.x[:, None]})
        w = Tensor(values((4, 3, 4)), dtype, "transposed")
        y = transposed(x.x, w.x, 3, 1, 2)
        emit("Convolution", [x, w, None, ints(3), ints(1), ints(1), True,
                             ints(0), 2, out(list(y.shape), dtype), 0],
             {9: y})
    image = Tensor(values((1, 2, 4, 5)), "FLOAT")
    w = Tensor(values((3, 2, 2, 3)), "FLOAT")
    seen = windows(image.x, (2, 3), (1, 2), (0, 1), (0, 1), 0)
    y = np.einsum("nchwij,ocij->nohw", seen, w.x)
    emit("Convolution", [image, w, None, ints(1, 2), ints(0, 1), ints(1, 1),
                         False, ints(0, 0), 1, out(list(y.shape), "FLOAT"), 0],
         {9: y})
    emit("Convolution", [image, w, None, ints(1, 2), ints(0, 1), ints(1, 1),
                         False, ints(0, 0), 1, out([1, 3, 3, 4], "FLOAT"), 0],
         code=161002)
    emit("Convolution", [image, w, None, ints(0, 2), ints(0, 1), ints(1, 1),
                         False, ints(0, 0), 1, out(list(y.shape), "FLOAT"), 0],
         code=161002)


def attention():
    none = [None]
    for dtype, kv_heads in (("FLOAT16", 2), ("BF16", 4), ("FLOAT", 1)):
        q = Tensor(values((2, 3, 4, 16), -1, 1), dtype, "sparse")
        k = Tensor(values((2, 5, kv_heads, 16), -1, 1), dtype)
        v = Tensor(values((2, 5, kv_heads, 16), -1, 1), dtype, "transposed")
        mask = Tensor(np.where(RNG.random((2, 1, 3, 5)) < 0.3, -60000, 0)
                      + values((2, 1, 3, 5)), dtype)
        wide = Tensor(mask.x, dtype)
        kr = k.x.repeat(4 // kv_heads, 2)
        vr = v.x.repeat(4 // kv_heads, 2)
        scores = np.einsum("bsnd,btnd->bnst", q.x, kr) * 0.25
        for shift in (None, wide):
            s = scores if shift is None else scores + wide.x
            p = np.exp(s - s.max(-1, keepdims=True))
            p /= p.sum(-1, keepdims=True)
            y = np.einsum("bnst,btnd->bsnd", p, vr)
            emit("FusedInferAttentionScoreV2",
                 [q, [k], [v], shift] + none * 20
                 + [4, 0.25, 65535, 65535, {"text": "BSND"}, kv_heads, 0, 2, 0,
                    0, False, 0, 0, out([2, 3, 4, 16], dtype), None],
                 {37: y})
    emit("FusedInferAttentionScoreV2",
         [q, [k], [v], None, wide] + none * 19
         + [4, 0.25, 65535, 65535, {"text": "BSND"}, 1, 0, 2, 0, 0, False, 0,
            0, out([2, 3, 4, 16], "FLOAT"), None], code=161002)
    emit("FusedInferAttentionScoreV2",
         [q, [k], [v]] + none * 21
         + [4, 0.25, 65535, 65535, {"text": "TND"}, 1, 0, 2, 0, 0, False, 0,
            0, out([2, 3, 4, 16], "FLOAT"), None], code=161002)


def quantised():
    x = Tensor(values((3, 64), -1, 1), "FLOAT16")
    w = Tensor(whole((64, 5), -128, 128), "INT8", "transposed")
    scale = Tensor(values((2, 5), 0.001, 0.01), "FLOAT16", "transposed")
    y = x.x @ (w.x * scale.x.repeat(32, 0))
    emit("WeightQuantBatchMatmulV2", [x, w, scale, None, None, None, None, 32,
                                      out([3, 5], "FLOAT16")], {8: y})
    one = Tensor(values((5,), 0.001, 0.01), "FLOAT16")
    offset = Tensor(whole((5,), -3, 3), "FLOAT16")
    bias = Tensor(values((5,)), "FLOAT16")
    emit("WeightQuantBatchMatmulV2", [x, w, one, offset, None, None, bias, 0,
                                      out([3, 5], "FLOAT16")],
         {8: x.x @ ((w.x + offset.x) * one.x) + bias.x})
    four = Tensor(whole((64, 6), -8, 8), "INT4")
    scale = Tensor(values((2, 6), 0.01, 0.1), "FLOAT16")
    emit("WeightQuantBatchMatmulV2", [x, four, scale, None, None, None, None,
                                      32, out([3, 6], "FLOAT16")],
         {8: x.x @ (four.x * scale.x.repeat(32, 0))})
    emit("WeightQuantBatchMatmulV2", [x, w, one, None, None, None, None, 33,
                                      out([3, 5], "FLOAT16")], code=161002)
    emit("WeightQuantBatchMatmulV2", [x, x, one, None, None, None, None, 0,
                                      out([3, 5], "FLOAT16")], code=161002)


PARTS = (gated, batches, images, convolutions, attention, quantised)
