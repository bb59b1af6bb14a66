// SPDX-License-Identifier: Apache-2.0
// Queries and window rows: projections, norms, rope, the ring.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "backends/ref/backend.h"
#include "backends/ref/matmul.h"
#include "backends/ref/rope.h"
#include "backends/ref/rows.h"

namespace belay::ref {
namespace {

// q / rms(q). Official: every step in bf16, the mean summed in float32.
void HeadNorm(const ops::Numerics& numerics, std::span<float> q) {
  const bool official = numerics.official();
  const auto round = [&](float v) { return official ? RoundToBf16(v) : v; };
  double sum = 0.0;
  for (const float v : q) sum += round(v * v);
  const float mean =
      round(static_cast<float>(sum / static_cast<double>(q.size())));
  const float r = round(1.0f / std::sqrt(round(mean + numerics.norm_eps)));
  for (float& v : q) v = round(v * r);
}

}  // namespace

void RefBackend::QueryProject(const ops::QueryProjectParams& p) {
  Matrix qr = MatMul(numerics_, AsRef(p.wq_a), Load(p.x));
  Round(qr);
  const std::vector<float> norm = LoadVector(p.q_norm);
  for (int64_t t = 0; t < qr.n_rows(); ++t) {
    RmsNormRow(qr.row(t), norm, numerics_.norm_eps, qr.row(t));
  }
  Round(qr);
  Store(qr, p.qr);

  Matrix q = MatMul(numerics_, AsRef(p.wq_b), qr);
  Round(q);
  const auto head_dim = static_cast<size_t>(p.q.dim(2));
  for (int64_t t = 0; t < q.n_rows(); ++t) {
    const Rotation rotation(p.rope, p.positions.as<int32_t>()[t]);
    for (int64_t h = 0; h < p.q.dim(1); ++h) {
      const std::span<float> head =
          q.row(t).subspan(static_cast<size_t>(h) * head_dim, head_dim);
      if (p.head_norm) HeadNorm(numerics_, head);
      rotation.Apply(head);
    }
  }
  Store(q, p.q);
}

void RefBackend::KvProject(const ops::KvProjectParams& p) {
  Matrix kv = MatMul(numerics_, AsRef(p.wkv), Load(p.x));
  Round(kv);
  const std::vector<float> norm = LoadVector(p.kv_norm);
  for (int64_t t = 0; t < kv.n_rows(); ++t) {
    const std::span<float> row = kv.row(t);
    RmsNormRow(row, norm, numerics_.norm_eps, row);
    Round(row);
    Rotation(p.rope, p.positions.as<int32_t>()[t]).Apply(row);
    Round(row);
    EncodeKvRow(numerics_, p.format, 2 * p.rope.freq.dim(0), row,
                p.fresh.row<std::byte>(t));
  }
}

void RefBackend::RopeTail(const ops::RopeTailParams& p) {
  Matrix x = Load(p.x);
  const auto head_dim = static_cast<size_t>(p.x.dim(2));
  for (int64_t t = 0; t < x.n_rows(); ++t) {
    const Rotation rotation(p.rope, p.positions.as<int32_t>()[t], p.inverse);
    for (size_t i = 0; i < x.row(t).size(); i += head_dim) {
      rotation.Apply(x.row(t).subspan(i, head_dim));
    }
  }
  Store(x, p.x);
}

void RefBackend::KvStore(const ops::KvStoreParams& p) {
  const auto n_ring = static_cast<int32_t>(p.window.rows.dim(1));
  for (const ops::Span& span : p.batch.spans) {
    const int32_t skipped = std::max(0, span.n_tokens - n_ring);
    for (int32_t i = skipped; i < span.n_tokens; ++i) {
      std::memcpy(WindowRow(p.window, span.slot, span.start_pos + i),
                  p.fresh.row<std::byte>(span.first_token + i),
                  p.window.format.bytes());
    }
  }
}

}  // namespace belay::ref
