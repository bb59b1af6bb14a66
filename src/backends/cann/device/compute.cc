// SPDX-License-Identifier: Apache-2.0
#include "backends/cann/device/compute.h"

#include "base/error_ids_cann.h"

namespace belay::cann {
namespace {

// Products keep the precision of their operands (no HF32).
constexpr int8_t kKeepDtype = 0;
constexpr int64_t kSplitRows = 0;  // groupType: groups of rows
constexpr int64_t kOneOutput = 3;  // splitItem
constexpr int64_t kEnds = 0;       // groupListType
constexpr int64_t kNoActivation = 0;
constexpr int64_t kInterleaved = 1;  // pairs (2i, 2i + 1)

constexpr int64_t kStreams = 4;  // of the fused hyper-connections

bool IsWhole(aclDataType dtype) {
  return dtype == kI16 || dtype == kI32 || dtype == kI64;
}

// A scalar in the kind of number that meets `with` without a change of dtype.
Num NumFor(double value, const Array& with) {
  return {value, IsWhole(with.dtype) ? kI32 : kF32};
}

}  // namespace

Array Compute::Temp(aclDataType dtype, Dims dims) {
  Array a(nullptr, dtype, dims);
  const size_t wanted = static_cast<size_t>(a.n_elements()) * BytesOf(dtype);
  const size_t bytes = (wanted + kAlignment - 1) / kAlignment * kAlignment;
  if (bytes > scratch_left()) {
    launcher_.Fail(MakeError(
        kCannWorkspace,
        {.where = launcher_.op(),
         .what = "scratch memory",
         .expected = "<= " + std::to_string(scratch_left()) + " bytes",
         .got = std::to_string(bytes)}));
    a.data = scratch_.data();  // nothing is launched any more
    return a;
  }
  a.data = scratch_.data() + used_;
  used_ += bytes;
  return a;
}

void Compute::Cast(const Array& out, const Array& in) {
  launcher_.Launch(api_.Cast, in, out.dtype, out);
}

void Compute::Fill(const Array& out, double value) {
  if (value == 0) return launcher_.Launch(api_.InplaceZero, out);
  launcher_.Launch(api_.InplaceFillScalar, out, NumFor(value, out));
}

// Some versions read past the end where an axis of a look-up has 16 entries;
// the same with an axis of 1 on both sides is another shape.
void Compute::GatherRows(const Array& out, const Array& table,
                         const Array& index) {
  const bool risky =
      table.dim(0) == 16 || table.dim(1) == 16 || index.dim(0) == 16;
  if (!risky) {
    return launcher_.Launch(api_.GatherV2, table, int64_t{0}, index, out);
  }
  launcher_.Launch(api_.GatherV2, table.Insert(2).Insert(0), int64_t{1},
                   index.Insert(1).Insert(0),
                   out.Insert(2).Insert(1).Insert(0).Insert(0));
}

void Compute::GatherFlat(const Array& out, const Array& values,
                         const Array& index) {
  GatherRows(out.Reshaped({out.n_elements(), 1}),
             values.Reshaped({values.n_elements(), 1}),
             index.Reshaped({index.n_elements()}));
}

void Compute::ScatterRows(const Array& table, const Array& index,
                          const Array& rows) {
  launcher_.Launch(api_.InplaceIndexCopy, table, int64_t{0}, index, rows);
  if (fence_ == nullptr || !launcher_.ok()) return;
  const int code = api_.aclrtRecordEvent(fence_, runtime_.stream());
  if (code != 0) {
    launcher_.Fail(
        runtime_.CheckStream(code, "aclrtRecordEvent", launcher_.op()));
  }
}

void Compute::Add(const Array& out, const Array& a, const Array& b) {
  launcher_.Launch(api_.Add, a, b, NumFor(1, a), out);
}
void Compute::Sub(const Array& out, const Array& a, const Array& b) {
  launcher_.Launch(api_.Sub, a, b, NumFor(1, a), out);
}
void Compute::Mul(const Array& out, const Array& a, const Array& b) {
  launcher_.Launch(api_.Mul, a, b, out);
}
void Compute::Div(const Array& out, const Array& a, const Array& b) {
  launcher_.Launch(api_.Div, a, b, out);
}
void Compute::Equal(const Array& out, const Array& a, const Array& b) {
  launcher_.Launch(api_.EqTensor, a, b, out);
}
void Compute::Scale(const Array& a, double by) {
  launcher_.Launch(api_.InplaceMuls, a, NumFor(by, a));
}
void Compute::Offset(const Array& a, double by) {
  launcher_.Launch(api_.InplaceAdds, a, NumFor(by, a), NumFor(1, a));
}
void Compute::Times(const Array& a, const Array& b) {
  launcher_.Launch(api_.InplaceMul, a, b);
}
void Compute::Plus(const Array& a, const Array& b) {
  launcher_.Launch(api_.InplaceAdd, a, b, NumFor(1, a));
}
void Compute::Greater(const Array& out, const Array& a, double than) {
  launcher_.Launch(api_.GtScalar, a, NumFor(than, a), out);
}
void Compute::Abs(const Array& out, const Array& in) {
  launcher_.Launch(api_.Abs, in, out);
}
void Compute::AtLeast(const Array& out, const Array& in, double low) {
  launcher_.Launch(api_.ClampMin, in, NumFor(low, in), out);
}
void Compute::Clamp(const Array& out, const Array& in, double low,
                    double high) {
  launcher_.Launch(api_.Clamp, in, NumFor(low, in), NumFor(high, in), out);
}
void Compute::Threshold(const Array& a, double than, double value) {
  launcher_.Launch(api_.InplaceThreshold, a, NumFor(than, a), NumFor(value, a));
}
void Compute::Neg(const Array& out, const Array& in) {
  launcher_.Launch(api_.Neg, in, out);
}
void Compute::Sqrt(const Array& out, const Array& in) {
  launcher_.Launch(api_.Sqrt, in, out);
}
void Compute::Exp(const Array& out, const Array& in) {
  launcher_.Launch(api_.Exp, in, out);
}
void Compute::Sigmoid(const Array& out, const Array& in) {
  launcher_.Launch(api_.Sigmoid, in, out);
}
void Compute::Softplus(const Array& out, const Array& in) {
  launcher_.Launch(api_.Softplus, in, NumFor(1, in), NumFor(20, in), out);
}
void Compute::Silu(const Array& out, const Array& in) {
  launcher_.Launch(api_.Silu, in, out);
}
void Compute::Cos(const Array& out, const Array& in) {
  launcher_.Launch(api_.Cos, in, out);
}
void Compute::Sin(const Array& out, const Array& in) {
  launcher_.Launch(api_.Sin, in, out);
}

void Compute::Sum(const Array& out, const Array& in, int axis) {
  launcher_.Launch(api_.ReduceSum, in, Axes{axis}, false, out.dtype, out);
}
void Compute::Mean(const Array& out, const Array& in, int axis) {
  launcher_.Launch(api_.Mean, in, Axes{axis}, true, out.dtype, out);
}
void Compute::Softmax(const Array& out, const Array& in, int axis) {
  launcher_.Launch(api_.Softmax, in, int64_t{axis}, out);
}
void Compute::Cumsum(const Array& out, const Array& in, int axis) {
  launcher_.Launch(api_.Cumsum, in, int64_t{axis}, out.dtype, out);
}
void Compute::Largest(const Array& values, const Array& ids, const Array& in,
                      int k, int axis) {
  launcher_.Launch(api_.Topk, in, int64_t{k}, int64_t{axis}, true, true, values,
                   ids);
}
void Compute::Max(const Array& out, const Array& in, int axis) {
  const Scope scope(*this);
  Array ids = Temp(kI64, {out.n_elements()});
  Array like = out;  // its shape, contiguous
  like.data = ids.data;
  like.dtype = kI64;
  int64_t step = 1;
  for (int i = like.rank - 1; i >= 0; --i) {
    like.strides[static_cast<size_t>(i)] = step;
    step *= like.dim(i);
  }
  Largest(out, like, in, 1, axis);
}
void Compute::ArgMax(const Array& out, const Array& in, int axis) {
  launcher_.Launch(api_.ArgMax, in, int64_t{axis}, false, out);
}
void Compute::Argsort(const Array& out, const Array& in) {
  launcher_.Launch(api_.Argsort, in, int64_t{in.rank - 1}, false, out);
}
void Compute::RmsNorm(const Array& out, const Array& in, const Array& weight,
                      double eps) {
  const Scope scope(*this);
  launcher_.Launch(api_.RmsNorm, in, weight, eps, out,
                   Temp(kF32, {in.dim(0), 1}));
}
void Compute::Rotate(const Array& out, const Array& in, const Array& cos,
                     const Array& sin) {
  launcher_.Launch(api_.RotaryPositionEmbedding, in, cos, sin, kInterleaved,
                   out);
}

bool Compute::has_hc_pre() const {
  return api_.HcPreInvRms && api_.HcPreSinkhorn;
}
bool Compute::has_hc_post() const { return static_cast<bool>(api_.HcPost); }

void Compute::HcInverseRms(const Array& out, const Array& h, double eps) {
  launcher_.Launch(api_.HcPreInvRms, h, eps, out);
}
void Compute::HcPreSinkhorn(const HcPreOut& out, const HcPreIn& in,
                            int iterations, double eps) {
  launcher_.Launch(api_.HcPreSinkhorn, in.mixes, in.inverse_rms, in.scale,
                   in.base, in.h, kStreams, int64_t{iterations}, eps, out.x,
                   out.post, out.comb);
}
void Compute::HcPost(const Array& out, const Array& y, const Array& h,
                     const Array& post, const Array& comb) {
  launcher_.Launch(api_.HcPost, y, h, post, comb, out);
}

void Compute::Matmul(const Array& out, const Array& a, const Array& b) {
  launcher_.Launch(api_.Matmul, a, b, out, kKeepDtype);
}

void Compute::GroupedMatmul(const Array& out, const Array& x,
                            const Array& weights, const Array& ends) {
  launcher_.Launch(api_.GroupedMatmulV4, One{x}, One{weights}, None{}, None{},
                   None{}, None{}, None{}, None{}, ends, None{}, None{}, None{},
                   kOneOutput, kSplitRows, kEnds, kNoActivation, One{out},
                   None{}, None{});
}

}  // namespace belay::cann
