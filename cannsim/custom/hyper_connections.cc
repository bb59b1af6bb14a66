// SPDX-License-Identifier: Apache-2.0
// Hyper-connections of the custom packages: HcPre, HcPost, and HcPre in parts.
// Formula and limits: the operators' kernels and READMEs in vllm-ascend, calls
// in xLLM (data/abi names the places). Four streams, as they allow no others.
#include <cmath>

#include "aclnnop/aclnn_hc_post.h"
#include "aclnnop/aclnn_hc_pre.h"
#include "aclnnop/aclnn_hc_pre_inv_rms.h"
#include "aclnnop/aclnn_hc_pre_sinkhorn.h"
#include "cannsim/ops/at.h"
#include "cannsim/ops/v4/hyper.h"

namespace cannsim {
namespace {

constexpr int64_t kStreams = 4;
constexpr int64_t kMixes = kStreams * (kStreams + 2);

struct PreOptions {
  int64_t iterations = 0;
  double hc_eps = 0;
};

// Arrays in this order: x, scale, base, y, post, comb.
struct PreArrays {
  Array x;
  Array scale;
  Array base;
  Array y;
  Array post;
  Array comb;
};

// Where token `t` begins in each array.
struct PreRows {
  std::vector<int64_t> x;
  std::vector<int64_t> y;
  std::vector<int64_t> post;
  std::vector<int64_t> comb;
};

PreRows RowsOfPre(const PreArrays& a) {
  return {RowsOf(a.x, 2), RowsOf(a.y, 1), RowsOf(a.post, 1), RowsOf(a.comb, 2)};
}

// One token, from its mixes times the inverse root mean square.
void WriteToken(const PreArrays& a, const PreRows& rows, size_t t,
                const std::vector<double>& mix, const PreOptions& options) {
  HyperMix parts = SplitMix(kStreams, mix, ReadRow(a.scale, 0),
                            ReadRow(a.base, 0), options.hc_eps);
  Sinkhorn(kStreams, options.iterations, options.hc_eps, &parts.comb);
  const size_t rank = a.x.dims.size();
  const int64_t stream = a.x.strides[rank - 2];
  for (int64_t d = 0; d < a.x.dims.back(); ++d) {
    double sum = 0;
    for (int64_t i = 0; i < kStreams; ++i) {
      sum += parts.pre[static_cast<size_t>(i)] *
             LoadF(a.x, rows.x[t] + i * stream + d * a.x.strides.back());
    }
    StoreF(a.y, rows.y[t] + d * a.y.strides.back(), sum);
  }
  WriteRow(a.post, rows.post[t], parts.post);
  const int64_t row = a.comb.strides[a.comb.strides.size() - 2];
  for (int64_t i = 0; i < kStreams * kStreams; ++i) {
    StoreF(a.comb,
           rows.comb[t] + i / kStreams * row +
               i % kStreams * a.comb.strides.back(),
           parts.comb[static_cast<size_t>(i)]);
  }
}

// Shapes that HcPre and HcPreSinkhorn share.
struct PreTensors {
  const aclTensor* x;
  const aclTensor* scale;
  const aclTensor* base;
  const aclTensor* y;
  const aclTensor* post;
  const aclTensor* comb;
};

void CheckPre(Phase1& call, const PreTensors& t, int64_t hc_mult,
              int64_t iterations) {
  if (!call.ok()) return;
  call.Require(hc_mult == kStreams, "hcMult must be 4");
  call.Require(iterations >= 1 && iterations <= 1000,
               "the number of Sinkhorn iterations must be 1 to 1000");
  call.Require((t.x->rank() == 3 || t.x->rank() == 4) &&
                   t.x->dims[t.x->dims.size() - 2] == kStreams,
               "x must be [tokens, 4, d] or [b, s, 4, d]");
  if (!call.ok()) return;
  const Dims tokens = Leading(t.x->dims, 2);
  call.Require(t.scale->dims == Dims{3} && t.base->dims == Dims{kMixes},
               "hcScale must be [3] and hcBase [24]");
  call.Require(
      t.y->dims == With(tokens, {t.x->dims.back()}) && t.y->dtype == t.x->dtype,
      "y must be x without its streams, of x's dtype");
  call.Require(t.post->dims == With(tokens, {kStreams}) &&
                   t.comb->dims == With(tokens, {kStreams, kStreams}),
               "post must be [tokens, 4] and combFrag [tokens, 4, 4]");
  call.Require(t.scale->dtype == ACL_FLOAT && t.base->dtype == ACL_FLOAT &&
                   t.post->dtype == ACL_FLOAT && t.comb->dtype == ACL_FLOAT,
               "hcScale, hcBase, post and combFrag must be FLOAT");
}

// mean(x^2) of one token over all its streams.
double MeanSquare(const Array& x, int64_t first) {
  const size_t rank = x.dims.size();
  double sum = 0;
  for (int64_t i = 0; i < x.dims[rank - 2]; ++i) {
    for (int64_t d = 0; d < x.dims.back(); ++d) {
      const double value =
          LoadF(x, first + i * x.strides[rank - 2] + d * x.strides.back());
      sum += value * value;
    }
  }
  return sum / static_cast<double>(x.dims[rank - 2] * x.dims.back());
}

int Pre(const Arrays& a, const PreOptions& options, double norm_eps) {
  const PreArrays arrays{a[0], a[2], a[3], a[4], a[5], a[6]};
  const PreRows rows = RowsOfPre(arrays);
  const Array& x = a[0];
  const Array& fn = a[1];
  const int64_t d = x.dims.back();
  const int64_t stream = x.strides[x.strides.size() - 2];
  for (size_t t = 0; t < rows.x.size(); ++t) {
    const double r = 1 / std::sqrt(MeanSquare(x, rows.x[t]) + norm_eps);
    std::vector<double> mix(kMixes, 0.0);
    for (int64_t k = 0; k < kStreams * d; ++k) {
      const double value =
          LoadF(x, rows.x[t] + k / d * stream + k % d * x.strides.back());
      for (int64_t j = 0; j < kMixes; ++j) {
        mix[static_cast<size_t>(j)] += value * At(fn, j, k);
      }
    }
    for (double& m : mix) m *= r;
    WriteToken(arrays, rows, t, mix, options);
  }
  return 0;
}

// y_k = post_k x + sum_j comb[j][k] residual_j.
int Post(const Arrays& a) {
  const Array& x = a[0];
  const Array& residual = a[1];
  const Array& post = a[2];
  const Array& comb = a[3];
  const Array& y = a[4];
  const auto rows_x = RowsOf(x, 1);
  const auto rows_r = RowsOf(residual, 2);
  const auto rows_p = RowsOf(post, 1);
  const auto rows_c = RowsOf(comb, 2);
  const auto rows_y = RowsOf(y, 2);
  const size_t rank = y.strides.size();
  const int64_t n = y.dims[rank - 2];
  for (size_t t = 0; t < rows_y.size(); ++t) {
    for (int64_t k = 0; k < n; ++k) {
      const double p = LoadF(post, rows_p[t] + k * post.strides.back());
      for (int64_t d = 0; d < y.dims.back(); ++d) {
        double sum = p * LoadF(x, rows_x[t] + d * x.strides.back());
        for (int64_t j = 0; j < n; ++j) {
          sum += LoadF(comb, rows_c[t] + j * comb.strides[rank - 2] +
                                 k * comb.strides.back()) *
                 LoadF(residual, rows_r[t] + j * residual.strides[rank - 2] +
                                     d * residual.strides.back());
        }
        StoreF(y, rows_y[t] + k * y.strides[rank - 2] + d * y.strides.back(),
               sum);
      }
    }
  }
  return 0;
}

bool IsActivation(aclDataType dtype) {
  return dtype == ACL_FLOAT16 || dtype == ACL_BF16 || dtype == ACL_FLOAT;
}

}  // namespace
}  // namespace cannsim

extern "C" {

aclnnStatus aclnnHcPreGetWorkspaceSize(
    const aclTensor* x, const aclTensor* hcFn, const aclTensor* hcScale,
    const aclTensor* hcBase, int64_t hcMult, int64_t hcSinkhornIters,
    double hcEps, double normEps, const aclTensor* y, const aclTensor* post,
    const aclTensor* combFrag, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnHcPre", workspaceSize, executor);
  call.In(x, "x").In(hcFn, "hcFn").In(hcScale, "hcScale");
  call.In(hcBase, "hcBase").Out(y, "y").Out(post, "post");
  call.Out(combFrag, "combFrag");
  cannsim::NeedsDtype(call, x, ACL_BF16, "x must be BF16");
  cannsim::CheckPre(call, {x, hcScale, hcBase, y, post, combFrag}, hcMult,
                    hcSinkhornIters);
  if (!call.ok()) return call.Finish(nullptr);
  const int64_t d = x->dims.back();
  call.Require(d == 4096 || d == 7168, "d must be 4096 or 7168");
  call.Require(
      hcFn->dtype == ACL_FLOAT &&
          hcFn->dims == cannsim::Dims{cannsim::kMixes, cannsim::kStreams * d},
      "hcFn must be FLOAT [24, 4 d]");
  const cannsim::PreOptions options{hcSinkhornIters, hcEps};
  return call.Finish([options, normEps](const cannsim::Arrays& a) {
    return cannsim::Pre(a, options, normEps);
  });
}
CANNSIM_PHASE2(HcPre)

aclnnStatus aclnnHcPreInvRmsGetWorkspaceSize(const aclTensor* x, double epsilon,
                                             const aclTensor* y,
                                             uint64_t* workspaceSize,
                                             aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnHcPreInvRms", workspaceSize, executor);
  call.In(x, "x").Out(y, "y");
  if (!call.ok()) return call.Finish(nullptr);
  call.Require(cannsim::IsActivation(x->dtype) && y->dtype == ACL_FLOAT,
               "x must be FLOAT16, BF16 or FLOAT, y FLOAT");
  call.Require(x->rank() >= 2 &&
                   y->dims == cannsim::With(cannsim::Leading(x->dims, 2), {1}),
               "y must have 1 in the place of x's last two axes");
  return call.Finish([epsilon](const cannsim::Arrays& a) {
    const auto rows = cannsim::RowsOf(a[0], 2);
    const auto out = cannsim::RowsOf(a[1], 1);
    for (size_t t = 0; t < rows.size(); ++t) {
      cannsim::StoreF(
          a[1], out[t],
          1 / std::sqrt(cannsim::MeanSquare(a[0], rows[t]) + epsilon));
    }
    return 0;
  });
}
CANNSIM_PHASE2(HcPreInvRms)

aclnnStatus aclnnHcPreSinkhornGetWorkspaceSize(
    const aclTensor* mixes, const aclTensor* rsqrt, const aclTensor* hcScale,
    const aclTensor* hcBase, const aclTensor* x, int64_t hcMult, int64_t iters,
    double hcEps, const aclTensor* y, const aclTensor* post,
    const aclTensor* combFrag, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnHcPreSinkhorn", workspaceSize, executor);
  call.In(mixes, "mixes").In(rsqrt, "rsqrt").In(hcScale, "hcScale");
  call.In(hcBase, "hcBase").In(x, "x");
  call.Out(y, "y").Out(post, "post").Out(combFrag, "combFrag");
  cannsim::CheckPre(call, {x, hcScale, hcBase, y, post, combFrag}, hcMult,
                    iters);
  if (!call.ok()) return call.Finish(nullptr);
  const cannsim::Dims tokens = cannsim::Leading(x->dims, 2);
  call.Require(cannsim::IsActivation(x->dtype),
               "x must be FLOAT16, BF16 or FLOAT");
  call.Require(mixes->dtype == ACL_FLOAT && rsqrt->dtype == ACL_FLOAT &&
                   mixes->dims == cannsim::With(tokens, {cannsim::kMixes}) &&
                   rsqrt->dims == cannsim::With(tokens, {1}),
               "mixes must be FLOAT [tokens, 24], rsqrt FLOAT [tokens, 1]");
  const cannsim::PreOptions options{iters, hcEps};
  return call.Finish([options](const cannsim::Arrays& a) {
    const cannsim::PreArrays arrays{a[4], a[2], a[3], a[5], a[6], a[7]};
    const cannsim::PreRows rows = cannsim::RowsOfPre(arrays);
    const auto from = cannsim::RowsOf(a[0], 1);
    const auto scale = cannsim::RowsOf(a[1], 1);
    for (size_t t = 0; t < from.size(); ++t) {
      std::vector<double> mix = cannsim::ReadRow(a[0], from[t]);
      for (double& m : mix) m *= cannsim::LoadF(a[1], scale[t]);
      cannsim::WriteToken(arrays, rows, t, mix, options);
    }
    return 0;
  });
}
CANNSIM_PHASE2(HcPreSinkhorn)

aclnnStatus aclnnHcPostGetWorkspaceSize(
    const aclTensor* x, const aclTensor* residual, const aclTensor* post,
    const aclTensor* comb, const aclTensor* y, uint64_t* workspaceSize,
    aclOpExecutor** executor) {
  cannsim::Phase1 call("aclnnHcPost", workspaceSize, executor);
  call.In(x, "x").In(residual, "residual").In(post, "post").In(comb, "comb");
  call.Out(y, "y");
  if (!call.ok()) return call.Finish(nullptr);
  call.Require(x->rank() == 2 || x->rank() == 3,
               "x must be [tokens, d] or [b, s, d]");
  call.Require(residual->rank() == x->rank() + 1,
               "residual must have one axis more than x");
  if (!call.ok()) return call.Finish(nullptr);
  const cannsim::Dims tokens = cannsim::Leading(x->dims, 1);
  const int64_t n = residual->dims[residual->dims.size() - 2];
  call.Require(residual->dims == cannsim::With(tokens, {n, x->dims.back()}) &&
                   y->dims == residual->dims,
               "residual and y must be [tokens, hc, d]");
  call.Require(post->dims == cannsim::With(tokens, {n}) &&
                   comb->dims == cannsim::With(tokens, {n, n}),
               "post must be [tokens, hc] and comb [tokens, hc, hc]");
  call.Require(cannsim::IsActivation(x->dtype) && residual->dtype == x->dtype &&
                   y->dtype == x->dtype && cannsim::IsActivation(post->dtype) &&
                   comb->dtype == post->dtype,
               "x, residual and y must agree in dtype (FLOAT16, BF16 or "
               "FLOAT), post and comb too");
  call.Require(y->data != residual->data && y->data != x->data,
               "y must not be x or residual");
  return call.Finish([](const cannsim::Arrays& a) { return cannsim::Post(a); });
}
CANNSIM_PHASE2(HcPost)

}  // extern "C"
