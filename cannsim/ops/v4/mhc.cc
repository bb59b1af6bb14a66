// SPDX-License-Identifier: Apache-2.0
// Hyper-connections in CANN's own operators: MhcPre, MhcSinkhorn, MhcPost.
// A5 only: what newer sources say of an A2 path is not simulated.
#include <cmath>

#include "aclnnop/aclnn_mhc_post.h"
#include "aclnnop/aclnn_mhc_pre.h"
#include "aclnnop/aclnn_mhc_sinkhorn.h"
#include "cannsim/ops/at.h"
#include "cannsim/ops/v4/hyper.h"

namespace cannsim {
namespace {

bool IsHalf(aclDataType dtype) {
  return dtype == ACL_FLOAT16 || dtype == ACL_BF16;
}

// [..., n, d] with three or four axes.
void CheckStreams(Phase1& call, const aclTensor* x) {
  if (!call.ok()) return;
  call.Require(x->rank() == 3 || x->rank() == 4,
               "x must be [T, n, D] or [B, S, n, D]");
  if (!call.ok()) return;
  const int64_t n = x->dims[x->dims.size() - 2];
  const int64_t d = x->dims.back();
  call.Require(IsHalf(x->dtype), "x must be FLOAT16 or BF16");
  call.Require(n == 4 || n == 6 || n == 8, "n must be 4, 6 or 8");
  call.Require(d >= 512 && d <= 16384 && d % 32 == 0,
               "D must be 512 to 16384 and a multiple of 32");
}

void NeedsAllFloat(Phase1& call,
                   std::initializer_list<const aclTensor*> tensors) {
  for (const aclTensor* t : tensors) {
    call.Require(t == nullptr || t->dtype == ACL_FLOAT,
                 "all tensors but x and those of its shape must be FLOAT");
  }
}

// The last two axes, row-major, from the place `first` on.
std::vector<double> ReadMatrix(const Array& a, int64_t first) {
  const size_t rank = a.dims.size();
  std::vector<double> numbers;
  for (int64_t i = 0; i < a.dims[rank - 2]; ++i) {
    for (const double x : ReadRow(a, first + i * a.strides[rank - 2])) {
      numbers.push_back(x);
    }
  }
  return numbers;
}

void WriteMatrix(const Array& a, int64_t first,
                 const std::vector<double>& numbers) {
  const size_t rank = a.dims.size();
  auto next = numbers.begin();
  for (int64_t i = 0; i < a.dims[rank - 2]; ++i) {
    for (int64_t j = 0; j < a.dims[rank - 1]; ++j) {
      StoreF(a, first + i * a.strides[rank - 2] + j * a.strides.back(),
             *next++);
    }
  }
}

// x, phi, alpha, bias, hIn, hPost, hRes, invRms, hPre.
int Pre(const Arrays& a, double norm_eps, double hc_eps) {
  const Array& x = a[0];
  const size_t rank = x.dims.size();
  const auto n = static_cast<size_t>(x.dims[rank - 2]);
  const int64_t d = x.dims.back();
  const auto rows = RowsOf(x, 2);
  const auto in = RowsOf(a[4], 1);
  const auto post = RowsOf(a[5], 1);
  const auto res = RowsOf(a[6], 2);
  const auto rms = a[7].present ? RowsOf(a[7], 0) : std::vector<int64_t>();
  const auto pre = a[8].present ? RowsOf(a[8], 1) : std::vector<int64_t>();
  for (size_t t = 0; t < rows.size(); ++t) {
    std::vector<double> streams;
    double squares = 0;
    for (int64_t k = 0; k < static_cast<int64_t>(n) * d; ++k) {
      streams.push_back(LoadF(
          x, rows[t] + k / d * x.strides[rank - 2] + k % d * x.strides.back()));
      squares += streams.back() * streams.back();
    }
    const double r =
        1 / std::sqrt(squares / static_cast<double>(streams.size()) + norm_eps);
    std::vector<double> mix(n * (n + 2), 0.0);
    for (size_t j = 0; j < mix.size(); ++j) {
      for (size_t k = 0; k < streams.size(); ++k) {
        mix[j] += streams[k] * At(a[1], j, k);
      }
      mix[j] *= r;
    }
    const HyperMix parts =
        SplitMix(n, mix, ReadRow(a[2], 0), ReadRow(a[3], 0), hc_eps);
    for (int64_t i = 0; i < d; ++i) {
      double sum = 0;
      for (size_t j = 0; j < n; ++j) {
        sum += parts.pre[j] *
               streams[j * static_cast<size_t>(d) + static_cast<size_t>(i)];
      }
      StoreF(a[4], in[t] + i * a[4].strides.back(), sum);
    }
    WriteRow(a[5], post[t], parts.post);
    WriteMatrix(a[6], res[t], parts.comb);
    if (a[7].present) StoreF(a[7], rms[t], r);
    if (a[8].present) WriteRow(a[8], pre[t], parts.pre);
  }
  return 0;
}

// out_k = hPost_k hOut + sum_j hRes[j][k] x_j.
int Post(const Arrays& a) {
  const Array& x = a[0];
  const Array& res = a[1];
  const Array& out = a[4];
  const size_t rank = x.dims.size();
  const int64_t n = x.dims[rank - 2];
  const auto rows_x = RowsOf(x, 2);
  const auto rows_res = RowsOf(res, 2);
  const auto rows_h = RowsOf(a[2], 1);
  const auto rows_p = RowsOf(a[3], 1);
  const auto rows_out = RowsOf(out, 2);
  for (size_t t = 0; t < rows_x.size(); ++t) {
    for (int64_t k = 0; k < n; ++k) {
      const double p = LoadF(a[3], rows_p[t] + k * a[3].strides.back());
      for (int64_t d = 0; d < x.dims.back(); ++d) {
        double sum = p * LoadF(a[2], rows_h[t] + d * a[2].strides.back());
        for (int64_t j = 0; j < n; ++j) {
          sum += LoadF(res, rows_res[t] + j * res.strides[rank - 2] +
                                k * res.strides.back()) *
                 LoadF(x, rows_x[t] + j * x.strides[rank - 2] +
                              d * x.strides.back());
        }
        StoreF(out,
               rows_out[t] + k * out.strides[rank - 2] + d * out.strides.back(),
               sum);
      }
    }
  }
  return 0;
}

}  // namespace
}  // namespace cannsim

extern "C" {

aclnnStatus aclnnMhcPreGetWorkspaceSize(
    const aclTensor* x, const aclTensor* phi, const aclTensor* alpha,
    const aclTensor* bias, const aclTensor* gammaOptional, double normEps,
    double hcEps, const aclTensor* hIn, const aclTensor* hPost,
    const aclTensor* hRes, const aclTensor* invRmsOptional,
    const aclTensor* hMixOptional, const aclTensor* hPreOptional,
    uint64_t* workspaceSize, aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnMhcPre", workspaceSize, executor);
  call.OnlyOn({cannsim::Generation::kA5});
  call.In(x, "x").In(phi, "phi").In(alpha, "alpha").In(bias, "bias");
  call.Out(hIn, "hIn").Out(hPost, "hPost").Out(hRes, "hRes");
  call.OutOptional(invRmsOptional, "invRms").OutOptional(hPreOptional, "hPre");
  cannsim::CheckStreams(call, x);
  if (!call.ok()) return call.Finish(nullptr);
  call.Require(gammaOptional == nullptr && hMixOptional == nullptr,
               "gamma and hMix are not simulated: pass null");
  cannsim::NeedsAllFloat(
      call, {phi, alpha, bias, hPost, hRes, invRmsOptional, hPreOptional});
  const cannsim::Dims tokens = cannsim::Leading(x->dims, 2);
  const int64_t n = x->dims[x->dims.size() - 2];
  const int64_t n_mixes = n * (n + 2);
  call.Require(phi->dims == cannsim::Dims{n_mixes, n * x->dims.back()} &&
                   alpha->dims == cannsim::Dims{3} &&
                   bias->dims == cannsim::Dims{n_mixes},
               "phi must be [n n + 2 n, n D], alpha [3], bias [n n + 2 n]");
  call.Require(hIn->dims == cannsim::With(tokens, {x->dims.back()}) &&
                   hIn->dtype == x->dtype,
               "hIn must be x without its streams, of x's dtype");
  call.Require(hPost->dims == cannsim::With(tokens, {n}) &&
                   hRes->dims == cannsim::With(tokens, {n, n}),
               "hPost must be [tokens, n] and hRes [tokens, n, n]");
  call.Require(invRmsOptional == nullptr || invRmsOptional->dims == tokens,
               "invRms must be [tokens]");
  call.Require(hPreOptional == nullptr || hPreOptional->dims == hPost->dims,
               "hPre must be [tokens, n]");
  return call.Finish([normEps, hcEps](const cannsim::Arrays& a) {
    return cannsim::Pre(a, normEps, hcEps);
  });
}
CANNSIM_PHASE2(MhcPre)

aclnnStatus aclnnMhcSinkhornGetWorkspaceSize(
    const aclTensor* x, float eps, int64_t numIters, const aclTensor* output,
    const aclTensor* normOut, const aclTensor* sumOut, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnMhcSinkhorn", workspaceSize, executor);
  call.OnlyOn({cannsim::Generation::kA5});
  call.In(x, "x").Out(output, "output");
  cannsim::SameShape(call, x, output, "x and output");
  if (!call.ok()) return call.Finish(nullptr);
  call.Require(normOut == nullptr && sumOut == nullptr,
               "normOut and sumOut are not simulated: pass null");
  cannsim::NeedsAllFloat(call, {x, output});
  call.Require(numIters >= 1 && numIters <= 100, "numIters must be 1 to 100");
  call.Require(
      x->rank() >= 2 && x->dims.back() == x->dims[x->dims.size() - 2] &&
          (x->dims.back() == 4 || x->dims.back() == 6 || x->dims.back() == 8),
      "x must be [tokens, n, n] with n 4, 6 or 8");
  return call.Finish([eps, numIters](const cannsim::Arrays& a) {
    const auto n = static_cast<size_t>(a[0].dims.back());
    const auto from = cannsim::RowsOf(a[0], 2);
    const auto to = cannsim::RowsOf(a[1], 2);
    for (size_t t = 0; t < from.size(); ++t) {
      std::vector<double> comb = cannsim::ReadMatrix(a[0], from[t]);
      cannsim::Sinkhorn(n, numIters, eps, &comb);
      cannsim::WriteMatrix(a[1], to[t], comb);
    }
    return 0;
  });
}
CANNSIM_PHASE2(MhcSinkhorn)

aclnnStatus aclnnMhcPostGetWorkspaceSize(
    const aclTensor* x, const aclTensor* hRes, const aclTensor* hOut,
    const aclTensor* hPost, const aclTensor* out, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnMhcPost", workspaceSize, executor);
  call.OnlyOn({cannsim::Generation::kA5});
  call.In(x, "x").In(hRes, "hRes").In(hOut, "hOut").In(hPost, "hPost");
  call.Out(out, "out");
  cannsim::CheckStreams(call, x);
  cannsim::SameShape(call, x, out, "x and out");
  if (!call.ok()) return call.Finish(nullptr);
  const cannsim::Dims tokens = cannsim::Leading(x->dims, 2);
  const int64_t n = x->dims[x->dims.size() - 2];
  cannsim::NeedsAllFloat(call, {hRes, hPost});
  call.Require(hRes->dims == cannsim::With(tokens, {n, n}) &&
                   hPost->dims == cannsim::With(tokens, {n}) &&
                   hOut->dims == cannsim::With(tokens, {x->dims.back()}),
               "hRes must be [tokens, n, n], hPost [tokens, n], hOut "
               "[tokens, D]");
  call.Require(hOut->dtype == x->dtype && out->dtype == x->dtype,
               "hOut and out must be of x's dtype");
  call.Require(out->data != x->data, "out must not be x");
  return call.Finish([](const cannsim::Arrays& a) { return cannsim::Post(a); });
}
CANNSIM_PHASE2(MhcPost)

}  // extern "C"
