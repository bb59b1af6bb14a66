# SPDX-License-Identifier: Apache-2.0
"""Cases of make_v4_vectors.py: quantised activations, products, SwiGLU."""

import numpy as np
from v4_cases import power_scale, quantise
from v4_vectors import (NEW, OLD, Coded, Filled, emit, from_codes, out, sample,
                        to_codes)
from vectors import HALVES, RNG, Tensor, ints, round_to, sigmoid, values, whole

CODE = {"FLOAT16": 1, "INT8": 2, "BF16": 27, "INT4": 29, "FLOAT8_E5M2": 35,
        "FLOAT8_E4M3FN": 36, "FLOAT4_E2M1": 40}
RINT = {"text": "rint"}


def dynamic():
    for dtype, layout in zip(HALVES, ("transposed", "sparse")):
        x = Tensor(values((2, 3, 8)), dtype, layout)
        x.x[0, 1] = 0
        smooth = Tensor(values((8,), 0.5, 2), dtype)
        for s in (None, smooth):
            rows = x.x * (s.x if s else 1)
            for kind, limit in (("INT8", 127), ("INT4", 7)):
                codes, scale = quantise(rows, limit)
                results = [out([2, 3, 8], kind), out([2, 3], "FLOAT")]
                emit("DynamicQuant", [x, s] + results, {2: codes, 3: scale})
                emit("DynamicQuantV2", [x, s, None, CODE[kind]] + results
                     + [None], {4: codes, 5: scale})
        flat = Tensor(values((5, 8)), dtype)
        groups = Tensor(values((3, 8), 0.5, 2), dtype)
        of_row = [0, 0, 2, 2, 2]  # ends 2, 2, 5
        codes, scale = quantise(flat.x * groups.x[of_row], 127)
        emit("DynamicQuantV2", [flat, groups, Tensor([2, 2, 5], "INT32"), 2,
                                out([5, 8], "INT8"), out([5], "FLOAT"), None],
             {4: codes, 5: scale})
        emit("DynamicQuantV2", [flat, None, None, 29, out([5, 8], "INT8"),
                                out([5], "FLOAT"), None], code=161002)
        emit("DynamicQuantV2", [flat, None, None, 2, out([5, 8], "INT8"),
                                out([5], "FLOAT"), out([5], "FLOAT")],
             code=161002)
        gamma = Tensor(values((8,), 0.5, 1.5), dtype)
        beta = Tensor(values((8,)), dtype)
        normed = x.x / np.sqrt((x.x ** 2).mean(-1, keepdims=True) + 1e-6)
        normed = normed * gamma.x + beta.x
        one, s1 = quantise(normed * smooth.x, 127)
        two, s2 = quantise(normed, 127)
        results = [out([2, 3, 8], "INT8"), out([2, 3, 8], "INT8"),
                   out([2, 3], "FLOAT"), out([2, 3], "FLOAT")]
        emit("RmsNormDynamicQuant",
             [x, gamma, smooth, None, beta, 1e-6, {"bools": [True, True]}, 2]
             + results, {8: one, 9: two, 10: s1, 11: s2}, OLD)
        emit("RmsNormDynamicQuant",
             [x, gamma, smooth, None, beta, 1e-6, None, 2, results[0], None,
              results[2], None], {8: one, 10: s1}, OLD)
        emit("RmsNormDynamicQuant",
             [x, gamma, smooth, None, beta, 1e-6, {"bools": [True, True]}, 2,
              results[0], None, results[2], None], soc=OLD, code=161001)
    emit("DynamicQuant", [Tensor(values((2, 8)), "FLOAT"), None,
                          out([2, 8], "INT8"), out([2], "FLOAT")], code=161002)


def mx_blocks(x, dtype, algorithm):
    """Codes, and scales [.., ceil(n / 64), 2] as codes of E8M0."""
    n = x.shape[-1]
    pairs = -(-n // 64)
    padded = np.zeros(x.shape[:-1] + (64 * pairs,))
    padded[..., :n] = x
    blocks = padded.reshape(x.shape[:-1] + (2 * pairs, 32))
    peak = np.abs(blocks).max(-1)
    safe = np.where(peak == 0, 1, peak)
    largest, exponent = {"FLOAT8_E4M3FN": (448, 8), "FLOAT8_E5M2": (57344, 15),
                         "FLOAT4_E2M1": (6, 2)}[dtype]
    if algorithm == 0:
        e = np.floor(np.log2(safe)) - exponent
    else:
        e = np.ceil(np.log2(safe / largest))
    e = np.where(peak == 0, -127, e)
    codes = to_codes(blocks * 2.0 ** -e[..., None], dtype)
    return (codes.reshape(padded.shape)[..., :n],
            (e + 127).reshape(x.shape[:-1] + (pairs, 2)))


def mx():
    rows = values((3, 2, 72)) * 2.0 ** RNG.integers(-20, 12, (3, 2, 1))
    rows[1, 1, :32] = 0
    for dtype, layout in zip(HALVES, ("transposed", "plain")):
        x = Tensor(rows, dtype, layout)
        for kind, algorithm in (("FLOAT8_E4M3FN", 0), ("FLOAT8_E4M3FN", 1),
                                ("FLOAT8_E5M2", 0), ("FLOAT4_E2M1", 0)):
            codes, scales = mx_blocks(x.x, kind, algorithm)
            emit("DynamicMxQuant",
                 [x, -1, RINT, CODE[kind], 32, algorithm,
                  out([3, 2, 72], kind), out([3, 2, 2, 2], "FLOAT8_E8M0")],
                 {6: codes, 7: scales}, NEW)
    tail = [out([3, 2, 72], "FLOAT4_E2M1"),
            out([3, 2, 2, 2], "FLOAT8_E8M0")]
    emit("DynamicMxQuant", [x, -1, RINT, 40, 32, 1] + tail, soc=NEW,
         code=161002)
    emit("DynamicMxQuant", [x, 0, RINT, 40, 32, 0] + tail, soc=NEW,
         code=161002)
    emit("DynamicMxQuant", [x, -1, RINT, 40, 32, 0] + tail, soc=OLD,
         code=561003)


def swiglu(gate, up, limit=0, alpha=1.0, bias=0.0):
    if limit > 0:
        gate, up = np.minimum(gate, limit), np.clip(up, -limit, limit)
    return gate * sigmoid(alpha * gate) * (up + bias)


def dequant_swiglu():
    dynamic_mode, static = {"text": "dynamic"}, {"text": "static"}
    whole_x = Tensor(whole((5, 12), -900, 900), "INT32", "sparse")
    scale = Tensor(values((2, 12), 0.001, 0.01), "FLOAT")
    row = Tensor(values((5,), 0.5, 2), "FLOAT")
    quant = Tensor(values((2, 6), 0.5, 2), "FLOAT", "transposed")
    counts = Tensor([2, 2], "INT64")  # the last row belongs to nobody
    group = np.array([0, 0, 1, 1])
    real = whole_x.x[:4] * scale.x[group] * row.x[:4, None]
    modes = [(0, lambda v: swiglu(v[:, :6], v[:, 6:]), None),
             (1, lambda v: swiglu(v[:, ::2], v[:, 1::2], 2.5, 1.25, 0.5),
              None),
             (2, lambda v: swiglu(v[:, :6], v[:, 6:], 2.5, 1.25, 0.5), NEW),
             (3, lambda v: swiglu(v[:, :6], v[:, 6:], 2.5), NEW)]
    for mode, f, soc in modes:
        soc = soc or OLD + NEW
        for q in (None, quant):
            codes, scales = quantise(f(real) * (q.x[group] if q else 1), 127)
            codes = np.concatenate([codes, np.full((1, 6), 3)])
            scales = np.concatenate([scales, [3]])
            emit("DequantSwigluQuantV2",
                 [whole_x, scale, row, None, q, None, counts, True,
                  dynamic_mode, 2, RINT, -1, mode, 2.5, 1.25, 0.5,
                  out([5, 6], "INT8"), out([5], "FLOAT")],
                 {16: codes, 17: scales}, soc)
    for dtype in HALVES:
        x = Tensor(values((4, 12)), dtype)
        for left in (True, False):
            a, b = x.x[:, :6], x.x[:, 6:]
            codes, scales = quantise(swiglu(a, b) if left else swiglu(b, a),
                                     127)
            emit("DequantSwigluQuantV2",
                 [x, None, None, None, None, None, None, left, dynamic_mode,
                  2, RINT, -1, 0, 7.0, 1.0, 0.0, out([4, 6], "INT8"),
                  out([4], "FLOAT")], {16: codes, 17: scales})
        for interleaved in (True, False):
            a, b = ((x.x[:, ::2], x.x[:, 1::2]) if interleaved else
                    (x.x[:, :6], x.x[:, 6:]))
            y = swiglu(a, b, 1.5, 1.25, 0.5)
            y[3] = 3
            emit("ClippedSwiglu", [x, Tensor([1, 2], "INT64"), -1, 1.25, 1.5,
                                   0.5, interleaved, out([4, 6], dtype)],
                 {7: y})
    head = [x, None, None, None, None, None, None]
    tail = [RINT, -1, 1, 7.0, 1.0, 0.0, out([4, 6], "INT8"),
            out([4], "FLOAT")]
    emit("DequantSwigluQuantV2", head + [False, dynamic_mode, 2] + tail,
         code=161002)  # interleaved and not left
    emit("DequantSwigluQuantV2", head + [True, static, 2] + tail, code=161002)
    emit("DequantSwigluQuantV2", head + [True, dynamic_mode, 2, RINT, -1, 2]
         + tail[3:], soc=OLD, code=161002)  # 950 only
    emit("ClippedSwiglu", [x, Tensor([1, 4], "INT64"), -1, 1.25, 1.5, 0.5,
                           True, out([4, 6], "BF16")], run_code=507015)


def group_swiglu():
    x = Filled((3, 640), "BF16", 21, 2.0 ** -5)
    weight = Tensor(values((3,), 0.1, 1), "FLOAT")
    for clamp in (0.0, 2.0):
        y = swiglu(x.v[:, :320], x.v[:, 320:], clamp)
        for w in (None, weight):
            z = y * (w.x[:, None] if w else 1)
            for rounded, e8m0 in ((True, True), (True, False), (False, False)):
                padded = np.zeros((3, 384))
                padded[:, :320] = z
                blocks = padded.reshape(3, 3, 128)
                scale = power_scale(blocks) if rounded else round_to(
                    np.maximum(np.abs(blocks).max(-1), 1e-4) / 448, "FLOAT")
                codes = to_codes(blocks / scale[..., None], "FLOAT8_E4M3FN")
                codes = codes.reshape(3, 384)[:, :320]
                codes[2] = 3  # the list ends before
                stored = np.log2(scale) + 127 if e8m0 else scale.copy()
                stored[2] = 3
                emit("SwigluGroupQuant",
                     [x, w, Tensor([1, 2], "INT64"), 36, 1, 128, rounded,
                      e8m0, False, 0, clamp,
                      out([3, 320], "FLOAT8_E4M3FN"),
                      out([3, 3], "FLOAT8_E8M0" if e8m0 else "FLOAT"), None],
                     {11: sample(codes, 7), 12: stored}, NEW)
            blocks = z.reshape(3, 10, 32)
            scale = power_scale(blocks)
            codes = to_codes(blocks / scale[..., None], "FLOAT8_E4M3FN")
            emit("SwigluGroupQuant",
                 [x, w, Tensor([1, 2], "INT64"), 36, 2, 32, True, True, True,
                  1, clamp, out([3, 320], "FLOAT8_E4M3FN"),
                  out([3, 5, 2], "FLOAT8_E8M0"), out([3, 320], "BF16")],
                 {11: sample(codes, 7), 12: np.log2(scale) + 127,
                  13: sample(z, 7)}, NEW)
    tail = [out([3, 320], "FLOAT8_E4M3FN"), out([3, 3], "FLOAT"), None]
    emit("SwigluGroupQuant", [x, None, None, 36, 3, 128, True, False, False, 1,
                              0.0] + tail, soc=NEW, code=161002)


def ints_of(dims, dtype):
    return (whole(dims, -128, 128) if dtype == "INT8" else whole(dims, -8, 8))


def codes_of(dims, dtype):
    """Random codes that are numbers of moderate size."""
    if dtype == "FLOAT8_E8M0":
        return RNG.integers(118, 128, dims)
    if dtype == "FLOAT4_E2M1":
        return RNG.integers(0, 16, dims)
    return RNG.integers(0, 2, dims) * 128 + RNG.integers(0, 96, dims)


def carried(x):
    """float32 in the lower half of an INT64."""
    return np.asarray(x, np.float32).view(np.uint32).astype(np.int64)


def mx_left(scale, k):
    """[.., K/64, 2] -> [.., K]."""
    flat = from_codes(scale, "FLOAT8_E8M0")
    return flat.reshape(scale.shape[:-2] + (-1,)).repeat(32, -1)[..., :k]


def mx_right(scale, k):
    """[.., K/64, N, 2] -> [.., K, N]."""
    flat = from_codes(scale, "FLOAT8_E8M0")
    rows = np.moveaxis(flat, -1, -2).reshape(
        scale.shape[:-3] + (-1, scale.shape[-2]))
    return rows.repeat(32, -2)[..., :k, :]


def by_group(x, w, ends):
    """Rows of x by the weights of their experts."""
    y, first = [], 0
    for e, last in enumerate(ends):
        y.append(x[first:last] @ w[e])
        first = last
    return np.concatenate(y)


def grouped(op, parts, groups, kind, result):
    """Arguments of V4 and V5 (the tensors that are null left out)."""
    p = {name: [t] if t is not None else None for name, t in parts.items()}
    get = p.get
    head = [get("x"), get("w"), get("bias"), get("scale"), None,
            get("antiquant"), get("offset")]
    if op == "GroupedMatmulV3":
        return head + [groups, 3, 0, [result]]
    tail = [get("row"), groups, None, None, None, 2, 0, kind, 0]
    return head + tail + ([None] if op == "GroupedMatmulV5" else []) + [
        [result], None, None]


def emit_grouped(parts, ends, y, dtype, soc=OLD + NEW, **more):
    counts = np.diff([0] + list(ends))
    pairs = [(e, c) for e, c in enumerate(counts) if c]
    lists = [(0, ends), (1, counts), (2, pairs)]
    result = out([parts["x"].dims[0], parts["w"].dims[-1]], dtype)
    want = None
    if y is not None:
        want = np.full(result.dims, 3.0)
        want[:len(y)] = y
    if more:  # refused: one way to list the groups is enough
        lists = lists[:1]
    for (kind, values_of), op in zip(lists, ("GroupedMatmulV4",
                                             "GroupedMatmulV5",
                                             "GroupedMatmulV5")):
        args = grouped(op, parts, Tensor(values_of, "INT64"), kind, result)
        place = f"{len(args) - 3}.0"
        emit(op, args, {place: want} if want is not None else None, soc, **more)
    return want


def grouped_matmuls():
    ends = [2, 2, 5]
    for dtype, layout in (("BF16", "transposed"), ("FLOAT16", "sparse"),
                          ("FLOAT", "plain")):
        x = Tensor(values((6, 8)), dtype, layout)
        w = Tensor(values((3, 8, 4)), dtype, layout)
        bias = Tensor(values((3, 4)), dtype)
        rows = [0, 0, 2, 2, 2]
        y = by_group(x.x, w.x, ends)
        emit_grouped({"x": x, "w": w, "bias": bias}, ends,
                     y + bias.x[rows], dtype)
        want = np.full((6, 4), 3.0)
        want[:5] = y
        emit("GroupedMatmulV3",
             grouped("GroupedMatmulV3", {"x": x, "w": w},
                     Tensor(ends, "INT64"), 0, out([6, 4], dtype)),
             {"10.0": want})
        each = [Tensor(m, dtype) for m in w.x]
        args = grouped("GroupedMatmulV4", {"x": x, "w": w},
                       Tensor(ends, "INT64"), 0, out([6, 4], dtype))
        args[1] = each
        emit("GroupedMatmulV4", args, {"16.0": want})
    row = Tensor(values((6,), 0.5, 2), "FLOAT")
    x8 = Coded(ints_of((6, 8), "INT8"), "INT8", "transposed")
    w8 = Coded(ints_of((3, 8, 4), "INT8"), "INT8", "transposed")
    y8 = by_group(x8.x, w8.x, ends)
    emit_grouped({"x": x8, "w": w8}, ends, y8, "INT32")
    scale = Tensor(values((3, 4), 0.001, 0.01), "FLOAT")
    half = Tensor(scale.x, "BF16")
    whole_bias = Tensor(whole((3, 4), -500, 500), "INT32")
    for s in (scale, half):
        emit_grouped({"x": x8, "w": w8, "scale": s, "row": row,
                      "bias": whole_bias}, ends,
                     (y8 + whole_bias.x[rows]) * s.x[rows]
                     * row.x[:5, None], "BF16")
    # INT4 weights: x - 8, corrected by the bias.
    w4 = Coded(ints_of((3, 8, 4), "INT4"), "INT4")
    for n_groups in (1, 2):
        s = round_to(values((3, n_groups, 4), 0.001, 0.01), "FLOAT")
        real = w4.x * s.repeat(8 // n_groups, 1)
        bias = Tensor(8 * real.sum(1), "FLOAT")
        y4 = (by_group(x8.x - 8, real, ends) + bias.x[rows])
        emit_grouped({"x": x8, "w": w4, "scale": Tensor(carried(s), "INT64"),
                      "bias": bias, "row": row}, ends,
                     y4 * row.x[:5, None], "FLOAT16", OLD)
    # The same weights twice, eight to an INT32.
    raw = w4.x.astype(np.int64) & 15
    word = (np.concatenate([raw, raw], -1) << (4 * np.arange(8))).sum(-1)
    packed = Tensor(word.astype(np.uint32).view(np.int32)[..., None], "INT32")
    real8 = np.concatenate([real, real], -1)
    both = np.concatenate([s, s], -1)
    args = grouped("GroupedMatmulV5",
                   {"x": x8, "w": packed, "row": row,
                    "scale": Tensor(carried(both), "INT64"),
                    "bias": Tensor(8 * real8.sum(1), "FLOAT")},
                   Tensor(ends, "INT64"), 0, out([6, 8], "BF16"))
    want = np.full((6, 8), 3.0)
    want[:5] = (by_group(x8.x - 8, real8, ends)
                + round_to(8 * real8.sum(1), "FLOAT")[rows]) * row.x[:5, None]
    emit("GroupedMatmulV5", args, {"17.0": want}, OLD)
    emit("GroupedMatmulV5", args, soc=NEW, code=161002)
    half_x = Tensor(values((6, 8)), "BF16")
    for w in (w8, w4):
        offset = Tensor(whole((3, 4), -3, 3), "FLOAT16")
        anti = Tensor(values((3, 4), 0.001, 0.01), "BF16")
        y = by_group(half_x.x, (w.x + offset.x[:, None]) * anti.x[:, None],
                     ends)
        emit_grouped({"x": half_x, "w": w, "antiquant": anti,
                      "offset": offset}, ends, y, "BF16")
    mx_grouped(ends, half_x)
    emit_grouped({"x": x8, "w": w8, "scale": scale}, [2, 2, 9], None, "BF16",
                 run_code=507015)
    emit_grouped({"x": x8, "w": w8}, ends, None, "BF16", code=161002)
    args = grouped("GroupedMatmulV4", {"x": x8, "w": w8},
                   Tensor(ends, "INT64"), 0, out([6, 4], "INT32"))
    for change in ({13: 1}, {15: 1}, {12: 0}):
        bad = list(args)
        for i, value in change.items():
            bad[i] = value
        emit("GroupedMatmulV4", bad, code=161002)


def mx_grouped(ends, half_x):
    for a, b in (("FLOAT8_E4M3FN", "FLOAT4_E2M1"),
                 ("FLOAT8_E4M3FN", "FLOAT8_E4M3FN"),
                 ("FLOAT4_E2M1", "FLOAT4_E2M1")):
        x = Coded(codes_of((6, 96), a), a)
        xs = Coded(codes_of((6, 2, 2), "FLOAT8_E8M0"), "FLOAT8_E8M0")
        w = Coded(codes_of((3, 96, 4), b), b,
                  "plain" if b == "FLOAT4_E2M1" else "transposed")
        ws = Coded(codes_of((3, 2, 4, 2), "FLOAT8_E8M0"), "FLOAT8_E8M0",
                   "transposed")
        y = by_group(x.v * mx_left(xs.x, 96), w.v * mx_right(ws.x, 96), ends)
        name = "antiquant" if a != b else "scale"
        parts = {"x": x, "w": w, "row": xs, name: ws}
        emit_grouped(parts, ends, y, "BF16", NEW)
        emit_grouped(parts, ends, None, "BF16", OLD, code=161002)
    w = Coded(codes_of((3, 8, 4), "FLOAT4_E2M1"), "FLOAT4_E2M1")
    ws = Coded(codes_of((3, 1, 4, 2), "FLOAT8_E8M0"), "FLOAT8_E8M0")
    emit_grouped({"x": half_x, "w": w, "antiquant": ws}, ends,
                 by_group(half_x.x, w.v * mx_right(ws.x, 8), ends), "BF16",
                 NEW)


def quant_matmuls():
    row = Tensor(values((5,), 0.5, 2), "FLOAT")
    for kind, layout in (("INT8", "transposed"), ("INT4", "plain")):
        a = Coded(ints_of((5, 8), kind), kind, layout)
        b = Coded(ints_of((8, 4), kind), kind, layout)
        at = Coded(a.x.T, kind) if kind == "INT8" else a
        bt = Coded(b.x.T, kind)
        flip = kind == "INT8"
        y = a.x @ b.x
        emit("QuantMatmulV4", [a, b, None, None, None, None, False, False,
                               out([5, 4], "INT32")], {8: y})
        scale = Tensor(values((4,), 0.001, 0.01), "FLOAT")
        one = Tensor([0.005], "FLOAT")
        wide = Tensor(carried(scale.x), "INT64")
        bias = Tensor(whole((4,), -500, 500), "INT32")
        late = Tensor(values((4,)), "FLOAT")
        for s, real in ((scale, scale.x), (one, one.x), (wide, scale.x)):
            emit("QuantMatmulV4", [at, bt, s, None, row, bias, flip, True,
                                   out([5, 4], "BF16")],
                 {8: (y + bias.x) * real * row.x[:, None]})
            emit("QuantMatmulV5", [a, bt, row, s, None, None, None, None,
                                   late, False, True, 0,
                                   out([5, 4], "FLOAT16", "sparse")],
                 {12: y * real * row.x[:, None] + late.x})
    emit("QuantMatmulV4", [a, b, None, None, None, None, False, False,
                           out([5, 4], "BF16")], code=161002)
    emit("QuantMatmulV4", [a, b, scale, one, None, None, False, False,
                           out([5, 4], "BF16")], code=161002)
    fp8_matmuls(row)


def fp8_matmuls(row):
    a = Filled((5, 320), "FLOAT8_E4M3FN", 31)
    b = Filled((320, 140), "FLOAT8_E4M3FN", 32, strides=(1, 3))
    bt = Filled((140, 320), "FLOAT8_E4M3FN", 32, strides=(3, 1))
    y = a.v @ b.v
    scale = Tensor(values((140,), 0.001, 0.01), "FLOAT")
    emit("QuantMatmulV5", [a, b, row, scale, None, None, None, None, None,
                           False, False, 0, out([5, 140], "BF16")],
         {12: sample(y * scale.x * row.x[:, None], 9)}, NEW)
    s2 = Tensor(values((3, 2), 0.001, 0.01), "FLOAT")
    spread = s2.x.repeat(128, 0)[:320].repeat(128, 1)[:, :140]
    for block_m, rows in ((1, 5), (128, 1)):
        s1 = Tensor(values((rows, 3), 0.5, 2), "FLOAT")
        left = a.v * s1.x.repeat(5 // rows, 0).repeat(128, 1)[:, :320]
        size = 128 | 128 << 16 | block_m << 32
        emit("QuantMatmulV5", [a, b, s1, s2, None, None, None, None, None,
                               False, False, size, out([5, 140], "BF16")],
             {12: sample(left @ (b.v * spread), 9)}, NEW)
        emit("QuantMatmulV5", [a, bt, s1, Tensor(s2.x.T, "FLOAT"), None, None,
                               None, None, None, False, True, size,
                               out([5, 140], "BF16")],
             {12: sample(left @ (b.v * spread), 9)}, NEW)
    emit("QuantMatmulV5", [a, b, s1, s2, None, None, None, None, None, False,
                           False, size, out([5, 140], "BF16")], soc=OLD,
         code=161002)
    emit("QuantMatmulV5", [a, b, s1, s2, None, None, None, None, None, False,
                           False, 64, out([5, 140], "BF16")], soc=NEW,
         code=161002)
    for kind in ("FLOAT8_E4M3FN", "FLOAT4_E2M1"):
        a = Coded(codes_of((5, 96), kind), kind)
        b = Coded(codes_of((96, 6), kind), kind)
        bt = Coded(b.x.T, kind)
        s1 = Coded(codes_of((5, 2, 2), "FLOAT8_E8M0"), "FLOAT8_E8M0")
        s2 = Coded(codes_of((2, 6, 2), "FLOAT8_E8M0"), "FLOAT8_E8M0")
        s2t = Coded(s2.x.swapaxes(0, 1), "FLOAT8_E8M0")
        y = (a.v * mx_left(s1.x, 96)) @ (b.v * mx_right(s2.x, 96))
        for right, scale2, flip in ((b, s2, False), (bt, s2t, True)):
            emit("QuantMatmulV5", [a, right, s1, scale2, None, None, None,
                                   None, None, False, flip, 32,
                                   out([5, 6], "BF16")], {12: y}, NEW)


def batch_products():
    for dtype, layout in zip(HALVES, ("transposed", "sparse")):
        x = Tensor(values((5, 2, 8)), dtype, layout)
        w = Tensor(values((2, 8, 3)), dtype, layout)
        y = np.einsum("mbk,bkn->mbn", x.x, w.x)
        emit("TransposeBatchMatMul",
             [x, w, None, None, ints(1, 0, 2), ints(0, 1, 2), ints(1, 0, 2), 0,
              1, out([5, 2, 3], dtype)], {9: y}, OLD)
        emit("TransposeBatchMatMul",
             [x, Tensor(w.x.swapaxes(1, 2), dtype), None, None, ints(1, 0, 2),
              ints(0, 2, 1), ints(0, 1, 2), 0, 1, out([2, 5, 3], dtype)],
             {9: y.swapaxes(0, 1)}, OLD)
    bad = [x, w, None, None, ints(1, 0, 2), ints(0, 1, 1), ints(1, 0, 2), 0, 1,
           out([5, 2, 3], "BF16")]
    emit("TransposeBatchMatMul", bad, soc=OLD, code=161002)
    emit("TransposeBatchMatMul", bad, soc=NEW, code=561003)
    kind = "FLOAT8_E4M3FN"
    x = Coded(codes_of((3, 2, 96), kind), kind)
    w = Coded(codes_of((2, 96, 4), kind), kind, "transposed")
    s1 = Coded(codes_of((3, 2, 2, 2), "FLOAT8_E8M0"), "FLOAT8_E8M0")
    s2 = Coded(codes_of((2, 2, 4, 2), "FLOAT8_E8M0"), "FLOAT8_E8M0")
    y = np.einsum("mbk,bkn->mbn", x.v * mx_left(s1.x, 96),
                  w.v * mx_right(s2.x, 96))
    perms = [ints(1, 0, 2), ints(0, 1, 2), ints(1, 0, 2), 1]
    emit("TransposeQuantBatchMatMul", [x, w, None, s1, s2, 27, 32] + perms
         + [out([3, 2, 4], "BF16")], {11: y}, NEW)
    emit("TransposeQuantBatchMatMul", [x, w, None, s1, s2, 1, 32] + perms
         + [out([3, 2, 4], "BF16")], soc=NEW, code=161002)


PARTS = (dynamic, mx, dequant_swiglu, group_swiglu, grouped_matmuls,
         quant_matmuls, batch_products)
