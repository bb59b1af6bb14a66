// SPDX-License-Identifier: Apache-2.0
// Sample: as ops/sample.h says, in double from the logits on.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <utility>

#include "backends/cpu/backend.h"
#include "base/random.h"

namespace belay::cpu {
namespace {

// A token as a number: ascending numbers are descending logits, and ascending
// ids where logits are equal.
using Key = uint64_t;

Key KeyOf(float logit, int32_t id) {
  uint32_t bits;
  const float positive_zero = logit + 0.0f;  // -0 equals 0
  std::memcpy(&bits, &positive_zero, sizeof(bits));
  const uint32_t ascending = (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
  return (Key{~ascending} << 32) | static_cast<uint32_t>(id);
}

int32_t IdOf(Key key) { return static_cast<int32_t>(key & 0xffffffffu); }

// Copies a row's logits and adds its corrections.
void Correct(const ops::SampleParams& p, int64_t row, float* biased) {
  std::copy_n(p.logits.row<float>(row), p.logits.dim(1), biased);
  for (const ops::LogitBias& b : p.biases) {
    if (b.row == row) biased[b.token] += b.bias;
  }
}

// The tokens that may be drawn, in order of id; their number.
int64_t Candidates(const ops::SampleParams& p, int64_t row, const float* biased,
                   Key* keys) {
  int64_t n = 0;
  for (int64_t id = 0; id < p.logits.dim(1); ++id) {
    if (!p.allowed.empty()) {
      const auto word =
          static_cast<uint32_t>(p.allowed.row<int32_t>(row)[id / 32]);
      if (((word >> (id % 32)) & 1u) == 0) continue;
    }
    if (!std::isfinite(biased[id])) continue;
    keys[n++] = KeyOf(biased[id], static_cast<int32_t>(id));
  }
  return n;
}

// Sorts keys that are in order of id: four stable passes over the bytes of the
// logit. `other` has as much room.
void SortByLogit(Key* keys, int64_t n, Key* other) {
  for (int shift = 32; shift < 64; shift += 8) {
    std::array<int64_t, 256> place = {};
    for (int64_t i = 0; i < n; ++i) ++place[(keys[i] >> shift) & 0xff];
    int64_t sum = 0;
    for (int64_t& p : place) sum += std::exchange(p, sum);
    for (int64_t i = 0; i < n; ++i) {
      other[place[(keys[i] >> shift) & 0xff]++] = keys[i];
    }
    std::swap(keys, other);  // back in its place after an even number
  }
}

double Total(const double* p, int64_t n) {
  double total = 0.0;
  for (int64_t i = 0; i < n; ++i) total += p[i];
  return total;
}

// How many of the first tokens sum to more than `mass` (`or_equal`: at least);
// all when none do.
int64_t PrefixWith(const double* p, int64_t n, double mass, bool or_equal) {
  double sum = 0.0;
  for (int64_t i = 0; i < n; ++i) {
    sum += p[i];
    if (sum > mass || (or_equal && sum == mass)) return i + 1;
  }
  return n;
}

// The n likeliest tokens' weights; how many of them matter: a weight below
// 2^-54 changes no sum that starts at 1.
int64_t Weigh(const float* biased, const Key* keys, int64_t n,
              float temperature, double* p) {
  constexpr double kNoWeight = -40.0;  // exp of it is below 2^-57
  const double max = biased[IdOf(keys[0])];
  for (int64_t i = 0; i < n; ++i) {
    const double x =
        (static_cast<double>(biased[IdOf(keys[i])]) - max) / temperature;
    if (x < kNoWeight) return i;
    p[i] = std::exp(x);
  }
  return n;
}

// Draws from keys in order of id. `other`: as much room, for p too.
int32_t SampleOne(const ops::SampleRow& row, const float* biased, Key* keys,
                  int64_t n, Key* other) {
  if (n == 0) return -1;
  if (row.temperature == 0.0f) return IdOf(*std::min_element(keys, keys + n));
  if (row.top_k > 0 && row.top_k < n) {
    std::nth_element(keys, keys + row.top_k, keys + n);
    n = row.top_k;
    std::sort(keys, keys + n);
  } else {
    SortByLogit(keys, n, other);
  }
  static_assert(sizeof(double) == sizeof(Key));
  auto* p = reinterpret_cast<double*>(other);
  n = Weigh(biased, keys, n, row.temperature, p);
  if (row.top_p < 1.0f) {
    n = PrefixWith(p, n, row.top_p * Total(p, n), true);
  }
  while (n > 1 && p[n - 1] < row.min_p) --n;
  const double u = UniformFrom(row.seed, static_cast<uint64_t>(row.position));
  return IdOf(keys[PrefixWith(p, n, u * Total(p, n), false) - 1]);
}

}  // namespace

void CpuBackend::Sample(const ops::SampleParams& p) {
  Parallel(p.logits.n_rows(), [&](size_t r, int thread) {
    const auto row = static_cast<int64_t>(r);
    const int64_t vocab = p.logits.dim(1);
    Scratch scratch = workspace_.thread(thread);
    float* biased = scratch.Take<float>(vocab);
    Key* keys = scratch.Take<Key>(vocab);
    Key* other = scratch.Take<Key>(vocab);
    Correct(p, row, biased);
    p.ids.as<int32_t>()[r] = SampleOne(p.rows[r], biased, keys,
                                       Candidates(p, row, biased, keys), other);
  });
}

}  // namespace belay::cpu
