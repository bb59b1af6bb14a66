// SPDX-License-Identifier: Apache-2.0
#include "backends/ref/matmul.h"

#include <algorithm>
#include <cmath>

#include "backends/ref/quant.h"
#include "base/float_formats.h"

namespace belay::ref {
namespace {

constexpr int kLanes = 8;

template <typename A, typename B>
double DotOf(const A* a, const B* b, int64_t n) {
  double lane[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) {
      lane[l] += static_cast<double>(a[i + l]) * static_cast<double>(b[i + l]);
    }
  }
  for (int l = 0; i < n; ++i, ++l) {
    lane[l] += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  }
  return ((lane[0] + lane[1]) + (lane[2] + lane[3])) +
         ((lane[4] + lane[5]) + (lane[6] + lane[7]));
}

// The left operand of a matmul: values, and one scale per `block` of K.
struct Activations {
  std::vector<double> values;  // [n_tokens, n_in]
  std::vector<float> scales;   // [n_tokens, n_in / block]
  int64_t block = 0;
};

Activations Unquantised(const Matrix& x) {
  Activations a;
  a.block = x.n_cols();
  for (int64_t t = 0; t < x.n_rows(); ++t) {
    a.values.insert(a.values.end(), x.row(t).begin(), x.row(t).end());
    a.scales.push_back(1.0f);
  }
  return a;
}

// act_quant: e4m3 codes (as their values) and a power of two per block.
Activations ActQuant(const Matrix& x, int block) {
  Activations a;
  a.block = block;
  for (int64_t t = 0; t < x.n_rows(); ++t) {
    for (int64_t k = 0; k < x.n_cols(); k += block) {
      const auto group =
          x.row(t).subspan(static_cast<size_t>(k), static_cast<size_t>(block));
      const float scale = F32FromE8m0(Fp8GroupScale(group));
      a.scales.push_back(scale);
      for (const float v : group) {
        a.values.push_back(E4m3Table()[E4m3FromF32(v / scale)]);
      }
    }
  }
  return a;
}

// int8 codes (as their values) and a scale per block.
Activations Int8Quant(const Matrix& x, int block) {
  Activations a;
  a.block = block;
  for (int64_t t = 0; t < x.n_rows(); ++t) {
    for (int64_t k = 0; k < x.n_cols(); k += block) {
      const auto group =
          x.row(t).subspan(static_cast<size_t>(k), static_cast<size_t>(block));
      const float amax = AbsMax(group);
      const float inverse = amax == 0.0f ? 0.0f : 127.0f / amax;
      a.scales.push_back(amax / 127.0f);
      for (const float v : group) {
        a.values.push_back(std::nearbyint(v * inverse));
      }
    }
  }
  return a;
}

Activations Quantise(const ops::Numerics& numerics, const RefLinear& weight,
                     const Matrix& x) {
  if (!numerics.official()) return Unquantised(x);
  if (weight.int8_block() != 0) return Int8Quant(x, weight.int8_block());
  return weight.quantise_input() ? ActQuant(x, numerics.act_block)
                                 : Unquantised(x);
}

}  // namespace

double Dot(const double* a, const double* b, int64_t n) {
  return DotOf(a, b, n);
}

double Dot(std::span<const float> a, std::span<const float> b) {
  return DotOf(a.data(), b.data(), static_cast<int64_t>(a.size()));
}

Matrix MatMulRows(const ops::Numerics& numerics, const RefLinear& weight,
                  int64_t first, int64_t n, const Matrix& x) {
  BELAY_CHECK(x.n_cols() == weight.n_in());
  const Activations a = Quantise(numerics, weight, x);
  // Both scales are constant over `step` values of K. The activation's is a
  // power of two, so (part * sa) * sb of the FP4 kernel and part * (sa * sb) of
  // the FP8 kernel are the same number.
  const int64_t n_in = weight.n_in();
  const int64_t step = std::min(a.block, weight.block_k());
  const int64_t a_blocks = n_in / a.block;
  Matrix y(x.n_rows(), n);
  std::vector<double> row(static_cast<size_t>(n_in));
  for (int64_t i = 0; i < n; ++i) {
    weight.DecodeRow(first + i, row);
    for (int64_t t = 0; t < x.n_rows(); ++t) {
      double acc = 0.0;
      for (int64_t k = 0; k < n_in; k += step) {
        const double part =
            Dot(&a.values[static_cast<size_t>(t * n_in + k)],
                &row[static_cast<size_t>(k)], std::min(step, n_in - k));
        const float sa =
            a.scales[static_cast<size_t>(t * a_blocks + k / a.block)];
        acc += part * sa * weight.Scale(first + i, k / weight.block_k());
      }
      y.row(t)[static_cast<size_t>(i)] = static_cast<float>(acc);
    }
  }
  return y;
}

Matrix MatMul(const ops::Numerics& numerics, const RefLinear& weight,
              const Matrix& x) {
  return MatMulRows(numerics, weight, 0, weight.n_out(), x);
}

void RmsNormRow(std::span<const float> x, std::span<const float> weight,
                float eps, std::span<float> y) {
  const float mean =
      static_cast<float>(Dot(x, x) / static_cast<double>(x.size()));
  const float r = 1.0f / std::sqrt(mean + eps);
  for (size_t i = 0; i < x.size(); ++i) y[i] = weight[i] * (x[i] * r);
}

}  // namespace belay::ref
