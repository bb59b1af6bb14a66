// SPDX-License-Identifier: Apache-2.0
// Linear, RmsNorm, Logits, AttentionOut: matmuls and a norm.
#include "backends/ref/backend.h"
#include "backends/ref/matmul.h"

namespace belay::ref {

void RefBackend::Linear(const ops::LinearParams& p) {
  Store(MatMul(numerics_, AsRef(p.weight), Load(p.x)), p.y);
}

void RefBackend::RmsNorm(const ops::RmsNormParams& p) {
  Matrix x = Load(p.x);
  const std::vector<float> weight = LoadVector(p.weight);
  for (int64_t i = 0; i < x.n_rows(); ++i) {
    RmsNormRow(x.row(i), weight, p.eps, x.row(i));
  }
  Store(x, p.y);
}

void RefBackend::Logits(const ops::LogitsParams& p) {
  Store(MatMul(numerics_, AsRef(p.weight), Load(p.x)), p.logits);
}

// a_g = round(wo_a_g o_g) for every group g of heads, then y = wo_b concat(a).
void RefBackend::AttentionOut(const ops::AttentionOutParams& p) {
  const RefLinear& wo_a = AsRef(p.wo_a);
  const int64_t n_in = wo_a.n_in();
  const int64_t o_lora = wo_a.n_out() / p.n_groups;
  const Matrix o = Load(p.o);
  Matrix mid(o.n_rows(), wo_a.n_out());
  for (int64_t g = 0; g < p.n_groups; ++g) {
    Matrix o_g(o.n_rows(), n_in);
    for (int64_t t = 0; t < o.n_rows(); ++t) {
      std::copy_n(o.row(t).begin() + g * n_in, n_in, o_g.row(t).begin());
    }
    const Matrix a_g = MatMulRows(numerics_, wo_a, g * o_lora, o_lora, o_g);
    for (int64_t t = 0; t < o.n_rows(); ++t) {
      std::copy_n(a_g.row(t).begin(), o_lora, mid.row(t).begin() + g * o_lora);
    }
  }
  Round(mid);
  Store(mid, p.mid);
  Store(MatMul(numerics_, AsRef(p.wo_b), mid), p.y);
}

}  // namespace belay::ref
