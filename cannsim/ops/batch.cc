// SPDX-License-Identifier: Apache-2.0
// Operators on rows of a batch: group norm, cross entropy, triangular systems.
#include <algorithm>
#include <cmath>

#include "aclnnop/aclnn_group_norm.h"
#include "aclnnop/aclnn_softmax_cross_entropy_with_logits.h"
#include "aclnnop/aclnn_triangular_solve.h"
#include "cannsim/ops/define.h"

namespace cannsim {
namespace {

// Mean and 1/deviation of values.
struct Moments {
  double mean = 0;
  double rstd = 0;
};

Moments MomentsOf(const std::vector<double>& values, double eps) {
  Moments m;
  for (const double x : values) m.mean += x;
  m.mean /= static_cast<double>(values.size());
  double variance = 0;
  for (const double x : values) variance += (x - m.mean) * (x - m.mean);
  variance /= static_cast<double>(values.size());
  m.rstd = 1 / std::sqrt(variance + eps);
  return m;
}

// [N, C, ...] as [N, groups, values of a group], read and written in order.
int GroupNorm(const Arrays& a, int64_t n_groups, double eps) {
  const Array& in = a[0];
  const Array& out = a[3];
  std::vector<int64_t> to;
  std::vector<double> x;
  Walk2(out, in, [&](int64_t out_at, int64_t at) {
    to.push_back(out_at);
    x.push_back(LoadF(in, at));
  });
  const auto n_rows = static_cast<size_t>(in.dims[0] * n_groups);
  const size_t per_group = n_rows == 0 ? 0 : x.size() / n_rows;
  const auto n_channels = static_cast<size_t>(in.dims[1]);
  const size_t per_channel =
      n_channels == 0 ? 0 : x.size() / (in.dims[0] * in.dims[1]);
  for (size_t row = 0; row < n_rows; ++row) {
    const auto begin = x.begin() + static_cast<long>(row * per_group);
    const Moments m =
        MomentsOf({begin, begin + static_cast<long>(per_group)}, eps);
    const auto at = static_cast<int64_t>(row);
    StoreF(a[4],
           at / n_groups * a[4].strides[0] + at % n_groups * a[4].strides[1],
           m.mean);
    StoreF(a[5],
           at / n_groups * a[5].strides[0] + at % n_groups * a[5].strides[1],
           m.rstd);
    for (size_t k = row * per_group; k < (row + 1) * per_group; ++k) {
      const auto channel = static_cast<int64_t>(k / per_channel % n_channels);
      double y = (x[k] - m.mean) * m.rstd;
      if (a[1].present) y *= LoadF(a[1], channel * a[1].strides[0]);
      if (a[2].present) y += LoadF(a[2], channel * a[2].strides[0]);
      StoreF(out, to[k], y);
    }
  }
  return 0;
}

struct Triangle {
  bool upper;
  bool transpose;
  bool unit;
};

// Solves one system for all columns; element (i, j) of the matrix by `at`.
void Solve(const Array& b, const Array& m, const Array& x, Triangle kind) {
  const int64_t n = m.dims[0];
  const auto element = [&](int64_t i, int64_t j) {
    if (kind.transpose) std::swap(i, j);
    return LoadF(m, i * m.strides[0] + j * m.strides[1]);
  };
  const bool backwards = kind.upper != kind.transpose;
  for (int64_t column = 0; column < b.dims[1]; ++column) {
    std::vector<double> solved(static_cast<size_t>(n));
    for (int64_t k = 0; k < n; ++k) {
      const int64_t i = backwards ? n - 1 - k : k;
      double sum = LoadF(b, i * b.strides[0] + column * b.strides[1]);
      for (int64_t done = 0; done < k; ++done) {
        const int64_t j = backwards ? n - 1 - done : done;
        sum -= element(i, j) * solved[static_cast<size_t>(j)];
      }
      solved[static_cast<size_t>(i)] = kind.unit ? sum : sum / element(i, i);
    }
    for (int64_t i = 0; i < n; ++i) {
      StoreF(x, i * x.strides[0] + column * x.strides[1],
             solved[static_cast<size_t>(i)]);
    }
  }
}

// One matrix of a batch.
Array MatrixAt(const Array& array, int64_t at) {
  Array matrix = Only(array, {array.rank() - 2, array.rank() - 1});
  matrix.base += at * static_cast<int64_t>(aclDataTypeSize(array.dtype));
  return matrix;
}

Array BatchOf(const Array& array) {
  return Without(array, {array.rank() - 2, array.rank() - 1});
}

}  // namespace
}  // namespace cannsim

extern "C" {

aclnnStatus aclnnGroupNormGetWorkspaceSize(
    const aclTensor* self, const aclTensor* gamma, const aclTensor* beta,
    int64_t N, int64_t C, int64_t HxW, int64_t group, double eps,
    aclTensor* out, aclTensor* meanOut, aclTensor* rstdOut,
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnGroupNorm", workspaceSize, executor);
  call.In(self, "self").InOptional(gamma, "gamma").InOptional(beta, "beta");
  call.Out(out, "out").Out(meanOut, "meanOut").Out(rstdOut, "rstdOut");
  cannsim::NeedsFloat(call, self, "self");
  cannsim::SameShape(call, self, out, "self and out");
  call.Require(group > 0, "group must be positive");
  if (!call.ok()) return call.Finish(nullptr);
  const bool fits = self->rank() >= 2 && self->dims[0] == N &&
                    self->dims[1] == C && C % group == 0 &&
                    self->n_elements() == N * C * HxW;
  call.Require(fits, "N, C, HxW or group do not fit self's shape");
  for (const aclTensor* one : {gamma, beta}) {
    call.Require(one == nullptr || one->dims == cannsim::Dims{C},
                 "gamma and beta must be [C]");
  }
  for (const aclTensor* one : {meanOut, rstdOut}) {
    call.Require(one->dims == cannsim::Dims{N, group},
                 "meanOut and rstdOut must be [N, group]");
  }
  return call.Finish([group, eps](const cannsim::Arrays& a) {
    return cannsim::GroupNorm(a, group, eps);
  });
}
CANNSIM_PHASE2(GroupNorm)

aclnnStatus aclnnSoftmaxCrossEntropyWithLogitsGetWorkspaceSize(
    const aclTensor* features, aclTensor* labels, aclTensor* loss,
    aclTensor* backprop, uint64_t* workspaceSize, aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnSoftmaxCrossEntropyWithLogits", workspaceSize,
                       executor);
  call.In(features, "features").In(labels, "labels");
  call.Out(loss, "loss").Out(backprop, "backprop");
  cannsim::NeedsFloat(call, features, "features");
  cannsim::SameShape(call, features, labels, "features and labels");
  cannsim::SameShape(call, features, backprop, "features and backprop");
  if (!call.ok()) return call.Finish(nullptr);
  call.Require(
      features->rank() == 2 && loss->dims == cannsim::Dims{features->dims[0]},
      "features must be [N, C] and loss [N]");
  return call.Finish([](const cannsim::Arrays& a) {
    const auto at = [](const cannsim::Array& t, int64_t i, int64_t j) {
      return i * t.strides[0] + j * t.strides[1];
    };
    for (int64_t i = 0; i < a[0].dims[0]; ++i) {
      double largest = -HUGE_VAL;
      double sum = 0;
      double loss_here = 0;
      const int64_t n = a[0].dims[1];
      for (int64_t j = 0; j < n; ++j) {
        largest = std::max(largest, cannsim::LoadF(a[0], at(a[0], i, j)));
      }
      for (int64_t j = 0; j < n; ++j) {
        sum += std::exp(cannsim::LoadF(a[0], at(a[0], i, j)) - largest);
      }
      for (int64_t j = 0; j < n; ++j) {
        const double log_p =
            cannsim::LoadF(a[0], at(a[0], i, j)) - largest - std::log(sum);
        const double label = cannsim::LoadF(a[1], at(a[1], i, j));
        loss_here -= label * log_p;
        cannsim::StoreF(a[3], at(a[3], i, j), std::exp(log_p) - label);
      }
      cannsim::StoreF(a[2], i * a[2].strides[0], loss_here);
    }
    return 0;
  });
}
CANNSIM_PHASE2(SoftmaxCrossEntropyWithLogits)

aclnnStatus aclnnTriangularSolveGetWorkspaceSize(
    const aclTensor* self, const aclTensor* A, bool upper, bool transpose,
    bool unitriangular, aclTensor* xOut, aclTensor* mOut,
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnTriangularSolve", workspaceSize, executor);
  call.In(self, "self").In(A, "A").Out(xOut, "xOut").Out(mOut, "mOut");
  cannsim::NeedsFloat(call, self, "self");
  cannsim::NeedsFloat(call, A, "A");
  cannsim::SameShape(call, self, xOut, "self and xOut");
  cannsim::SameShape(call, A, mOut, "A and mOut");
  if (!call.ok()) return call.Finish(nullptr);
  const auto rank = static_cast<size_t>(A->rank());
  const bool fits =
      rank >= 2 && self->dims.size() == rank &&
      A->dims[rank - 1] == A->dims[rank - 2] &&
      self->dims[rank - 2] == A->dims[rank - 1] &&
      std::equal(A->dims.begin(), A->dims.end() - 2, self->dims.begin());
  call.Require(fits, "A must be [..., n, n] and self [..., n, k]");
  const cannsim::Triangle kind{upper, transpose, unitriangular};
  return call.Finish([kind](const cannsim::Arrays& a) {
    const cannsim::Array batch = cannsim::BatchOf(a[0]);
    cannsim::Walk<4>(
        batch.dims,
        {batch.strides, cannsim::BatchOf(a[1]).strides,
         cannsim::BatchOf(a[2]).strides, cannsim::BatchOf(a[3]).strides},
        [&](const std::array<int64_t, 4>& at) {
          const cannsim::Array m = cannsim::MatrixAt(a[1], at[1]);
          cannsim::Solve(cannsim::MatrixAt(a[0], at[0]), m,
                         cannsim::MatrixAt(a[2], at[2]), kind);
          const cannsim::Array copy = cannsim::MatrixAt(a[3], at[3]);
          cannsim::Walk2(copy, m, [&](int64_t to, int64_t from) {
            cannsim::StoreF(copy, to, cannsim::LoadF(m, from));
          });
        });
    return 0;
  });
}
CANNSIM_PHASE2(TriangularSolve)

}  // extern "C"
