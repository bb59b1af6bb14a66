// SPDX-License-Identifier: Apache-2.0
// Embedding, hyper-connections, and the copies around them.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/ref/backend.h"
#include "backends/ref/matmul.h"

namespace belay::ref {
namespace {

float Sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

// m = (flat(h) fn^T) * rsqrt(mean(flat(h)^2) + eps).
std::vector<float> Mixes(std::span<const float> h, const ConstTensorView& fn,
                         float eps) {
  const float mean =
      static_cast<float>(Dot(h, h) / static_cast<double>(h.size()));
  const float r = 1.0f / std::sqrt(mean + eps);
  std::vector<float> m(static_cast<size_t>(fn.n_rows()));
  for (size_t i = 0; i < m.size(); ++i) {
    const float* row = fn.row<float>(static_cast<int64_t>(i));
    m[i] = static_cast<float>(Dot(h, {row, h.size()})) * r;
  }
  return m;
}

// comb [hc, hc]: softmax of every row + eps, then columns, then rows and
// columns in turn, each divided by its sum + eps.
void Sinkhorn(std::span<float> comb, size_t hc, int iters, float eps) {
  const auto divide = [&](size_t first, size_t step) {
    double sum = 0.0;
    for (size_t i = 0; i < hc; ++i) sum += comb[first + i * step];
    for (size_t i = 0; i < hc; ++i) {
      comb[first + i * step] /= static_cast<float>(sum) + eps;
    }
  };
  for (size_t j = 0; j < hc; ++j) {
    const std::span<float> row = comb.subspan(j * hc, hc);
    const float max = *std::max_element(row.begin(), row.end());
    double sum = 0.0;
    for (float& v : row) sum += v = std::exp(v - max);
    for (float& v : row) v = v / static_cast<float>(sum) + eps;
  }
  for (size_t k = 0; k < hc; ++k) divide(k, hc);
  for (int iter = 1; iter < iters; ++iter) {
    for (size_t j = 0; j < hc; ++j) divide(j * hc, 1);
    for (size_t k = 0; k < hc; ++k) divide(k, hc);
  }
}

// sum_j pre_j h_j.
void Collapse(std::span<const float> pre, std::span<const float> h,
              std::span<float> x) {
  for (size_t d = 0; d < x.size(); ++d) {
    double sum = 0.0;
    for (size_t j = 0; j < pre.size(); ++j) {
      sum += static_cast<double>(pre[j]) * h[j * x.size() + d];
    }
    x[d] = static_cast<float>(sum);
  }
}

// Row `id` of the embedding table, in whatever form it is stored.
std::vector<float> TableRow(const StoredView& table, int64_t id, int64_t dim) {
  std::vector<float> row(static_cast<size_t>(dim));
  if (table.format != BlockFormat::kNone) {
    std::vector<double> values(row.size());
    DecodeBlocks(table.format, table.view.row<std::byte>(id), dim,
                 values.data());
    std::transform(values.begin(), values.end(), row.begin(),
                   [](double v) { return static_cast<float>(v); });
  } else if (table.view.dtype() == DType::kF16) {
    const uint16_t* codes = table.view.row<uint16_t>(id);
    std::transform(codes, codes + dim, row.begin(), F32FromF16);
  } else {
    LoadRow(table.view, id, row);
  }
  return row;
}

}  // namespace

void RefBackend::Embed(const ops::EmbedParams& p) {
  const int64_t dim = p.h.dim(2);
  const int64_t hc = p.h.dim(1);
  const int32_t* ids = p.token_ids.as<int32_t>().data();
  for (int64_t t = 0; t < p.h.n_rows(); ++t) {
    std::vector<float> row(static_cast<size_t>(hc * dim));
    const int64_t id = ids[t] - p.first_id;
    if (id >= 0 && id < p.table.view.n_rows()) {
      const std::vector<float> entry = TableRow(p.table, id, dim);
      for (size_t i = 0; i < row.size(); ++i) row[i] = entry[i % entry.size()];
    }
    StoreRow(row, p.h, t);
  }
}

void RefBackend::HcPre(const ops::HcPreParams& p) {
  const auto hc = static_cast<size_t>(p.h.dim(1));
  const auto scale = p.weights.scale.as<float>();
  const auto base = p.weights.base.as<float>();
  const Matrix h = Load(p.h);
  for (int64_t t = 0; t < h.n_rows(); ++t) {
    const std::vector<float> m = Mixes(h.row(t), p.weights.fn, p.norm_eps);
    std::vector<float> pre(hc), post(hc), comb(hc * hc);
    for (size_t j = 0; j < hc; ++j) {
      pre[j] = Sigmoid(m[j] * scale[0] + base[j]) + p.hc_eps;
      post[j] = 2.0f * Sigmoid(m[hc + j] * scale[1] + base[hc + j]);
    }
    for (size_t i = 0; i < hc * hc; ++i) {
      comb[i] = m[2 * hc + i] * scale[2] + base[2 * hc + i];
    }
    Sinkhorn(comb, hc, p.sinkhorn_iters, p.hc_eps);
    std::vector<float> x(static_cast<size_t>(p.h.dim(2)));
    Collapse(pre, h.row(t), x);
    StoreRow(x, p.x, t);
    StoreRow(post, p.post, t);
    StoreRow(comb, p.comb, t);
  }
}

void RefBackend::HcPost(const ops::HcPostParams& p) {
  const auto hc = static_cast<size_t>(p.h.dim(1));
  const auto dim = static_cast<size_t>(p.h.dim(2));
  const Matrix h = Load(p.h);  // a copy: h_out may be h
  const Matrix y = Load(p.y);
  for (int64_t t = 0; t < h.n_rows(); ++t) {
    const float* post = p.post.row<float>(t);
    const float* comb = p.comb.row<float>(t);
    std::vector<float> out(hc * dim);
    for (size_t i = 0; i < hc * dim; ++i) {
      const size_t k = i / dim;
      const size_t d = i % dim;
      // The products are float32 steps, the sum over streams a reduction.
      double sum = 0.0;
      for (size_t j = 0; j < hc; ++j) {
        sum += comb[j * hc + k] * h.row(t)[j * dim + d];
      }
      out[i] = post[k] * y.row(t)[d] + static_cast<float>(sum);
    }
    StoreRow(out, p.h_out, t);
  }
}

void RefBackend::HcHead(const ops::HcHeadParams& p) {
  const auto hc = static_cast<size_t>(p.h.dim(1));
  const float scale = p.weights.scale.as<float>()[0];
  const auto base = p.weights.base.as<float>();
  const Matrix h = Load(p.h);
  for (int64_t t = 0; t < h.n_rows(); ++t) {
    std::vector<float> pre = Mixes(h.row(t), p.weights.fn, p.norm_eps);
    for (size_t j = 0; j < hc; ++j) {
      pre[j] = Sigmoid(pre[j] * scale + base[j]) + p.hc_eps;
    }
    std::vector<float> x(static_cast<size_t>(p.h.dim(2)));
    Collapse(pre, h.row(t), x);
    StoreRow(x, p.x, t);
  }
}

void RefBackend::GatherRows(const ops::GatherRowsParams& p) {
  const int32_t* rows = p.rows.as<int32_t>().data();
  for (int64_t i = 0; i < p.dst.n_rows(); ++i) {
    std::memcpy(p.dst.row<std::byte>(i), p.src.row<std::byte>(rows[i]),
                p.dst.row_bytes());
  }
}

void RefBackend::AddBroadcast(const ops::AddBroadcastParams& p) {
  const auto dim = static_cast<size_t>(p.e.dim(1));
  const Matrix e = Load(p.e);
  Matrix h = Load(p.hp);
  for (int64_t t = 0; t < h.n_rows(); ++t) {
    for (size_t i = 0; i < h.row(t).size(); ++i) {
      h.row(t)[i] += e.row(t)[i % dim];
    }
  }
  Store(h, p.h_out);
}

}  // namespace belay::ref
