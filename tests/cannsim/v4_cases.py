# SPDX-License-Identifier: Apache-2.0
"""Cases of make_v4_vectors.py: hyper-connections, rope, caches, gate, routing,
sampling."""

import numpy as np
from v4_vectors import (NEW, OLD, Filled, emit, from_codes, out,
                        sample, to_codes)
from vectors import (FLOATS, RNG, Tensor, ints, round_to, sigmoid,
                     values, whole)


def sinkhorn(comb, iters, eps):
    comb = np.exp(comb - comb.max(-1, keepdims=True))
    comb = comb / comb.sum(-1, keepdims=True) + eps
    comb = comb / (comb.sum(-2, keepdims=True) + eps)
    for _ in range(iters - 1):
        comb = comb / (comb.sum(-1, keepdims=True) + eps)
        comb = comb / (comb.sum(-2, keepdims=True) + eps)
    return comb


def mixes(h, mix, scale, base, iters, eps):
    """y, post, comb (before Sinkhorn when iters is 0) and pre."""
    n = h.shape[-2]
    pre = sigmoid(mix[..., :n] * scale[0] + base[:n]) + eps
    post = 2 * sigmoid(mix[..., n:2 * n] * scale[1] + base[n:2 * n])
    comb = mix[..., 2 * n:] * scale[2] + base[2 * n:]
    comb = comb.reshape(comb.shape[:-1] + (n, n))
    if iters:
        comb = sinkhorn(comb, iters, eps)
    return (pre[..., None] * h).sum(-2), post, comb, pre


def post_of(x, residual, post, comb):
    return (post[..., None] * x[..., None, :]
            + np.einsum("...jk,...jd->...kd", comb, residual))


def hyper():
    for dims, seed in (((1, 4, 4096), 1), ((1, 2, 4, 7168), 2)):
        d = dims[-1]
        x = Filled(dims, "BF16", seed, 2.0 ** -6)
        # Rows that overlap: 24 x 4 d numbers from a short storage.
        fn = Filled((24, 4 * d), "FLOAT", seed + 10, 2.0 ** -10, (7, 1))
        scale = Tensor([0.5, 0.25, 1.5], "FLOAT")
        base = Tensor(values((24,), -1, 1), "FLOAT")
        flat = x.v.reshape(dims[:-2] + (4 * d,))
        r = 1 / np.sqrt((flat ** 2).mean(-1, keepdims=True) + 1e-5)
        y, post, comb, _ = mixes(x.v, flat @ fn.v.T * r, scale.x, base.x, 20,
                                 1e-6)
        emit("HcPre", [x, fn, scale, base, 4, 20, 1e-6, 1e-5,
                       out(y.shape, "BF16"), out(post.shape, "FLOAT"),
                       out(comb.shape, "FLOAT")],
             {8: sample(y, 61), 9: post, 10: comb})
    small = Filled((2, 4, 64), "BF16", 5)
    fn = Filled((24, 256), "FLOAT", 6)
    outs = [out([2, 64], "BF16"), out([2, 4], "FLOAT"),
            out([2, 4, 4], "FLOAT")]
    emit("HcPre", [small, fn, scale, base, 4, 20, 1e-6, 1e-5] + outs,
         code=161002)  # d must be 4096 or 7168
    for dtype, layout in zip(FLOATS, ("plain", "transposed", "sparse")):
        h = Tensor(values((1, 3, 4, 5)), dtype, layout)
        r = 1 / np.sqrt((h.x ** 2).mean((-2, -1))[..., None] + 1e-6)
        emit("HcPreInvRms", [h, 1e-6, out([1, 3, 1], "FLOAT", layout)], {2: r})
        mix = Tensor(values((1, 3, 24)), "FLOAT", layout)
        rs = Tensor(r, "FLOAT")
        for iters in (1, 20):
            y, post, comb, _ = mixes(h.x, mix.x * rs.x, scale.x, base.x, iters,
                                     1e-6)
            emit("HcPreSinkhorn", [mix, rs, scale, base, h, 4, iters, 1e-6,
                                   out([1, 3, 5], dtype),
                                   out([1, 3, 4], "FLOAT", layout),
                                   out([1, 3, 4, 4], "FLOAT", layout)],
                 {8: y, 9: post, 10: comb})
        x = Tensor(values((1, 3, 5)), dtype, layout)
        for side in ("FLOAT", dtype):
            p = Tensor(values((1, 3, 4)), side)
            c = Tensor(values((1, 3, 4, 4)), side, layout)
            emit("HcPost", [x, h, p, c, out([1, 3, 4, 5], dtype)],
                 {4: post_of(x.x, h.x, p.x, c.x)})
    emit("HcPreSinkhorn", [mix, rs, scale, base, h, 8, 20, 1e-6,
                           out([1, 3, 5], "BF16"), out([1, 3, 4], "FLOAT"),
                           out([1, 3, 4, 4], "FLOAT")], code=161002)
    emit("HcPost", [x, h, p, Tensor(values((1, 3, 4, 4)), "FLOAT"),
                    out([1, 3, 4, 5], "BF16")], code=161002)
    emit("HcPost", [x, None, p, c, out([1, 3, 4, 5], "BF16")], code=161001)


def mhc():
    for n, dims in ((4, (2, 4, 512)), (6, (1, 1, 6, 544))):
        d = dims[-1]
        x = Filled(dims, "FLOAT16" if n == 6 else "BF16", n, 2.0 ** -6)
        phi = Filled((n * n + 2 * n, n * d), "FLOAT", n + 1, 2.0 ** -10,
                     (5, 1))
        alpha = Tensor([0.5, 0.25, 1.5], "FLOAT")
        bias = Tensor(values((n * n + 2 * n,), -1, 1), "FLOAT")
        flat = x.v.reshape(dims[:-2] + (n * d,))
        r = 1 / np.sqrt((flat ** 2).mean(-1, keepdims=True) + 1e-5)
        y, post, comb, pre = mixes(x.v, flat @ phi.v.T * r, alpha.x, bias.x, 0,
                                   1e-6)
        args = [x, phi, alpha, bias, None, 1e-5, 1e-6, out(y.shape, x.dtype),
                out(post.shape, "FLOAT"), out(comb.shape, "FLOAT")]
        want = {7: sample(y, 31), 8: post, 9: comb}
        emit("MhcPre", args + [None, None, None], want, NEW)
        emit("MhcPre", args + [out(dims[:-2], "FLOAT"), None,
                               out(pre.shape, "FLOAT")],
             {**want, 10: r, 12: pre}, NEW)
        emit("MhcPre", args + [None, out([2], "FLOAT"), None], soc=NEW,
             code=161002)
        m = Tensor(values((3, n, n)), "FLOAT", "transposed")
        emit("MhcSinkhorn", [m, 2.0 ** -20, 20, out([3, n, n], "FLOAT"), None,
                             None], {3: sinkhorn(m.x, 20, 2.0 ** -20)}, NEW)
        res = Tensor(values(dims[:-2] + (n, n)), "FLOAT", "sparse")
        p = Tensor(values(dims[:-2] + (n,)), "FLOAT")
        h = Filled(dims[:-2] + (d,), x.dtype, n + 2, 2.0 ** -6)
        emit("MhcPost", [x, res, h, p, out(dims, x.dtype)],
             {4: sample(post_of(h.v, x.v, p.x, res.x), 61)}, NEW)
    emit("MhcSinkhorn", [Tensor(values((2, 5, 5)), "FLOAT"), 1e-6, 20,
                         out([2, 5, 5], "FLOAT"), None, None], soc=NEW,
         code=161002)
    emit("MhcPre", [None] * 5 + [1e-5, 1e-6] + [None] * 6, soc=OLD,
         code=561003)


def rotate(x, cos, sin, mode):
    n = x.shape[-1]
    if mode == 1:
        turned = np.stack([-x[..., 1::2], x[..., 0::2]], -1).reshape(x.shape)
    else:
        parts = np.split(x, 1 if mode == 0 else 2, -1)
        m = parts[0].shape[-1] // 2
        turned = np.concatenate(
            [np.concatenate([-p[..., m:], p[..., :m]], -1) for p in parts], -1)
    assert turned.shape[-1] == n
    return x * cos + turned * sin


def rotary():
    for dtype, layout in zip(FLOATS, ("plain", "transposed", "sparse")):
        for mode in (0, 1, 2):
            for side in {dtype, "FLOAT"}:
                x = Tensor(values((2, 1, 2, 12)), dtype, layout)
                angle = values((2, 1, 1, 8))
                cos = Tensor(np.cos(angle), side)
                sin = Tensor(np.sin(angle), side)
                y = x.x.copy()
                y[..., 4:] = rotate(y[..., 4:], cos.x, sin.x, mode)
                emit("InplacePartialRotaryMul", [x, cos, sin, mode,
                                                 ints(4, 12)], {0: y},
                     inplace=(0,))
    for mode, part in ((3, ints(4, 12)), (1, ints(4, 11)), (1, ints(4, 14)),
                       (1, ints(4))):
        emit("InplacePartialRotaryMul", [x, cos, sin, mode, part], code=161002)
    emit("InplacePartialRotaryMul", [x, cos, sin, 1, None], code=161001)


def caches():
    for kind, dtype in (("INT32", "BF16"), ("INT64", "INT8"),
                        ("INT32", "FLOAT16")):
        var = Tensor(whole((3, 4, 1, 6)), dtype, "sparse")
        index = Tensor([[0, 3], [2, 1], [-1, 0]], kind)
        updates = Tensor(whole((3, 1, 6)), dtype, "transposed")
        y = var.x.copy()
        y[0, 3], y[2, 1] = updates.x[0], updates.x[1]
        emit("ScatterNdUpdateV2", [var, index, updates, None], {0: y}, OLD,
             inplace=(0,))
        emit("ScatterNdUpdateV2", [var, index, updates,
                                   ints(*var.strides)], {0: y}, OLD,
             inplace=(0,))
    emit("ScatterNdUpdateV2", [var, Tensor([[3, 0]], "INT32"),
                               Tensor(whole((1, 1, 6)), dtype), None],
         soc=OLD, run_code=507015)
    emit("ScatterNdUpdateV2", [var, index, var, None], soc=OLD, code=161002)
    emit("ScatterNdUpdateV2", [var, index, updates, ints(1)], soc=OLD,
         code=161002)
    rows = RNG.uniform(-3, 3, (4, 512)) * 2.0 ** RNG.integers(-9, 9, (4, 8)
                                                              ).repeat(64, 1)
    rows[1, :64] = 0
    x = Tensor(rows, "BF16")
    codes = np.full((2, 3, 640), 3)
    slots = [4, -1, 0, 2]
    for t, slot in enumerate(slots):
        if slot >= 0:
            codes[slot // 3, slot % 3, :583] = packed(x.x[t])
    cache = out([2, 3, 1, 640], "FLOAT8_E4M3FN")
    cache.x = np.full(cache.x.shape, 3.0)
    for kind in ("INT32", "INT64"):
        emit("KvCompressEpilog", [cache, x, Tensor(slots, kind), 64, 2, 1, 1,
                                  1920], {0: sample(codes, 1 if kind == "INT32" else 7)},
             NEW, inplace=(0,))
    x = Filled((4, 512), "BF16", 3)
    emit("KvCompressEpilog", [cache, x, Tensor(slots, kind), 128, 2, 1, 1, 0],
         soc=NEW, code=161002)
    emit("KvCompressEpilog", [cache, x, Tensor([9, 0, 1, 2], kind), 64, 2, 1,
                              1, 0], soc=NEW, run_code=507015)


def power_scale(x):
    """2^ceil(log2(max(|x|, 1e-4) / 448)) of the last axis, by search."""
    peak = np.maximum(np.abs(x).max(-1), 1e-4)
    grid = 2.0 ** np.arange(-40, 40)
    return grid[np.argmax(grid >= (peak / 448)[..., None], -1)]


def packed(row):
    """The 583 bytes of a row of 512."""
    tiles = row[:448].reshape(7, 64)
    scale = power_scale(tiles)
    rope = np.frombuffer(np.float32(row[448:]).tobytes(), np.uint16)[1::2]
    return np.concatenate([
        np.frombuffer(rope.tobytes(), np.uint8),
        to_codes(tiles / scale[:, None], "FLOAT8_E4M3FN").reshape(-1),
        np.log2(scale) + 127]).astype(int)


def unpacked(codes):
    """Rows of 512 from bytes [..., 640]."""
    codes = np.asarray(codes).astype(np.uint8)
    nope = from_codes(codes[..., 128:576], "FLOAT8_E4M3FN")
    scale = from_codes(codes[..., 576:583], "FLOAT8_E8M0").repeat(64, -1)
    halves = np.ascontiguousarray(codes[..., :128]).view(np.uint16)
    rope = (halves.astype(np.uint32) << 16).view(np.float32)
    return np.concatenate([nope * scale, rope.astype(np.float64)], -1)


def best(scores, k):
    return np.argsort(-scores, -1, kind="stable")[..., :k]


def gate_scores(x, norm):
    if norm == 0:
        e = np.exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)
    return sigmoid(x) if norm == 1 else np.sqrt(np.log1p(np.exp(x)))


def weights(scores, chosen, norm, scale, eps):
    s = np.take_along_axis(scores, chosen, -1)
    return s * scale / (1 if norm == 0 else s.sum(-1, keepdims=True) + eps)


def gates():
    for norm, dtype in ((2, "FLOAT"), (1, "BF16"), (0, "FLOAT16")):
        x = Tensor(values((5, 16), -4, 4), dtype, "transposed")
        bias = Tensor(values((16,)), dtype)
        scores = gate_scores(x.x, norm)
        results = [out([5, 3], dtype), out([5, 3], "INT32"),
                   out([5, 16], "FLOAT")]
        for b in (None, bias):
            chosen = best(scores + (b.x if b else 0), 3)
            y = weights(scores, chosen, norm, 1.5, 1e-20)
            emit("MoeGatingTopKHash",
                 [x, b, None, None, 3, 1, 1, 1.5, 1e-20, 1, 0, norm, True]
                 + results, {13: y, 14: chosen, 15: scores})
            emit("MoeGatingTopKV2",
                 [x, b, None, None, 3, 1, 1, 1, 0, norm, False, 1.5, 1e-20]
                 + results[:2] + [None], {13: y, 14: chosen})
            if norm < 2:
                emit("MoeGatingTopK", [x, b, 3, 1, 1, 1, 0, norm, True, 1.5,
                                       1e-20] + results,
                     {11: y, 12: chosen, 13: scores})
        # Two of four groups, by their best one or two.
        for two in (0, 1):
            g = np.sort((scores + bias.x).reshape(5, 4, 4), -1)[..., ::-1]
            kept = best(g[..., 0] + (g[..., 1] if two else 0), 2)
            mask = np.zeros((5, 4), bool)
            np.put_along_axis(mask, kept, True, -1)
            masked = np.where(mask.repeat(4, -1), scores + bias.x, -np.inf)
            chosen = best(masked, 3)
            emit("MoeGatingTopKHash",
                 [x, bias, None, None, 3, 2, 4, 1.5, 1e-20, two, 0, norm,
                  False] + results[:2] + [None],
                 {13: weights(scores, chosen, norm, 1.5, 1e-20), 14: chosen})
        table = RNG.permutation(16 * 2)[:30].reshape(10, 3) % 16
        ids = np.array([3, 9, 0, 3, 7])
        for kind in ("INT32", "INT64"):
            emit("MoeGatingTopKHash",
                 [x, None, Tensor(ids, kind), Tensor(table, kind), 3, 1, 1,
                  1.5, 1e-20, 1, 0, norm, False] + results[:2] + [None],
                 {13: weights(scores, table[ids], norm, 1.5, 1e-20),
                  14: table[ids]})
    ties = Tensor(np.ones((1, 6)), "FLOAT")
    emit("MoeGatingTopKHash", [ties, None, None, None, 2, 1, 1, 1.0, 0.0, 1, 0,
                               2, False, out([1, 2], "FLOAT"),
                               out([1, 2], "INT32"), None],
         {13: [0.5, 0.5], 14: [0, 1]})
    tail = [out([5, 3], "FLOAT16"), out([5, 3], "INT32"), None]
    emit("MoeGatingTopKHash", [x, bias, None, None, 3, 1, 1, 1.5, 0.0, 1, 1, 2,
                               False] + tail, code=161002)  # renorm
    emit("MoeGatingTopKHash", [x, bias, Tensor(ids, "INT32"), None, 3, 1, 1,
                               1.5, 0.0, 1, 0, 2, False] + tail, code=161002)
    emit("MoeGatingTopKHash", [x, None, Tensor([10] * 5, "INT32"),
                               Tensor(table, "INT32"), 3, 1, 1, 1.5, 0.0, 1, 0,
                               2, False] + tail, run_code=507015)
    emit("MoeGatingTopK", [x, bias, 3, 1, 1, 1, 0, 2, False, 1.5, 0.0] + tail,
         code=161002)


def quantise(rows, limit):
    """Codes and float32 scales of rows."""
    scale = round_to(np.abs(rows).max(-1) / limit, "FLOAT")
    safe = np.where(scale == 0, 1, scale)
    return np.rint(rows / safe[..., None]), scale


def routing():
    for dtype, first, last in (("BF16", 0, 6), ("FLOAT16", 1, 4),
                               ("INT8", 0, 6)):
        x = Tensor(whole((5, 8)), dtype, "transposed")
        chosen = RNG.integers(0, 6, (5, 2))
        flat = chosen.reshape(-1)
        order = [i for i in np.argsort(flat, kind="stable")
                 if first <= flat[i] < last]
        n = len(order)
        expanded = np.full((10, 8), 3.0)
        expanded[:n] = x.x[np.array(order) // 2]
        gather = np.full(10, -1)
        gather[order] = np.arange(n)
        scatter = np.full(10, -1)
        scatter[:n] = order
        counts = np.bincount(flat, minlength=6)[first:last]
        pairs = [(first + e, c) for e, c in enumerate(counts) if c]
        pairs += [(0, 0)] * (last - first - len(pairs))
        limits = ints(first, last) if last < 6 else None
        scale = Tensor(values((5,)), "FLOAT")
        scales = np.full(10, 3.0)
        scales[:n] = scale.x[np.array(order) // 2]
        for kind, want, shape in ((0, counts.cumsum(), [last - first]),
                                  (1, counts, [last - first]),
                                  (2, pairs, [last - first, 2])):
            row_type = kind % 2
            emit("MoeInitRoutingV3",
                 [x, Tensor(chosen, "INT32"), scale, None, 10, 0, 6, 0, kind,
                  True, -1, limits, row_type, out([10, 8], dtype),
                  out([10], "INT32"), out(shape, "INT64"),
                  out([10], "FLOAT")],
                 {13: expanded, 14: scatter if row_type else gather, 15: want,
                  16: scales})
    x = Tensor(values((5, 8)), "BF16")
    order = np.argsort(flat, kind="stable")
    place = np.empty(10, int)
    place[order] = np.arange(10)
    smooth = Tensor(values((6, 8), 0.5, 2), "FLOAT")
    for s in (None, smooth):
        rows = x.x[order // 2] * (s.x[flat[order]] if s else 1)
        codes, scales = quantise(rows, 127)
        emit("MoeInitRoutingV3",
             [x, Tensor(chosen, "INT32"), s, None, 10, 0, 6, 0, 1, False, 1,
              None, 0, out([10, 8], "INT8"), out([10], "INT32"), None,
              out([10], "FLOAT")], {13: codes, 14: place, 16: scales})
    for active, drop, quant in ((7, 0, -1), (10, 1, -1), (10, 0, 0)):
        emit("MoeInitRoutingV3",
             [x, Tensor(chosen, "INT32"), None, None, active, 0, 6, drop, 1,
              False, quant, None, 0, out([10, 8], "BF16"), out([10], "INT32"),
              None, None], code=161002)
    for dtype in FLOATS:
        rows = Tensor(values((10, 8)), dtype, "sparse")
        probs = Tensor(values((5, 2), 0, 1), "FLOAT")
        place[3] = -1
        index = Tensor(place, "INT32")
        seen = rows.x[place] * (place >= 0)[:, None]
        y = (seen.reshape(5, 2, 8) * probs.x[..., None]).sum(1)
        emit("MoeTokenUnpermute", [rows, index, probs, False, None,
                                   out([5, 8], dtype)], {5: y})
        emit("MoeTokenUnpermute", [rows, index, None, False, None,
                                   out([10, 8], dtype)], {5: seen})
        x1 = Tensor(values((5, 8)), dtype)
        bias = Tensor(values((6, 8)), dtype)
        for mode, idx in ((2, place), (0, place.reshape(5, 2).T.reshape(-1))):
            biased = (seen.reshape(5, 2, 8) + bias.x[chosen]
                      * (place >= 0).reshape(5, 2, 1))
            emit("MoeFinalizeRoutingV2",
                 [rows, Tensor(idx, "INT32"), x1, x1, bias, probs,
                  Tensor(chosen, "INT32"), mode, out([5, 8], dtype)],
                 {8: 2 * x1.x + (biased * probs.x[..., None]).sum(1)})
            emit("MoeFinalizeRoutingV2",
                 [rows, Tensor(idx, "INT32"), None, None, None, probs, None,
                  mode, out([5, 8], dtype)], {8: y})
    emit("MoeTokenUnpermute", [rows, Tensor([10] * 5, "INT32"), None, False,
                               None, out([5, 8], "BF16")], run_code=507015)
    emit("MoeTokenUnpermute", [rows, index, probs, True, None,
                               out([5, 8], "BF16")], code=161002)
    emit("MoeTokenUnpermute", [rows, index, None, False, None,
                               out([5, 8], "BF16")], code=161002)
    emit("MoeFinalizeRoutingV2", [rows, index, None, None, bias, probs, None,
                                  0, out([5, 8], "BF16")], code=161002)


def top_k_top_p(x, k, p):
    y = x.copy()
    for r in range(len(y)):
        order = np.argsort(x[r], kind="stable")
        if k is not None and 0 < k[r] < x.shape[1]:
            y[r][y[r] < x[r][order[-int(k[r])]]] = -np.inf
        if p is not None:
            e = np.exp(y[r] - y[r].max())
            below = (e / e.sum())[order].cumsum() <= 1 - p[r]
            below[-1] = False
            y[r][order[below]] = -np.inf
    return y


def sampling():
    for dtype in FLOATS:
        logits = Tensor(values((4, 12), -4, 4), dtype, "transposed")
        p = Tensor([0.9, 0.5, 0.125, 1.0], dtype)
        k = Tensor([3, 0, 5, 100], "INT32")
        for some_p, some_k in ((p, k), (None, k), (p, None)):
            emit("ApplyTopKTopP", [logits, some_p, some_k,
                                   out([4, 12], dtype)],
                 {3: top_k_top_p(logits.x, some_k and some_k.x,
                                 some_p and some_p.x)})
        x = Tensor(whole((3, 6, 2), -4, 4), dtype, "sparse")
        for largest in (True, False):
            order = np.argsort(-x.x if largest else x.x, 1, kind="stable")
            order = order[:, :4]
            emit("Topk", [x, 4, 1, largest, True, out([3, 4, 2], dtype),
                          out([3, 4, 2], "INT64")],
                 {5: np.take_along_axis(x.x, order, 1), 6: order})
    emit("Topk", [Tensor([1, np.nan, 2], "FLOAT"), 2, 0, True, True,
                  out([2], "FLOAT"), out([2], "INT64")], {6: [1, 2]})
    emit("Topk", [x, 7, 1, True, True, out([3, 7, 2], "BF16"),
                  out([3, 7, 2], "INT64")], code=161002)
    emit("ApplyTopKTopP", [logits, None, None, out([4, 12], "BF16")],
         code=161002)


PARTS = (hyper, mhc, rotary, caches, gates, routing, sampling)
