// SPDX-License-Identifier: Apache-2.0
// Gated activations and rotary position embedding.
#include <cmath>

#include "aclnnop/aclnn_geglu.h"
#include "aclnnop/aclnn_rotary_position_embedding.h"
#include "aclnnop/aclnn_swi_glu.h"
#include "cannsim/ops/define.h"

namespace cannsim {
namespace {

// The two halves of an array along an axis.
struct Halves {
  Array left;
  Array right;
};

Halves Split(const Array& array, int axis) {
  const auto i = static_cast<size_t>(axis);
  Halves halves{array, array};
  halves.left.dims[i] /= 2;
  halves.right.dims[i] /= 2;
  const auto bytes = static_cast<int64_t>(aclDataTypeSize(array.dtype));
  halves.right.base += halves.right.dims[i] * array.strides[i] * bytes;
  return halves;
}

// The axis along which `in` is twice as long as `out`; -1 after a complaint.
int HalvedAxis(Phase1& call, const aclTensor* in, int64_t dim,
               const aclTensor* out) {
  NeedsFloat(call, in, "x");
  if (!call.ok()) return -1;
  const int axis = FrontAxis(dim, in->rank());
  call.Require(axis >= 0 && in->rank() > 0, "dim does not exist");
  if (!call.ok()) return -1;
  Dims shape = in->dims;
  shape[static_cast<size_t>(axis)] /= 2;
  call.Require(
      in->dims[static_cast<size_t>(axis)] % 2 == 0 && shape == out->dims,
      "out must be half as long as the input along dim");
  return call.ok() ? axis : -1;
}

double Gelu(double x, bool tanh) {
  if (!tanh) return 0.5 * x * (1 + std::erf(x * M_SQRT1_2));
  const double inner = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
  return 0.5 * x * (1 + std::tanh(inner));
}

enum RopeMode { kHalf = 0, kInterleave = 1, kQuarter = 2 };

// The element that is turned into the place of element i of n, and its sign.
int64_t Partner(int64_t mode, int64_t i, int64_t n, double* sign) {
  const int64_t block = mode == kHalf ? n : mode == kQuarter ? n / 2 : 2;
  const int64_t in_block = i % block;
  const bool first = in_block < block / 2;
  *sign = first ? -1 : 1;
  return first ? i + block / 2 : i - block / 2;
}

int Rotate(const Arrays& a, int64_t mode) {
  const Array& x = a[0];
  const Array& out = a[3];
  const int64_t n = x.dims.back();
  const int64_t step = x.strides.back();
  int64_t i = 0;
  Walk<4>(
      x.dims,
      {out.strides, x.strides, StepsFor(a[1], x.dims), StepsFor(a[2], x.dims)},
      [&](const std::array<int64_t, 4>& at) {
        double sign = 0;
        const int64_t other = Partner(mode, i, n, &sign);
        const double turned = sign * LoadF(x, at[1] + (other - i) * step);
        StoreF(
            out, at[0],
            LoadF(x, at[1]) * LoadF(a[1], at[2]) + turned * LoadF(a[2], at[3]));
        i = i + 1 == n ? 0 : i + 1;
      });
  return 0;
}

}  // namespace
}  // namespace cannsim

extern "C" {

aclnnStatus aclnnSwiGluGetWorkspaceSize(const aclTensor* x, int64_t dim,
                                        const aclTensor* out,
                                        uint64_t* workspaceSize,
                                        aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnSwiGlu", workspaceSize, executor);
  call.In(x, "x").Out(out, "out");
  const int axis = cannsim::HalvedAxis(call, x, dim, out);
  return call.Finish([axis](const cannsim::Arrays& a) {
    const auto halves = cannsim::Split(a[0], axis);
    cannsim::Walk3(a[1], halves.left, halves.right,
                   [&](int64_t to, int64_t gate, int64_t up) {
                     const double g = cannsim::LoadF(halves.left, gate);
                     const double u = cannsim::LoadF(halves.right, up);
                     cannsim::StoreF(a[1], to, g / (1 + std::exp(-g)) * u);
                   });
    return 0;
  });
}
CANNSIM_PHASE2(SwiGlu)

aclnnStatus aclnnGeGluV3GetWorkspaceSize(const aclTensor* self, int64_t dim,
                                         int64_t approximate, bool activateLeft,
                                         aclTensor* out, aclTensor* outGelu,
                                         uint64_t* workspaceSize,
                                         aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnGeGluV3", workspaceSize, executor);
  call.In(self, "self").Out(out, "out").Out(outGelu, "outGelu");
  call.Require(approximate == 0 || approximate == 1,
               "approximate must be 0 (erf) or 1 (tanh)");
  const int axis = cannsim::HalvedAxis(call, self, dim, out);
  cannsim::SameShape(call, out, outGelu, "out and outGelu");
  const bool tanh = approximate == 1;
  return call.Finish([axis, tanh, activateLeft](const cannsim::Arrays& a) {
    const auto halves = cannsim::Split(a[0], axis);
    const cannsim::Array& gate = activateLeft ? halves.left : halves.right;
    const cannsim::Array& up = activateLeft ? halves.right : halves.left;
    cannsim::Walk<4>(
        a[1].dims, {a[1].strides, a[2].strides, gate.strides, up.strides},
        [&](const std::array<int64_t, 4>& at) {
          const double g = cannsim::Gelu(cannsim::LoadF(gate, at[2]), tanh);
          cannsim::StoreF(a[2], at[1], g);
          cannsim::StoreF(a[1], at[0], g * cannsim::LoadF(up, at[3]));
        });
    return 0;
  });
}
CANNSIM_PHASE2(GeGluV3)

aclnnStatus aclnnRotaryPositionEmbeddingGetWorkspaceSize(
    const aclTensor* x, const aclTensor* cos, const aclTensor* sin,
    int64_t mode, aclTensor* out, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnRotaryPositionEmbedding", workspaceSize, executor);
  call.In(x, "x").In(cos, "cos").In(sin, "sin").Out(out, "out");
  cannsim::NeedsFloat(call, x, "x");
  cannsim::NeedsFloat(call, cos, "cos");
  cannsim::NeedsFloat(call, sin, "sin");
  cannsim::SameShape(call, x, out, "x and out");
  cannsim::SameShape(call, cos, sin, "cos and sin");
  call.Require(mode >= cannsim::kHalf && mode <= cannsim::kQuarter,
               "mode must be 0 (half), 1 (interleave) or 2 (quarter); 3 is "
               "not simulated");
  if (!call.ok()) return call.Finish(nullptr);
  cannsim::Dims shape;
  call.Require(x->rank() == 4 &&
                   cannsim::Broadcast(x->dims, cos->dims, &shape) &&
                   shape == x->dims,
               "x must have 4 axes, and cos and sin must broadcast to it");
  if (call.ok()) {
    call.Require(x->dims[3] % (mode == cannsim::kQuarter ? 4 : 2) == 0,
                 "the last axis is odd");
    call.Require(out->data != x->data, "out must not be x");
  }
  return call.Finish(
      [mode](const cannsim::Arrays& a) { return cannsim::Rotate(a, mode); });
}
CANNSIM_PHASE2(RotaryPositionEmbedding)

}  // extern "C"
