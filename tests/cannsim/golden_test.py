#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Operators of cannsim against the golden vectors of DeepSeek-V4, through the
C interface, on the generation that has them.

    golden_test.py TOOLKIT ABI.json PROFILE GENERATION GOLDENS

The goldens round where the official code does; operators of Ascend round once.
So results are held to a unit in the last place, or, behind several roundings,
to the rounding noise that the goldens' notes measured (0.008 relative).
"""

import json
import math
import os
import pathlib
import struct
import sys

import ops_test

TYPES = {"BF16": "BF16", "F32": "FLOAT", "I32": "INT32", "I64": "INT64",
         "U8": "UINT8", "I8": "UINT8", "F8_E4M3": "FLOAT8_E4M3FN",
         "F8_E8M0": "FLOAT8_E8M0"}
FP8, FP4, E8M0 = "FLOAT8_E4M3FN", "FLOAT4_E2M1", "FLOAT8_E8M0"


class File:
    """A safetensors file: (dims, dtype, bytes) by name."""

    def __init__(self, path):
        self.data = path.read_bytes()
        size = struct.unpack("<Q", self.data[:8])[0]
        self.entries = json.loads(self.data[8:8 + size])
        self.start = 8 + size

    def __getitem__(self, name):
        entry = self.entries[name]
        first, last = (self.start + i for i in entry["data_offsets"])
        return entry["shape"], TYPES[entry["dtype"]], self.data[first:last]

    def numbers(self, name):
        dims, dtype, data = self[name]
        return ops_test.decode(data, dtype)


def tensor(dims, dtype, data, strides=None):
    spec = {"dims": list(dims), "dtype": dtype, "hex": data.hex()}
    if strides:
        spec.update(strides=strides, offset=0)
    return {"tensor": spec}


def of(source, dims=None):
    """A tensor as the goldens have it, perhaps with other dims."""
    return tensor(dims or source[0], source[1], source[2])


def floats(dims, numbers):
    return tensor(dims, "FLOAT", struct.pack(f"<{len(numbers)}f", *numbers))


def halves(dims, numbers):
    """BF16 of numbers that it can hold."""
    raw = struct.pack(f"<{len(numbers)}f", *numbers)
    return tensor(dims, "BF16", b"".join(raw[i + 2:i + 4]
                                         for i in range(0, len(raw), 4)))


def integers(dims, numbers, dtype="INT32"):
    code = {"INT32": "i", "INT64": "q"}[dtype]
    return tensor(dims, dtype, struct.pack(f"<{len(numbers)}{code}", *numbers))


def empty(dims, dtype):
    n = math.prod(dims) * (1 if dtype == FP4 else 2 * ops_test.SIZES[dtype])
    return {"tensor": {"dims": list(dims), "dtype": dtype, "hex": "0" * n}}


class Runner:
    def __init__(self, toolkit, operators):
        self.toolkit, self.operators = toolkit, operators

    def __call__(self, op, args, *results):
        """Contents of the arguments `results` as numbers."""
        call = ops_test.Call(self.toolkit, self.operators[op]["args"],
                             {"op": op, "args": args})
        wrong = call.run()
        if wrong:
            raise RuntimeError(f"{op}: {wrong}")
        got = []
        for i in results:
            one = call.tensors[i]
            data = self.toolkit.from_device(one.address, len(one.before))
            got.append(ops_test.decode(data, one.spec["dtype"]))
        call.free()
        return got if len(got) != 1 else got[0]


def near(name, got, want, relative, least=1.0):
    """Faults: elements that differ by more than `relative`, fewer than `least`
    equal ones."""
    if len(got) != len(want):
        return [f"{name}: {len(got)} numbers, not {len(want)}"]
    size = max(abs(w) for w in want)
    far = [i for i, (g, w) in enumerate(zip(got, want))
           if not abs(g - w) <= relative * max(abs(w), size * 2.0 ** -8)]
    faults = [f"{name}: element {i}: {got[i]!r}, not {want[i]!r}"
              for i in far[:3]]
    same = sum(g == w for g, w in zip(got, want)) / len(want)
    if same < least:
        faults.append(f"{name}: {same:.3f} of the numbers are equal")
    return faults


def noise(got, want):
    return math.sqrt(sum((g - w) ** 2 for g, w in zip(got, want))
                     / sum(w * w for w in want))


ULP = 2.0 ** -7  # of BF16, at worst


def hyper(run, g, model):
    n = 64
    eye = [float(i == j) for i in range(4) for j in range(4)]
    y, post, comb = run(
        "HcPreSinkhorn",
        [of(g["hc_sinkhorn.mixes"]), floats([n, 1], [1.0] * n),
         of(g["hc_sinkhorn.scale"]), of(g["hc_sinkhorn.base"]),
         floats([n, 4, 4], eye * n), 4, 20, 1e-6, empty([n, 4], "FLOAT"),
         empty([n, 4], "FLOAT"), empty([n, 4, 4], "FLOAT")], 8, 9, 10)
    faults = []
    for name, got in (("pre", y), ("post", post), ("comb", comb)):
        faults += near(name, got, g.numbers(f"hc_sinkhorn.{name}"), 1e-5, 0)
    # HcPre in parts, with the weights of layer 1.
    h = g["hc_pre.h"]
    flat = g.numbers("hc_pre.h")
    rms = run("HcPreInvRms", [of(h), 1e-6, empty([6, 1], "FLOAT")], 2)
    fn = model["layers.1.hc_attn_fn"]
    mixes = run("Mm", [floats([6, 1024], flat), tensor(
        [1024, 24], "FLOAT", fn[2], [1, 1024]), empty([6, 24], "FLOAT"), 0], 2)
    y, post, comb = run(
        "HcPreSinkhorn",
        [floats([6, 24], mixes), floats([6, 1], rms),
         of(model["layers.1.hc_attn_scale"]),
         of(model["layers.1.hc_attn_base"]), of(h), 4, 20, 1e-6,
         empty([6, 256], "BF16"), empty([6, 4], "FLOAT"),
         empty([6, 4, 4], "FLOAT")], 8, 9, 10)
    faults += near("hc_pre", y, g.numbers("hc_pre.x"), ULP, 0.99)
    faults += near("hc_pre.post", post, g.numbers("hc_pre.post"), 1e-5, 0)
    faults += near("hc_pre.comb", comb, g.numbers("hc_pre.comb"), 1e-5, 0)
    y = run("HcPost", [of(g["hc_post.sub_out"]), of(h), of(g["hc_pre.post"]),
                       of(g["hc_pre.comb"]), empty([6, 4, 256], "BF16")], 4)
    return faults + near("hc_post", y, g.numbers("hc_post.h_out"), ULP, 0.99)


def rope(run, g, _):
    faults = []
    for kind in ("main", "compress"):
        twice = {name: [v for v in g.numbers(f"rope.{kind}.{name}")
                        for _ in range(2)] for name in ("cos", "sin")}
        for name, sign in (("fwd", 1), ("inv", -1)):
            y = run("InplacePartialRotaryMul",
                    [of(g["rope.x"], [17, 1, 3, 128]),
                     floats([17, 1, 1, 64], twice["cos"]),
                     floats([17, 1, 1, 64], [sign * s for s in twice["sin"]]),
                     1, {"ints": [64, 128]}], 0)
            faults += near(f"rope.{kind}.{name}", y,
                           g.numbers(f"rope.{kind}.{name}"), ULP, 0.99)
    return faults


def norm(run, g, model):
    y = run("RmsNorm", [of(g["rmsnorm.x"]),
                        of(model["layers.0.attn_norm.weight"]), 1e-6,
                        empty([5, 256], "BF16"), empty([5, 1], "FLOAT")], 3)
    return near("rmsnorm", y, g.numbers("rmsnorm.y"), ULP, 0.99)


def gate(run, g, model):
    n, experts, k = 141, 16, 2
    scale = json.loads(model.config)["routed_scaling_factor"]
    x = floats([n, 256], g.numbers("module.x"))
    faults = []
    for layer, name in ((1, "gate_bias"), (0, "gate_hash")):
        weight = model.numbers(f"layers.{layer}.ffn.gate.weight")
        w = tensor([256, experts], "FLOAT",
                   struct.pack(f"<{len(weight)}f", *weight), [1, 256])
        logits = run("Mm", [x, w, empty([n, experts], "FLOAT"), 0], 2)
        lists = [of(model["layers.1.ffn.gate.bias"]), None, None]
        if name == "gate_hash":
            lists = [None, of(g["gate_hash.ids"]),
                     of(model["layers.0.ffn.gate.tid2eid"])]
        y, index = run(
            "MoeGatingTopKHash",
            [floats([n, experts], logits)] + lists
            + [k, 1, 1, scale, 1e-20, 1, 0, 2, False, empty([n, k], "FLOAT"),
               empty([n, k], "INT32"), None], 13, 14)
        want = g.numbers(f"{name}.idx")
        free = ([m < 1e-5 for m in g.numbers("gate_bias.margin")]
                if name == "gate_bias" else [False] * n)
        for t in range(n):
            row = slice(k * t, k * t + k)
            if not free[t] and index[row] != want[row]:
                faults.append(f"{name}: token {t}: experts {index[row]}, not "
                              f"{want[row]}")
        faults += near(name, y, g.numbers(f"{name}.w"), 1e-5, 0)
    return faults


def attention(run, g, _):
    """64 heads are asked for: the 16 of the goldens, four times. Of the rows
    that a token sees, four fifths become its window, the rest compressed."""
    q, kv = g["sparse_attn_512.q"], g["sparse_attn_512.kv"]
    rows = [kv[2][1024 * i:1024 * (i + 1)] for i in range(90)]
    chosen = g.numbers("sparse_attn_512.topk_idxs")
    want = g.numbers("sparse_attn_512.o_ideal_f32")
    sinks = g.numbers("sparse_attn_512.sink")
    faults = []
    for t in range(2):
        seen = [i for i in chosen[70 * t:70 * (t + 1)] if i >= 0]
        n_cmp = len(seen) // 5
        parts = seen[:len(seen) - n_cmp], seen[len(seen) - n_cmp:]
        caches = []
        for part in parts:
            data = b"".join(rows[i] for i in part)
            blocks = -(-len(part) // 16)
            data += bytes(blocks * 16 * 1024 - len(data))
            caches.append((tensor([blocks, 16, 1, 512], "BF16", data),
                           integers([1, blocks], list(range(blocks)))))
        one = q[2][16 * 1024 * t:16 * 1024 * (t + 1)]
        index = list(range(n_cmp)) + [-1] * (512 - n_cmp)
        y = run("SparseAttnSharedkv",
                [tensor([1, 64, 512], "BF16", one * 4), caches[0][0],
                 caches[1][0], None, integers([1, 1, 512], index),
                 caches[0][1], caches[1][1], integers([2], [0, 1]), None, None,
                 None, integers([1], [len(parts[0])]), floats([64], sinks * 4),
                 integers([1024], [0] * 1024), 512 ** -0.5, 4, 4, 3, 0, 0, 127,
                 0, {"text": "TND"}, {"text": "PA_ND"}, False,
                 empty([1, 64, 512], "BF16"), None], 25)
        ideal = want[16 * 512 * t:16 * 512 * (t + 1)]
        faults += near(f"sparse_attn {t}", y, ideal * 4, ULP, 0)
    return faults


def scale_of(numbers, largest):
    """The official scale: 2^ceil(log2(max / largest))."""
    peak = max(max(abs(x) for x in numbers), 1e-4)
    mantissa, exponent = math.frexp(peak / largest)
    return 2.0 ** (exponent - (mantissa == 0.5))


def to_e4m3(x):
    """RNE to the numbers of E4M3 (|x| <= 448)."""
    step = 2.0 ** (max(math.frexp(x)[1], -5) - 4) if x else 1.0
    return round(x / step) * step


def compressor(run, g, model):
    """Hidden size 256 padded with zeros to the 1024 that is asked for."""
    base = "layers.1.attn.compressor."
    pad = bytes(2 * 768)

    def padded(data):
        return b"".join(data[i:i + 512] + pad
                        for i in range(0, len(data), 512))

    n, rows = 141, 36
    freq = g.numbers("rope.compress.freq")
    angle = [[4 * j * f for f in freq for _ in range(2)] for j in range(rows)]
    tables = [floats([rows, 64], [fn(a) for row in angle for a in row])
              for fn in (math.sin, math.cos)]
    weights = [tensor([256, 1024], "BF16",
                      padded(model[f"{base}{w}.weight"][2]))
               for w in ("wkv", "wgate")]
    y = run("Compressor",
            [tensor([n, 1024], "BF16", padded(g["module.x"][2]))] + weights
            + [empty([2, 16, 512], "FLOAT"), of(model[base + "ape"]),
               of(model[base + "norm.weight"])] + tables
            + [None, integers([2], [0, n]), None, integers([1], [0]), 64, 4,
               2, 1e-6, 2, 1, 0, empty([rows, 128], "BF16")], 19)
    for first in range(0, 35 * 128, 128):  # the goldens' rows are quantised
        s = scale_of(y[first:first + 64], 448)
        for i in range(first, first + 64):
            y[i] = to_e4m3(y[i] / s) * s
    want = g.numbers("compressor4.rows")
    off = noise(y[:35 * 128], want)
    return [] if off < 0.008 else [f"compressor4: noise {off:.4f}"]


def packed_cache(run, g, _):
    n = 24
    data = g["act_quant64_inplace.x"][2]
    rows = b"".join(data[i:i + 896] + bytes(128)
                    for i in range(0, len(data), 896))
    cache = run("KvCompressEpilog",
                [empty([2, 16, 1, 640], FP8), tensor([n, 512], "BF16", rows),
                 integers([n], list(range(n))), 64, 2, 1, 1, 0], 0)
    got = []
    for t in range(n):
        row = cache[640 * t:640 * (t + 1)]
        codes = row[128:576]
        got += [g.e4m3[c] * 2.0 ** (row[576 + i // 64] - 127)
                for i, c in enumerate(codes)]
    return near("act_quant64", got, g.numbers("act_quant64_inplace.y"), 0)


def fp8_gemm(run, g, _):
    scales = [2.0 ** (c - 127) for c in g.numbers("fp8_gemm.x_scale_code")]
    w_scale = [2.0 ** (c - 127) for c in g.numbers("fp8_gemm.w_scale")]
    y = run("QuantMatmulV5",
            [tensor([9, 512], FP8, g["fp8_gemm.x_codes"][2]),
             of(g["fp8_gemm.w"]), floats([9, 4], scales),
             floats([3, 4], w_scale), None, None, None, None, None, False,
             True, 128 | 128 << 16 | 1 << 32, empty([9, 384], "BF16")], 12)
    return near("fp8_gemm", y, g.numbers("fp8_gemm.y"), ULP, 0.99)


def mxfp4(run, x_codes, x_scales, weight, w_scale, n_rows):
    """x in E4M3 with a scale for 128 numbers, an expert's weights in FP4."""
    n, k = weight[0][0], weight[0][1] * 2
    rows = [bytes(code for code in x_scales[i:i + k // 128] for _ in range(4))
            for i in range(0, len(x_scales), k // 128)]
    args = [[t["tensor"]] if t else None for t in (
        tensor([n_rows, k], FP8, x_codes),
        tensor([1, k, n], FP4, weight[2], [n * k, 1, k]), None, None, None,
        tensor([1, k // 64, n, 2], E8M0, w_scale[2],
               [n * k // 32, 2, k // 32, 1]), None,
        tensor([n_rows, k // 64, 2], E8M0, b"".join(rows)))]
    args = [{"list": a} if a else None for a in args]
    result = {"list": [empty([n_rows, n], "BF16")["tensor"]]}
    return run("GroupedMatmulV5", args
               + [integers([1], [n_rows], "INT64"), None, None, None, 2, 0, 0,
                  0, None, result, None, None], "17.0")


def fp4_gemm(run, g, _):
    y = mxfp4(run, g["fp4_gemm.x_codes"][2], g["fp4_gemm.x_scale_code"][2],
              g["fp4_gemm.w"], g["fp4_gemm.w_scale"], 9)
    return near("fp4_gemm", y, g.numbers("fp4_gemm.y"), ULP, 0.99)


def expert(run, g, model):
    """The goldens round to BF16 between SwiGLU and E4M3, which the operator does
    not: its own result is held loosely, the rounded one (yOrigin) closely."""
    n = 141
    gates, ups = g["expert.gate"][2], g["expert.up"][2]
    x = b"".join(gates[i:i + 256] + ups[i:i + 256]
                 for i in range(0, len(gates), 256))
    codes, scales, origin = run(
        "SwigluGroupQuant",
        [tensor([n, 256], "BF16", x), of(g["expert.weight"]), None, 36, 1, 128,
         True, True, True, 1, 10.0, empty([n, 128], FP8),
         empty([n, 1], E8M0), empty([n, 128], "BF16")], 11, 12, 13)
    w2 = "layers.1.ffn.experts.3.w2."
    weights = model[w2 + "weight"], model[w2 + "scale"], n
    want = g.numbers("expert.y")
    off = noise(mxfp4(run, bytes(codes), bytes(scales), *weights), want)
    faults = [] if off < 0.02 else [f"expert: noise {off:.4f}"]
    table = {v: c for c, v in enumerate(g.e4m3[:255]) if c != 127}
    codes, scales = b"", b""
    for first in range(0, n * 128, 128):
        row = origin[first:first + 128]
        s = scale_of(row, 448)
        codes += bytes(table[to_e4m3(v / s)] for v in row)
        scales += bytes([int(math.log2(s)) + 127])
    y = mxfp4(run, codes, scales, *weights)
    return faults + near("expert", y, want, ULP, 0.98)


def e4m3_codes(numbers, table):
    """Codes of numbers that E4M3 holds after a power of two, and that power."""
    s = scale_of(numbers, 448)
    codes = []
    for x in numbers:
        if x / s not in table:
            raise RuntimeError(f"{x} / {s} is not a number of E4M3")
        codes.append(table[x / s])
    return bytes(codes), s


def indexer(run, g, _):
    """Four heads of the goldens, 60 with weight 0. The goldens round scores to
    BF16, so only rows with a clear cut have to agree."""
    n = 141
    table = {v: c for c, v in enumerate(g.e4m3[:255]) if c != 127}
    q, weights = g.numbers("indexer.q_fp4"), g.numbers("indexer.weights")
    keys = g.numbers("indexer_compressor4.rows")
    codes, scales, w = b"", [], []
    for t in range(n):
        for h in range(4):
            first = (4 * t + h) * 128
            one, s = e4m3_codes(q[first:first + 128], table)
            codes += one
            scales.append(s)
        codes += bytes(60 * 128)
        scales += [0.0] * 60
        w += weights[4 * t:4 * t + 4] + [0.0] * 60
    key_codes, key_scales = b"", []
    for j in range(35):
        one, s = e4m3_codes(keys[128 * j:128 * (j + 1)], table)
        key_codes += one
        key_scales.append(s)
    every = 2 ** 63 - 1
    index = run("VllmQuantLightningIndexer",
                [tensor([n, 64, 128], FP8, codes),
                 tensor([3, 16, 1, 128], FP8, key_codes + bytes(13 * 128)),
                 floats([n, 64], w), floats([n, 64], scales),
                 floats([3, 16, 1], key_scales + [0.0] * 13),
                 integers([1], [n]), integers([1], [n]),
                 integers([1, 3], [0, 1, 2]), None, 0, 0, {"text": "TND"},
                 {"text": "PA_BSND"}, 512, 3, every, every, 4, False, 0, 0,
                 empty([n, 1, 512], "INT32"), None], 21)
    scores = g.numbers("indexer.scores_bf16")
    want = g.numbers("indexer.topk")
    faults, clear, overlap = [], 0, 0
    for t in range(n):
        visible = (t + 1) // 4
        mine = set(index[512 * t:512 * t + min(8, visible)])
        theirs = {i for i in want[8 * t:8 * t + 8] if i >= 0}
        if index[512 * t + visible] != -1 or len(theirs) != min(8, visible):
            faults.append(f"indexer: token {t} sees other rows")
        overlap += len(mine & theirs)
        row = sorted(scores[35 * t:35 * t + visible], reverse=True)
        if visible > 8 and row[7] - row[8] > 2.0 ** -6 * max(map(abs, row)):
            clear += 1
            if mine != theirs:
                faults.append(f"indexer: token {t}: {sorted(mine)}, not "
                              f"{sorted(theirs)}")
    total = sum(min(8, (t + 1) // 4) for t in range(n))
    if clear < 30 or overlap < 0.97 * total:
        faults.append(f"indexer: {clear} clear rows, {overlap} of {total}")
    return faults


PARTS = {"A2": (hyper, rope, norm, gate, attention), "A3": (compressor,),
         "A5": (packed_cache, fp8_gemm, fp4_gemm, expert, indexer)}


def main():
    folder, abi, profile, generation, goldens = sys.argv[1:]
    operators = {o["name"]: o for o in json.loads(
        pathlib.Path(abi).read_text())["operators"]}
    os.environ.update(CANNSIM_PROFILE=profile, CANNSIM_STRICT="1")
    run = Runner(ops_test.Toolkit(folder, generation), operators)
    goldens = pathlib.Path(goldens)
    g = File(goldens / "ops.safetensors")
    g.e4m3 = g.numbers("fmt.e4m3_value")
    model = File(goldens / "tiny_fp4" / "model.safetensors")
    model.config = (goldens / "tiny_fp4" / "config.json").read_text()
    faults = []
    for part in PARTS[generation]:
        faults += part(run, g, model)
    for fault in faults[:40]:
        print(f"golden_test: {fault}")
    print(f"golden_test: {len(PARTS[generation])} parts on {profile}, "
          f"{len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
