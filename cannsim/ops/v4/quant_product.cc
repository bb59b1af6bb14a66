// SPDX-License-Identifier: Apache-2.0
// Products of two quantised matrices, and of batches whose axes are permuted on
// the way in and out. FP8, FP4 and MX scales exist on A5 only.
#include <utility>

#include "aclnnop/aclnn_quant_matmul_v4.h"
#include "aclnnop/aclnn_quant_matmul_v5.h"
#include "aclnnop/aclnn_transpose_batch_mat_mul.h"
#include "aclnnop/aclnn_transpose_quant_batch_mat_mul.h"
#include "cannsim/ops/v4/product.h"

namespace cannsim {
namespace {

enum ScaleKind {
  kLines,   // one a row of x1 and one a column of x2
  kBlocks,  // one a block of 128 along K
  kMx       // E8M0, one for 32 along K
};

struct QuantArgs {
  aclTensor x1;  // [M, K]
  aclTensor x2;  // [K, N]
  const aclTensor* x1_scale;
  const aclTensor* x2_scale;
  const aclTensor* bias;
  const aclTensor* y;  // [M, N]
  bool transpose1;
  bool transpose2;
  int64_t group_size;
};

struct QuantLayout {
  ScaleKind kind = kLines;
  int64_t block_m = 1;  // rows that share a scale (kBlocks)
};

// The first two axes change places.
aclTensor Swapped(const aclTensor& t, bool swap) {
  aclTensor out = t;
  if (swap && t.rank() >= 2) {
    std::swap(out.dims[0], out.dims[1]);
    std::swap(out.strides[0], out.strides[1]);
  }
  return out;
}

// x1, x2, scale1, scale2, bias, y.
int QuantMatmul(const Arrays& a, const QuantLayout& layout) {
  const Array& s1 = a[2];
  const Array& s2 = a[3];
  const Array& y = a[5];
  const auto scale1 = [&](int64_t m, int64_t k) {
    if (layout.kind == kMx) return MxScale(s1, Place(s1, int64_t{0}, m), k, 0);
    if (layout.kind == kBlocks) return At(s1, m / layout.block_m, k / 128);
    return 1.0;
  };
  const auto scale2 = [&](int64_t k, int64_t n) {
    if (layout.kind == kMx) return MxScale(s2, Place(s2, int64_t{0}, n), k, 0);
    if (layout.kind == kBlocks) return At(s2, k / 128, n / 128);
    return 1.0;
  };
  const Dense sums = Multiply(
      MakeDense(
          a[0].dims[0], a[0].dims[1],
          [&](int64_t m, int64_t k) { return At(a[0], m, k) * scale1(m, k); }),
      MakeDense(a[1].dims[0], a[1].dims[1], [&](int64_t k, int64_t n) {
        return At(a[1], k, n) * scale2(k, n);
      }));
  const bool lines = layout.kind == kLines;
  for (int64_t m = 0; m < y.dims[0]; ++m) {
    for (int64_t n = 0; n < y.dims[1]; ++n) {
      double value = sums.row(static_cast<size_t>(m))[n];
      const double bias = Given(a[4]) ? At(a[4], n) : 0;
      const bool whole = Given(a[4]) && a[4].dtype == ACL_INT32;
      if (whole) value += bias;
      if (lines && Given(s2)) {
        value *= LoadScale(s2, s2.dims[0] == 1 ? 0 : Place(s2, n));
      }
      if (lines && Given(s1)) value *= At(s1, m);
      if (!whole) value += bias;
      Put(y, value, m, n);
    }
  }
  return 0;
}

bool IsFp4(aclDataType d) { return d == ACL_FLOAT4_E2M1; }

void NeedsA5(Phase1& call) {
  call.Require(cannsim_profile()->generation == Generation::kA5,
               "FP8, FP4 and MX scales exist on the 950 (A5) only");
}

// MX: scales [K/64, M, 2] and [K/64, N, 2], after what transposes them.
void CheckMx(Phase1& call, const aclTensor& s1, const aclTensor& s2,
             const QuantArgs& args) {
  const int64_t pairs = (args.x1.dims[1] + 63) / 64;
  call.Require(s1.dtype == ACL_FLOAT8_E8M0 && s2.dtype == ACL_FLOAT8_E8M0 &&
                   s1.dims == Dims{pairs, args.x1.dims[0], 2} &&
                   s2.dims == Dims{pairs, args.x2.dims[1], 2},
               "MX scales must be FLOAT8_E8M0 [M, K/64, 2] and [K/64, N, 2], "
               "turned as x1 and x2 are");
}

void CheckBlocks(Phase1& call, const aclTensor& s1, const aclTensor& s2,
                 const QuantArgs& args, int64_t block_m) {
  const auto blocks = [](int64_t n, int64_t b) { return (n + b - 1) / b; };
  const int64_t k = blocks(args.x1.dims[1], 128);
  call.Require(s1.dtype == ACL_FLOAT && s2.dtype == ACL_FLOAT &&
                   s1.dims == Dims{blocks(args.x1.dims[0], block_m), k} &&
                   s2.dims == Dims{k, blocks(args.x2.dims[1], 128)},
               "block scales must be FLOAT [M/block, K/128] and "
               "[K/128, N/128], turned as x1 and x2 are");
}

void CheckLines(Phase1& call, const QuantArgs& args) {
  const bool whole = args.x1.dtype == ACL_INT8 || args.x1.dtype == ACL_INT4;
  if (!whole) {
    NeedsA5(call);
    call.Require(IsFp8(args.x1.dtype) && IsFp8(args.x2.dtype),
                 "x1 and x2 must both be INT8, INT4, FP8 or, with MX scales, "
                 "FP4");
  }
  const aclTensor* s2 = args.x2_scale;
  call.Require(
      Given(s2) ? IsFloat(args.y->dtype)
                : whole && args.y->dtype == ACL_INT32 && !Given(args.x1_scale),
      "a float result needs the scale of x2; INT32 has no scales");
  call.Require(
      !Given(s2) || (IsScale(s2->dtype) && s2->rank() == 1 &&
                     (s2->dims[0] == 1 || s2->dims[0] == args.x2.dims[1])),
      "the scale of x2 must be [N] or [1]");
  call.Require(
      !Given(args.x1_scale) || (args.x1_scale->dtype == ACL_FLOAT &&
                                args.x1_scale->dims == Dims{args.x1.dims[0]}),
      "the scale of x1 must be FLOAT [M]");
}

// Blocks along K, N and M of V5's groupSize.
QuantLayout LayoutOf(Phase1& call, const QuantArgs& args) {
  QuantLayout layout;
  const bool both = Given(args.x1_scale) && Given(args.x2_scale) &&
                    args.x1_scale->rank() >= 2 && args.x2_scale->rank() >= 2;
  const int64_t k = args.group_size & 0xffff;
  const int64_t n = (args.group_size >> 16) & 0xffff;
  const int64_t m = (args.group_size >> 32) & 0xffff;
  if (!both) {
    call.Require(args.group_size == 0,
                 "groupSize must be 0 unless both scales have 2 axes or more");
    return layout;
  }
  NeedsA5(call);
  layout.kind = args.x1_scale->dtype == ACL_FLOAT8_E8M0 ? kMx : kBlocks;
  if (layout.kind == kMx) {
    call.Require(k == 32 && n <= 1 && m <= 1,
                 "groupSize of MX must say 32 along K");
    call.Require((args.x1.dtype == ACL_FLOAT8_E4M3FN || IsFp4(args.x1.dtype)) &&
                     args.x2.dtype == args.x1.dtype,
                 "x1 and x2 of MX must both be FLOAT8_E4M3FN or FLOAT4_E2M1");
    return layout;
  }
  call.Require(k == 128 && n == 128 && (m == 1 || m == 128),
               "groupSize of blocks must say 128 along K and N, 1 or 128 "
               "along M");
  call.Require(IsFp8(args.x1.dtype) && IsFp8(args.x2.dtype),
               "x1 and x2 with blocks must be FP8");
  layout.block_m = std::max<int64_t>(m, 1);
  return layout;
}

aclnnStatus FinishQuant(Phase1& call, const QuantArgs& args) {
  call.Require(args.x1.rank() == 2 && args.x2.rank() == 2 &&
                   args.y->rank() == 2 && args.x1.dims[1] == args.x2.dims[0] &&
                   args.y->dims == Dims{args.x1.dims[0], args.x2.dims[1]},
               "x1 must be [M, K], x2 [K, N] and out [M, N]: batches are not "
               "simulated");
  if (!call.ok()) return call.Finish(nullptr);
  const QuantLayout layout = LayoutOf(call, args);
  if (!call.ok()) return call.Finish(nullptr);
  // All scales as [K.., M] and [K.., N], or what CheckBlocks says.
  const bool mx = layout.kind == kMx;
  const bool square = layout.kind != kLines;
  const aclTensor none;
  const aclTensor s1 = square
                           ? Swapped(*args.x1_scale, args.transpose1 != mx)
                           : (args.x1_scale == nullptr ? none : *args.x1_scale);
  const aclTensor s2 = square
                           ? Swapped(*args.x2_scale, args.transpose2)
                           : (args.x2_scale == nullptr ? none : *args.x2_scale);
  call.In(&args.x1, "x1").In(&args.x2, "x2");
  call.InOptional(args.x1_scale == nullptr ? nullptr : &s1, "scale of x1");
  call.InOptional(args.x2_scale == nullptr ? nullptr : &s2, "scale of x2");
  call.InOptional(args.bias, "bias").Out(args.y, "out");
  if (!call.ok()) return call.Finish(nullptr);
  call.Require(
      (args.x1.dtype == ACL_INT8 || args.x1.dtype == ACL_INT4) ==
              (args.x2.dtype == ACL_INT8 || args.x2.dtype == ACL_INT4) &&
          (args.x1.dtype == args.x2.dtype || IsFp8(args.x1.dtype)),
      "x1 and x2 differ in dtype");
  if (mx) {
    CheckMx(call, s1, s2, args);
  } else if (square) {
    CheckBlocks(call, s1, s2, args, layout.block_m);
  } else {
    CheckLines(call, args);
  }
  call.Require(IsFloat(args.y->dtype) || args.y->dtype == ACL_INT32,
               "out must be of a float dtype, or INT32: a quantised result is "
               "not simulated");
  call.Require(!Given(args.bias) || (args.bias->dims == Dims{args.y->dims[1]} &&
                                     (args.bias->dtype == ACL_INT32 ||
                                      IsFloat(args.bias->dtype))),
               "bias must be [N], INT32 or float");
  return call.Finish(
      [layout](const Arrays& a) { return QuantMatmul(a, layout); });
}

bool IsPermutation(const aclIntArray* perm, size_t n) {
  if (perm == nullptr || perm->values.size() != n) return false;
  std::vector<int64_t> sorted = perm->values;
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < n; ++i) {
    if (sorted[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

// The first axes in another order; axes behind them (of scales) stay.
aclTensor Permuted(const aclTensor& t, const std::vector<int64_t>& perm) {
  aclTensor out = t;
  for (size_t i = 0; i < perm.size(); ++i) {
    out.dims[i] = t.dims[static_cast<size_t>(perm[i])];
    out.strides[i] = t.strides[static_cast<size_t>(perm[i])];
  }
  return out;
}

std::vector<int64_t> Inverse(const std::vector<int64_t>& perm) {
  std::vector<int64_t> inverse(perm.size());
  for (size_t i = 0; i < perm.size(); ++i) {
    inverse[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
  }
  return inverse;
}

// x1 [B, M, K], x2 [B, K, N], scales [B, M, K/64, 2] and [B, K/64, N, 2] or
// absent, y [B, M, N].
int BatchProduct(const Arrays& a) {
  const bool mx = a[2].present;
  for (int64_t b = 0; b < a[4].dims[0]; ++b) {
    const Dense left =
        MakeDense(a[0].dims[1], a[0].dims[2], [&](int64_t m, int64_t k) {
          const double x = At(a[0], b, m, k);
          return mx ? x * MxScale(a[2], Place(a[2], b, m), k, 2) : x;
        });
    const Dense right =
        MakeDense(a[1].dims[1], a[1].dims[2], [&](int64_t k, int64_t n) {
          const double x = At(a[1], b, k, n);
          return mx ? x * MxScale(a[3], Place(a[3], b, int64_t{0}, n), k, 1)
                    : x;
        });
    const Dense sums = Multiply(left, right);
    for (size_t m = 0; m < sums.rows; ++m) {
      for (size_t n = 0; n < sums.columns; ++n) {
        Put(a[4], sums.row(m)[n], b, m, n);
      }
    }
  }
  return 0;
}

struct BatchArgs {
  const aclTensor* x1;
  const aclTensor* x2;
  const aclTensor* scale1;  // null for plain numbers
  const aclTensor* scale2;
  const aclIntArray* perm1;
  const aclIntArray* perm2;
  const aclIntArray* perm_y;
  const aclTensor* out;
};

aclnnStatus FinishBatch(Phase1& call, const BatchArgs& args) {
  call.NotNull(args.x1, "x1").NotNull(args.x2, "x2").NotNull(args.out, "out");
  if (!call.ok()) return call.Finish(nullptr);
  call.Require(args.x1->rank() == 3 && args.x2->rank() == 3 &&
                   args.out->rank() == 3 && IsPermutation(args.perm1, 3) &&
                   IsPermutation(args.perm2, 3) &&
                   IsPermutation(args.perm_y, 3),
               "x1, x2 and out must have 3 axes, and so the permutations");
  if (!call.ok()) return call.Finish(nullptr);
  const aclTensor x1 = Permuted(*args.x1, args.perm1->values);
  const aclTensor x2 = Permuted(*args.x2, args.perm2->values);
  const aclTensor y = Permuted(*args.out, Inverse(args.perm_y->values));
  call.Require(x1.dims[0] == x2.dims[0] && x1.dims[2] == x2.dims[1] &&
                   y.dims == Dims{x1.dims[0], x1.dims[1], x2.dims[2]},
               "the permuted x1 [B, M, K], x2 [B, K, N] and out do not fit");
  call.In(&x1, "x1").In(&x2, "x2");
  if (args.scale1 == nullptr) {
    call.InOptional(nullptr, "").InOptional(nullptr, "");
  } else {
    call.Require(args.scale1->rank() == 4 && args.scale2->rank() == 4,
                 "MX scales must have 4 axes");
    if (!call.ok()) return call.Finish(nullptr);
    const aclTensor s1 = Permuted(*args.scale1, args.perm1->values);
    const aclTensor s2 = Permuted(*args.scale2, args.perm2->values);
    const int64_t pairs = (x1.dims[2] + 63) / 64;
    call.Require(
        s1.dtype == ACL_FLOAT8_E8M0 && s2.dtype == ACL_FLOAT8_E8M0 &&
            s1.dims == Dims{x1.dims[0], x1.dims[1], pairs, 2} &&
            s2.dims == Dims{x1.dims[0], pairs, x2.dims[2], 2},
        "MX scales must be FLOAT8_E8M0 and have K/64 and 2 in the place of K");
    call.In(&s1, "x1Scale").In(&s2, "x2Scale");
  }
  call.Out(&y, "out");
  return call.Finish([](const Arrays& a) { return BatchProduct(a); });
}

}  // namespace
}  // namespace cannsim

extern "C" {

aclnnStatus aclnnQuantMatmulV4GetWorkspaceSize(
    const aclTensor* x1, const aclTensor* x2, const aclTensor* scale,
    const aclTensor* offset, const aclTensor* pertokenScaleOptional,
    const aclTensor* bias, bool transposeX1, bool transposeX2,
    const aclTensor* out, uint64_t* workspaceSize, aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnQuantMatmulV4", workspaceSize, executor);
  call.OnlyOn(cannsim::kNpus);
  call.NotNull(x1, "x1").NotNull(x2, "x2").NotNull(out, "out");
  if (!call.ok()) return call.Finish(nullptr);
  call.Require(!cannsim::Given(offset), "offset is not simulated: pass null");
  call.Require(x1->dtype == ACL_INT8 || x1->dtype == ACL_INT4,
               "x1 and x2 must be INT8 or INT4");
  return cannsim::FinishQuant(
      call,
      {cannsim::Swapped(*x1, transposeX1), cannsim::Swapped(*x2, transposeX2),
       pertokenScaleOptional, scale, bias, out, transposeX1, transposeX2, 0});
}
CANNSIM_PHASE2(QuantMatmulV4)

aclnnStatus aclnnQuantMatmulV5GetWorkspaceSize(
    const aclTensor* x1, const aclTensor* x2, const aclTensor* x1Scale,
    const aclTensor* x2Scale, const aclTensor* yScale,
    const aclTensor* x1Offset, const aclTensor* x2Offset,
    const aclTensor* yOffset, const aclTensor* bias, bool transposeX1,
    bool transposeX2, int64_t groupSize, aclTensor* out,
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnQuantMatmulV5", workspaceSize, executor);
  call.OnlyOn(cannsim::kNpus);
  call.NotNull(x1, "x1").NotNull(x2, "x2").NotNull(out, "out");
  if (!call.ok()) return call.Finish(nullptr);
  for (const aclTensor* one : {yScale, x1Offset, x2Offset, yOffset}) {
    call.Require(!cannsim::Given(one),
                 "yScale and offsets are not simulated: pass null");
  }
  return cannsim::FinishQuant(
      call,
      {cannsim::Swapped(*x1, transposeX1), cannsim::Swapped(*x2, transposeX2),
       x1Scale, x2Scale, bias, out, transposeX1, transposeX2, groupSize});
}
CANNSIM_PHASE2(QuantMatmulV5)

aclnnStatus aclnnTransposeBatchMatMulGetWorkspaceSize(
    const aclTensor* x1, const aclTensor* x2, const aclTensor* bias,
    const aclTensor* scale, const aclIntArray* permX1,
    const aclIntArray* permX2, const aclIntArray* permY, int8_t cubeMathType,
    int32_t batchSplitFactor, aclTensor* out, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnTransposeBatchMatMul", workspaceSize, executor);
  call.OnlyOn({cannsim::Generation::kA2, cannsim::Generation::kA3});
  call.NotNull(x1, "x1").NotNull(x2, "x2").NotNull(out, "out");
  if (!call.ok()) return call.Finish(nullptr);
  call.Require(
      !cannsim::Given(bias) && !cannsim::Given(scale) && batchSplitFactor == 1,
      "bias, scale and batchSplitFactor are not simulated: pass null "
      "and 1");
  call.Require(cubeMathType >= 0 && cubeMathType <= 3,
               "cubeMathType must be 0 to 3");
  call.Require((x1->dtype == ACL_FLOAT16 || x1->dtype == ACL_BF16) &&
                   x2->dtype == x1->dtype && out->dtype == x1->dtype,
               "x1, x2 and out must agree in dtype: FLOAT16 or BF16");
  return cannsim::FinishBatch(
      call, {x1, x2, nullptr, nullptr, permX1, permX2, permY, out});
}
CANNSIM_PHASE2(TransposeBatchMatMul)

aclnnStatus aclnnTransposeQuantBatchMatMulGetWorkspaceSize(
    const aclTensor* x1, const aclTensor* x2, const aclTensor* bias,
    const aclTensor* x1Scale, const aclTensor* x2Scale, int32_t dtype,
    int64_t groupSize, const aclIntArray* permX1, const aclIntArray* permX2,
    const aclIntArray* permY, int32_t batchSplitFactor, aclTensor* out,
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnTransposeQuantBatchMatMul", workspaceSize,
                       executor);
  call.OnlyOn({cannsim::Generation::kA5});
  call.NotNull(x1, "x1").NotNull(x2, "x2").NotNull(out, "out");
  call.NotNull(x1Scale, "x1Scale").NotNull(x2Scale, "x2Scale");
  if (!call.ok()) return call.Finish(nullptr);
  call.Require(!cannsim::Given(bias) && batchSplitFactor == 1,
               "bias and batchSplitFactor are not simulated: pass null and 1");
  call.Require((groupSize & 0xffff) == 32 && x1->dtype == ACL_FLOAT8_E4M3FN &&
                   x2->dtype == x1->dtype,
               "only FLOAT8_E4M3FN with MX scales (groupSize 32) is simulated");
  call.Require(dtype == out->dtype &&
                   (out->dtype == ACL_FLOAT16 || out->dtype == ACL_BF16),
               "dtype must be out's: FLOAT16 or BF16");
  return cannsim::FinishBatch(
      call, {x1, x2, x1Scale, x2Scale, permX1, permX2, permY, out});
}
CANNSIM_PHASE2(TransposeQuantBatchMatMul)

}  // extern "C"
