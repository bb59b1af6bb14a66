# SPDX-License-Identifier: Apache-2.0
"""Cases of make_v4_vectors.py: compressor, indexer, sparse attention."""

import numpy as np
from v4_cases import packed, unpacked
from v4_vectors import NEW, OLD, Filled, emit, out, sample
from vectors import RNG, Tensor, round_to, values

LAST = 2 ** 63 - 1
TND, PA_ND, PA_BSND = {"text": "TND"}, {"text": "PA_ND"}, {"text": "PA_BSND"}


class Compress:
    """The compressor's formula over tokens with positions."""

    def __init__(self, dim, coff, ratio, hidden, seed, dtype="BF16"):
        self.dim, self.coff, self.ratio = dim, coff, ratio
        self.dtype, self.seed = dtype, seed
        width = self.width = dim * coff
        self.wkv = Filled((width, hidden), dtype, seed, 2.0 ** -10, (3, 1))
        self.wgate = Filled((width, hidden), dtype, seed + 1, 2.0 ** -11,
                            (5, 1))
        self.ape = Filled((ratio, width), "FLOAT", seed + 2, 2.0 ** -6)
        self.norm = Filled((dim,), dtype, seed + 3, 2.0 ** -7)

    def projected(self, x, positions):
        kv = round_to(x @ self.wkv.v.T, "FLOAT")
        score = round_to(x @ self.wgate.v.T, "FLOAT")
        return kv, round_to(score + self.ape.v[positions % self.ratio],
                            "FLOAT")

    def pooled(self, state, j):
        """Row j before norm from {position: (kv, score)}."""
        r, d = self.ratio, self.dim
        kv, score = [], []
        for p in range((j - 1) * r if self.coff == 2 else j * r, (j + 1) * r):
            if p < 0:
                continue
            half = slice(d, 2 * d) if self.coff == 2 and p >= j * r else (
                slice(0, d))
            kv.append(state[p][0][half])
            score.append(state[p][1][half])
        weight = np.exp(np.array(score) - np.max(score, 0))
        return (weight * np.array(kv)).sum(0) / weight.sum(0)

    def finished(self, row, cos, sin, eps):
        row = row / np.sqrt((row ** 2).mean() + eps) * self.norm.v
        a, b = row[-64::2].copy(), row[-63::2].copy()
        row[-64::2] = a * cos[0::2] - b * sin[0::2]
        row[-63::2] = b * cos[1::2] + a * sin[1::2]
        return row


def compress_case(c, cache, table, starts, lengths, tables, soc, batched=False):
    """Runs the formula, emits the case, gives its arguments."""
    hidden = c.wkv.dims[1]
    total = sum(lengths)
    shape = (len(lengths), lengths[0], hidden) if batched else (total, hidden)
    x = Filled(shape, c.dtype, c.seed + 4, 2.0 ** -6)
    rows = x.v.reshape(total, hidden)
    n_out = min(total, total // c.ratio + len(lengths))
    angle = values((n_out, 64))
    cos, sin = Tensor(np.cos(angle), tables), Tensor(np.sin(angle), tables)
    kept = cache.v.copy()
    result = np.full((n_out, c.dim), 3.0)
    first = n = 0
    for b, (start, length) in enumerate(zip(starts, lengths)):
        positions = np.arange(start, start + length)
        kv, score = c.projected(rows[first:first + length], positions)
        first += length
        block = cache.dims[1]
        state = {}
        for p in range(start):
            at = cache.v[table[b][p // block], p % block]
            state[p] = (at[:c.width], at[c.width:])
        for i, p in enumerate(positions):
            state[p] = (kv[i], score[i])
            entry = table[b][p // block]
            if entry:
                kept[entry, p % block] = np.concatenate([kv[i], score[i]])
            if (p + 1) % c.ratio == 0:
                result[n] = c.finished(c.pooled(state, p // c.ratio),
                                       cos.x[n], sin.x[n], 1e-6)
                n += 1
    cu = None if batched else Tensor(np.cumsum([0] + lengths), "INT32")
    args = [x, c.wkv, c.wgate, cache, c.ape, c.norm, sin, cos,
            Tensor(table, "INT32"), cu, None, Tensor(starts, "INT32"), 64,
            c.ratio, c.coff, 1e-6, 2, 1, 0, out([n_out, c.dim], c.dtype)]
    emit("Compressor", args, {3: sample(kept, 101), 19: sample(result, 7)}, soc)
    return args


def compressor():
    small = Compress(128, 2, 4, 1024, 40)
    cache = Filled((3, 16, 512), "FLOAT", 50, 2.0 ** -6)
    args = compress_case(small, cache, [[1, 0], [2, 0]], [0, 5], [6, 7],
                         "BF16", OLD + NEW)
    half = Compress(128, 2, 4, 1024, 41, "FLOAT16")
    compress_case(half, cache, [[0, 0], [2, 0]], [0, 5], [6, 7], "FLOAT16",
                  OLD + NEW)
    gaps = Filled((3, 16, 512), "FLOAT", 51, 2.0 ** -6, (9000, 512, 1))
    compress_case(small, gaps, [[2, 1]], [14], [4], "FLOAT", ["A3"])
    large = Compress(512, 2, 4, 1024, 42)
    cache = Filled((2, 16, 2048), "FLOAT", 52, 2.0 ** -6)
    compress_case(large, cache, [[1]], [6], [2], "BF16", OLD + NEW,
                  batched=True)
    coarse = Compress(512, 1, 128, 1024, 43)
    cache = Filled((2, 128, 1024), "FLOAT", 53, 2.0 ** -6)
    compress_case(coarse, cache, [[1]], [127], [1], "BF16", OLD + NEW)
    for i, value in ((12, 32), (13, 128), (14, 1), (16, 1), (17, 0)):
        bad = list(args)
        bad[i] = value
        emit("Compressor", bad, code=161002)
    bad = list(args)
    bad[6] = bad[7] = Tensor(np.ones((5, 64)), "FLOAT")
    emit("Compressor", bad, soc=["A2", "A5"], code=161002)
    bad = list(args)
    bad[8] = Tensor([[1, 0], [0, 0]], "INT32")  # state that is needed
    emit("Compressor", bad, run_code=507015)
    bad[8] = Tensor([[1, 0], [3, 0]], "INT32")  # no such block
    emit("Compressor", bad, run_code=507015)


def metadata():
    angle = values((16, 4))
    for dtype in ("FLOAT", "BF16"):
        cos = Tensor(np.cos(angle), dtype)
        sin = Tensor(np.sin(angle), dtype)
        table = [[3, 1], [2, 5], [7, 7]]
        rows = [(0, 0), (1, 1), (1, 2)]  # of sequences at 0..4 and 5..11
        block = [table[b][j // 2] for b, j in rows]
        want = np.zeros((2, 5, 4))
        for n, (_, j) in enumerate(rows):
            want[:, n] = cos.x[4 * j], sin.x[4 * j]
        head = [cos, sin, Tensor([0, 5, 12, 12], "INT32"),
                Tensor([0, 5, 0], "INT32"), Tensor(table, "INT32"), 2]
        results = [out([5, 4], dtype), out([5, 4], dtype)]
        flat = [b * 2 + j % 2 for b, (_, j) in zip(block, rows)] + [-1, -1]
        emit("CompressorMetadata", head + [0, 4, 2] + results
             + [out([5], "INT32")], {9: want[0], 10: want[1], 11: flat})
        pairs = [(b, j % 2) for b, (_, j) in zip(block, rows)]
        emit("CompressorMetadata", head + [1, 4, 2] + results
             + [out([5, 2], "INT32")],
             {9: want[0], 10: want[1], 11: pairs + [(-1, -1)] * 2})
    emit("CompressorMetadata", head + [2, 4, 2] + results
         + [out([5], "INT32")], code=161002)
    emit("CompressorMetadata", head + [0, 4, 4] + results
         + [out([5], "INT32")], code=161002)


def paged(cache, table, n):
    """The first n rows of a sequence."""
    block = cache.shape[1]
    rows = [cache[table[j // block], j % block] for j in range(n)]
    return np.array(rows).reshape((n,) + cache.shape[2:])


def indexer():
    table = [[2, 0], [1, 1]]
    seq_q, seq_k = [2, 3], [72, 33]
    positions = [(0, 70), (0, 71), (1, 32)]
    for kind, scales, soc, count in (("INT8", "FLOAT16", OLD, 8),
                                     ("FLOAT8_E4M3FN", "FLOAT", NEW, 512)):
        q = Filled((3, 64, 128), kind, 60)
        k = Filled((3, 16, 1, 128), kind, 61, 1.0, (2500, 128, 128, 1))
        w = Filled((3, 64), scales, 62, 2.0 ** -7)
        qs = Filled((3, 64), scales, 63, 2.0 ** -7)
        ks = Filled((3, 16, 1), scales, 64, 2.0 ** -7)
        lists = [Tensor(seq_q, "INT32"), Tensor(seq_k, "INT32"),
                 Tensor(table, "INT32")]
        for mode in (3, 0):
            index = np.full((3, 1, count), -1)
            for t, (b, position) in enumerate(positions):
                n = (position + 1 if mode == 3 else seq_k[b]) // 4
                keys = paged(k.v[:, :, 0], table[b], n)
                dots = (keys @ q.v[t].T) * qs.v[t] * paged(
                    ks.v, table[b], n)
                order = np.argsort(-(w.v[t] * np.maximum(dots, 0)).sum(-1),
                                   kind="stable")[:count]
                index[t, 0, :len(order)] = order
            emit("VllmQuantLightningIndexer",
                 [q, k, w, qs, ks] + lists + [None, 0, 0, TND, PA_BSND, count,
                                              mode, LAST, LAST, 4, False,
                                              2500 if mode else 0, 16,
                                              out([3, 1, count], "INT32"),
                                              None],
                 {21: index}, soc)
        args = [q, k, w, qs, ks] + lists + [
            None, 0, 0, TND, PA_BSND, count, 3, LAST, LAST, 4, False, 0, 0,
            out([3, 1, count], "INT32"), None]
        for i, value in ((9, 1), (11, {"text": "BSND"}), (14, 1), (15, 128),
                         (17, 3), (18, True), (5, Tensor(seq_k, "INT8"))):
            bad = list(args)
            bad[i] = value
            emit("VllmQuantLightningIndexer", bad, soc=soc, code=161002)
        bad = list(args)
        bad[7] = Tensor([[2, 3], [1, 1]], "INT32")
        emit("VllmQuantLightningIndexer", bad, soc=soc, run_code=507015)
        emit("VllmQuantLightningIndexer", args,
             soc=NEW if soc is OLD else OLD, code=161002)
    emit("VllmQuantLightningIndexerMetadata",
         [lists[0], lists[1], 64, 1, 128, 0, 0, 2, 2, 72, TND, PA_BSND, 512, 3,
          LAST, LAST, 4, out([1024], "INT32")],
         {17: sample(np.zeros(1024), 31)})


def attend(q, keys, scale, sinks):
    s = q @ keys.T * scale
    most = np.maximum(s.max(-1), sinks)
    p = np.exp(s - most[:, None])
    return p @ keys / (p.sum(-1) + np.exp(sinks - most))[:, None]


def shared_kv(q, ori, cmp, lengths, tables, chosen, sinks, ratio):
    """One query token a sequence, at its last position."""
    rows = []
    for b, length in enumerate(lengths):
        window = paged(ori, tables[0][b], length)[-128:]
        keys = [window]
        if cmp is not None:
            n = length // ratio
            all_rows = paged(cmp, tables[1][b], n)
            keys.append(all_rows if chosen is None else all_rows[
                [j for j in chosen[b] if 0 <= j < n]])
        rows.append(attend(q[b], np.concatenate(keys), 0.0625, sinks))
    return np.array(rows)


def attention():
    lengths = [140, 9]
    tables = [[[9, 1, 2, 3, 4, 5, 6, 7, 8], [0] * 9], [[2, 1, 0], [1, 1, 1]]]
    chosen = np.full((2, 1, 512), -1)
    chosen[0, 0, :5] = [34, 0, 17, 35, 3]  # 35 is not yet visible
    chosen[1, 0, :2] = [1, 2]
    q = Filled((2, 64, 512), "BF16", 70, 2.0 ** -7)
    ori = Filled((10, 16, 1, 512), "BF16", 71, 2.0 ** -6)
    cmp = Filled((3, 16, 1, 512), "BF16", 72, 2.0 ** -6, (9000, 512, 512, 1))
    sinks = Tensor(values((64,), -2, 6), "FLOAT")
    plan = out([1024], "INT32")
    lists = [Tensor([0, 1, 2], "INT32"), None, None, None,
             Tensor(lengths, "INT32")]
    modes = [4, 3, 0, 0, 127, 0, TND, PA_ND, False, out([2, 64, 512], "BF16"),
             None]
    for use, index, ratio in ((None, None, 4), (cmp, None, 4), (cmp, chosen, 4),
                              (cmp, None, 128)):
        y = shared_kv(q.v, ori.v[:, :, 0], None if use is None else
                      use.v[:, :, 0], lengths, tables,
                      None if index is None else index[:, 0], sinks.x, ratio)
        args = [q, ori, use, None,
                None if index is None else Tensor(index, "INT32"),
                Tensor(tables[0], "INT32"),
                None if use is None else Tensor(tables[1], "INT32")
                ] + lists + [sinks, plan, 0.0625, ratio] + modes
        if index is not None:
            args[18], args[19] = 16 * 512, 9000
        emit("SparseAttnSharedkv", args, {25: sample(y, 331)}, OLD)
    for i, value in ((15, 2), (16, 3), (17, 4), (20, 128), (21, 1),
                     (22, {"text": "BSND"}), (24, True),
                     (4, Tensor([[[1]], [[1]]], "INT32"))):
        bad = list(args)
        bad[i] = value
        emit("SparseAttnSharedkv", bad, soc=OLD, code=161002)
    bad = list(args)
    bad[13] = None  # the plan is needed
    emit("SparseAttnSharedkv", bad, soc=OLD, code=161001)
    bad = list(args)
    bad[5] = Tensor([[10] * 9, [0] * 9], "INT32")
    emit("SparseAttnSharedkv", bad, soc=OLD, run_code=507015)
    packed_attention(q, sinks, plan, lists, modes, chosen)
    head = [lists[0], None, None, None, lists[4], 64, 1, 512, 2, 1, 140, 0,
            512]
    tail = [4, 4, 3, 127, 0, TND, PA_ND, True, True, plan]
    zeros = sample(np.zeros(1024), 31)
    emit("SparseAttnSharedkvMetadata", head + tail, {22: zeros}, OLD)
    emit("KvQuantSparseAttnSharedkvMetadata", head + [1, 64, 64] + tail,
         {25: zeros}, NEW)


def packed_attention(q, sinks, plan, lists, modes, chosen):
    """Caches of two blocks that share all rows but one."""
    rows = np.zeros((17, 640), np.int64)
    for i in range(17):
        row = RNG.uniform(-2, 2, 512) * 2.0 ** RNG.integers(-3, 2, 8).repeat(64)
        rows[i, :583] = packed(round_to(row, "BF16"))
    cache = {"tensor": {
        "dims": [2, 16, 1, 640], "strides": [640, 640, 640, 1], "offset": 0,
        "dtype": "FLOAT8_E4M3FN", "hex": rows.astype(np.uint8).tobytes().hex()}}
    real = unpacked(rows)
    blocks = np.array([real[:16], real[1:]])
    lengths, tables = [25, 9], [[[1, 0], [0, 0]], [[0], [1]]]
    lists = lists[:4] + [Tensor(lengths, "INT32")]
    modes = [4, 3, 127, 0, TND, PA_ND, 640, 640, False,
             out([2, 64, 512], "BF16"), None]
    chosen = chosen.copy()
    chosen[0, 0, :5] = [5, 0, 6, 2, 3]
    for use, index in ((False, None), (True, None), (True, chosen)):
        y = shared_kv(q.v, blocks, blocks if use else None, lengths, tables,
                      None if index is None else index[:, 0], sinks.x, 4)
        args = [q, cache, cache if use else None, None,
                None if index is None else Tensor(index, "INT32"),
                Tensor(tables[0], "INT32"),
                Tensor(tables[1], "INT32") if use else None
                ] + lists + [sinks, plan, 1, 64, 64, 0.0625, 4] + modes
        emit("KvQuantSparseAttnSharedkv", args, {28: sample(y, 331)}, NEW)
    args[1] = args[2] = out([2, 16, 1, 640], "FLOAT8_E4M3FN")
    for i, value in ((14, 2), (15, 128), (18, 2), (0, Filled(
            (2, 32, 512), "BF16", 70, 2.0 ** -7))):
        bad = list(args)
        bad[i] = value
        emit("KvQuantSparseAttnSharedkv", bad, soc=NEW, code=161002)


PARTS = (compressor, metadata, indexer, attention)
