// SPDX-License-Identifier: Apache-2.0
// Embed, hyper-connections, GatherRows, AddBroadcast.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstring>

#include "backends/cpu/backend.h"
#include "base/float_formats.h"
#include "kernels/quantize.h"
#include "kernels/vector.h"

namespace belay::cpu {
namespace {

// A row of an embedding table that Load does not know: one row a token, so
// that plain loops will do.
void DecodeTableRow(const StoredView& table, int64_t row, int64_t dim,
                    float* out) {
  if (table.format == BlockFormat::kNone) {
    const uint16_t* codes = table.view.row<uint16_t>(row);
    for (int64_t i = 0; i < dim; ++i) out[i] = F32FromF16(codes[i]);
    return;
  }
  const int64_t values = BlockValues(table.format);
  const std::byte* block = table.view.row<std::byte>(row);
  for (int64_t i = 0; i < dim; i += values) {
    double decoded[256];
    DecodeBlocks(table.format, block, values, decoded);
    std::transform(decoded, decoded + values, out + i,
                   [](double v) { return static_cast<float>(v); });
    block += BlockBytes(table.format);
  }
}

float Sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

// Rows, then columns, divided by their sums + eps; `comb` [hc, hc].
void NormaliseRows(float* comb, int hc, float eps) {
  for (int j = 0; j < hc; ++j) {
    float sum = 0.0f;
    for (int k = 0; k < hc; ++k) sum += comb[j * hc + k];
    for (int k = 0; k < hc; ++k) comb[j * hc + k] /= sum + eps;
  }
}

void NormaliseColumns(float* comb, int hc, float eps) {
  for (int k = 0; k < hc; ++k) {
    float sum = 0.0f;
    for (int j = 0; j < hc; ++j) sum += comb[j * hc + k];
    for (int j = 0; j < hc; ++j) comb[j * hc + k] /= sum + eps;
  }
}

// `comb` holds the logits on entry.
void Sinkhorn(float* comb, int hc, int n_iters, float eps) {
  for (int j = 0; j < hc; ++j) {
    float* row = comb + ptrdiff_t{j} * hc;
    const float max = *std::max_element(row, row + hc);
    float sum = 0.0f;
    for (int k = 0; k < hc; ++k) {
      row[k] = std::exp(row[k] - max);
      sum += row[k];
    }
    for (int k = 0; k < hc; ++k) row[k] = row[k] / sum + eps;
  }
  NormaliseColumns(comb, hc, eps);
  for (int i = 1; i < n_iters; ++i) {
    NormaliseRows(comb, hc, eps);
    NormaliseColumns(comb, hc, eps);
  }
}

// out = sum_j weights[j] * rows[j], in the order of j.
void WeightedSum(const float* rows, const float* weights, int n_rows,
                 int64_t dim, float* out) {
  const auto n = static_cast<size_t>(dim);
  kernels::MulRow(rows, weights[0], n, out);
  for (int j = 1; j < n_rows; ++j) {
    kernels::AddScaledRow(rows + j * dim, weights[j], n, out);
  }
}

float InverseRms(const float* x, int64_t n, float eps) {
  const float mean =
      kernels::SumSquares(x, static_cast<size_t>(n)) / static_cast<float>(n);
  return 1.0f / std::sqrt(mean + eps);
}

}  // namespace

void CpuBackend::Embed(const ops::EmbedParams& p) {
  const int64_t hc = p.h.dim(1);
  const int64_t dim = p.h.dim(2);
  const auto ids = p.token_ids.as<int32_t>();
  Parallel(p.h.n_rows(), [&](size_t i, int thread) {
    float* row = workspace_.thread(thread).Take<float>(dim);
    const int64_t at = ids[i] - p.first_id;
    if (at >= 0 && at < p.table.view.n_rows()) {
      const bool plain = p.table.format == BlockFormat::kNone &&
                         p.table.view.dtype() != DType::kF16;
      if (plain) {
        Load(p.table.view, at, 0, dim, row);
      } else {
        DecodeTableRow(p.table, at, dim, row);
      }
    } else {
      std::fill_n(row, dim, 0.0f);
    }
    for (int64_t s = 0; s < hc; ++s) {
      Store(row, dim, p.h, static_cast<int64_t>(i), s * dim);
    }
  });
}

float* CpuBackend::Mixes(ConstTensorView h, ConstTensorView fn) const {
  const int64_t n = h.n_rows();
  float* mixes = workspace_.shared().Take<float>(n * fn.dim(0));
  const kernels::WeightView weight = ViewOfF32(fn);
  const Projection product = {&weight,
                              TensorView(mixes, DType::kF32, {n, fn.dim(0)})};
  ProjectAll(h, false, kernels::F32MatMul(), {&product, 1});
  return mixes;
}

void CpuBackend::HcPre(const ops::HcPreParams& p) {
  const auto hc = static_cast<int>(p.h.dim(1));
  const int64_t dim = p.h.dim(2);
  const int64_t n_mixes = p.weights.fn.dim(0);
  const float* mixes = Mixes(p.h, p.weights.fn);
  const auto base = p.weights.base.as<float>();
  const auto scale = p.weights.scale.as<float>();
  Parallel(p.h.n_rows(), [&](size_t i, int thread) {
    const auto t = static_cast<int64_t>(i);
    Scratch scratch = workspace_.thread(thread);
    float* h = scratch.Take<float>(hc * dim);
    float* x = scratch.Take<float>(dim);
    float* pre = scratch.Take<float>(hc);
    Load(p.h, t, 0, hc * dim, h);
    const float r = InverseRms(h, hc * dim, p.norm_eps);
    const float* m = mixes + t * n_mixes;
    const auto mix = [&](int at, int group) {
      return m[at] * r * scale[static_cast<size_t>(group)] +
             base[static_cast<size_t>(at)];
    };
    float* post = p.post.row<float>(t);
    float* comb = p.comb.row<float>(t);
    for (int j = 0; j < hc; ++j) {
      pre[j] = Sigmoid(mix(j, 0)) + p.hc_eps;
      post[j] = 2.0f * Sigmoid(mix(hc + j, 1));
    }
    for (int c = 0; c < hc * hc; ++c) comb[c] = mix(2 * hc + c, 2);
    Sinkhorn(comb, hc, p.sinkhorn_iters, p.hc_eps);
    WeightedSum(h, pre, hc, dim, x);
    Store(x, dim, p.x, t, 0);
  });
}

void CpuBackend::HcPost(const ops::HcPostParams& p) {
  const int64_t hc = p.h.dim(1);
  const int64_t dim = p.h.dim(2);
  Parallel(p.h.n_rows(), [&](size_t i, int thread) {
    const auto t = static_cast<int64_t>(i);
    Scratch scratch = workspace_.thread(thread);
    float* h = scratch.Take<float>(hc * dim);
    float* y = scratch.Take<float>(dim);
    float* out = scratch.Take<float>(dim);
    Load(p.h, t, 0, hc * dim, h);  // whole, since h_out may be h
    Load(p.y, t, 0, dim, y);
    const float* post = p.post.row<float>(t);
    const float* comb = p.comb.row<float>(t);
    const auto n = static_cast<size_t>(dim);
    for (int64_t k = 0; k < hc; ++k) {
      // The streams' sum first, then the sublayer: the official order.
      kernels::MulRow(h, comb[k], n, out);
      for (int64_t j = 1; j < hc; ++j) {
        kernels::AddScaledRow(h + j * dim, comb[j * hc + k], n, out);
      }
      kernels::AddScaledRow(y, post[k], n, out);
      Store(out, dim, p.h_out, t, k * dim);
    }
  });
}

void CpuBackend::HcHead(const ops::HcHeadParams& p) {
  const auto hc = static_cast<int>(p.h.dim(1));
  const int64_t dim = p.h.dim(2);
  const float* mixes = Mixes(p.h, p.weights.fn);
  const auto base = p.weights.base.as<float>();
  const float scale = p.weights.scale.as<float>()[0];
  Parallel(p.h.n_rows(), [&](size_t i, int thread) {
    const auto t = static_cast<int64_t>(i);
    Scratch scratch = workspace_.thread(thread);
    float* h = scratch.Take<float>(hc * dim);
    float* x = scratch.Take<float>(dim);
    float* pre = scratch.Take<float>(hc);
    Load(p.h, t, 0, hc * dim, h);
    const float r = InverseRms(h, hc * dim, p.norm_eps);
    for (int j = 0; j < hc; ++j) {
      const float m = mixes[t * hc + j] * r;
      pre[j] = Sigmoid(m * scale + base[static_cast<size_t>(j)]) + p.hc_eps;
    }
    WeightedSum(h, pre, hc, dim, x);
    Store(x, dim, p.x, t, 0);
  });
}

void CpuBackend::GatherRows(const ops::GatherRowsParams& p) {
  const auto rows = p.rows.as<int32_t>();
  for (size_t i = 0; i < rows.size(); ++i) {
    std::memcpy(p.dst.row<std::byte>(static_cast<int64_t>(i)),
                p.src.row<std::byte>(rows[i]), p.src.row_bytes());
  }
}

void CpuBackend::AddBroadcast(const ops::AddBroadcastParams& p) {
  const int64_t hc = p.hp.dim(1);
  const int64_t dim = p.hp.dim(2);
  Parallel(p.hp.n_rows(), [&](size_t i, int thread) {
    const auto t = static_cast<int64_t>(i);
    Scratch scratch = workspace_.thread(thread);
    float* e = scratch.Take<float>(dim);
    float* sum = scratch.Take<float>(dim);
    Load(p.e, t, 0, dim, e);
    for (int64_t s = 0; s < hc; ++s) {
      Load(p.hp, t, s * dim, dim, sum);
      kernels::AddRow(e, static_cast<size_t>(dim), sum);
      Store(sum, dim, p.h_out, t, s * dim);
    }
  });
}

}  // namespace belay::cpu
