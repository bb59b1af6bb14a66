// SPDX-License-Identifier: Apache-2.0
// Sample: as ops/sample.h says, in double from the logits on.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>
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

float Penalised(float logit, const ops::SampleRow& row, int32_t n_generated) {
  const float r = row.repetition_penalty;
  float l = logit > 0 ? logit / r : logit * r;
  if (n_generated == 0) return l;
  l -= row.presence_penalty;
  const float frequency =
      row.frequency_penalty * static_cast<float>(n_generated);
  return l - frequency;
}

// Copies a row's logits and corrects them.
void Correct(const ops::SampleRow& row, std::span<const float> logits,
             float* corrected) {
  std::copy(logits.begin(), logits.end(), corrected);
  bool has_draft = row.draft >= 0;
  for (const ops::SeenToken& seen : row.seen) {
    int32_t n_generated = seen.n_generated;
    if (has_draft && seen.token == row.draft) {
      ++n_generated;
      has_draft = false;
    }
    float& l = corrected[seen.token];
    l = Penalised(l, row, n_generated);
  }
  if (has_draft) {
    corrected[row.draft] = Penalised(corrected[row.draft], row, 1);
  }
  for (const auto& [token, bias] : row.biases) corrected[token] += bias;
}

// The tokens that may be drawn, in order of id; their number.
int64_t Candidates(const ops::SampleRow& row, const float* corrected,
                   int64_t n_vocab, Key* keys) {
  int64_t n = 0;
  for (int64_t id = 0; id < n_vocab; ++id) {
    if (!row.allowed.empty()) {
      const uint64_t word = row.allowed[static_cast<size_t>(id / 64)];
      if (((word >> (id % 64)) & 1u) == 0) continue;
    }
    if (!std::isfinite(corrected[id])) continue;
    keys[n++] = KeyOf(corrected[id], static_cast<int32_t>(id));
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

// The `n_top` likeliest of the finite logits to `top`, best first; their
// number.
int64_t Likeliest(std::span<const float> logits, int64_t n_top, Key* top) {
  int64_t n = 0;
  for (size_t id = 0; id < logits.size(); ++id) {
    if (!std::isfinite(logits[id])) continue;
    const Key key = KeyOf(logits[id], static_cast<int32_t>(id));
    if (n == n_top && key > top[n - 1]) continue;
    if (n < n_top) ++n;
    int64_t place = n - 1;
    for (; place > 0 && key < top[place - 1]; --place) {
      top[place] = top[place - 1];
    }
    top[place] = key;
  }
  return n;
}

void LogProbabilities(const ops::SampleParams& p, int64_t r, int32_t id,
                      Key* top) {
  const int64_t n_top = p.rows[static_cast<size_t>(r)].n_top;
  const std::span<const float> logits(p.logits.row<float>(r),
                                      static_cast<size_t>(p.logits.dim(1)));
  const auto at = [&](int32_t token) {
    return logits[static_cast<size_t>(token)];
  };
  const int64_t n = Likeliest(logits, std::max<int64_t>(n_top, 1), top);
  const double max = at(IdOf(top[0]));
  double sum = 0.0;
  for (const float l : logits) {
    if (std::isfinite(l)) sum += std::exp(l - max);
  }
  const auto logprob = [&](int32_t token) {
    return static_cast<float>(at(token) - max - std::log(sum));
  };
  *p.logprobs.row<float>(r) = logprob(id);
  for (int64_t i = 0; i < n_top; ++i) {
    p.top_ids.row<int32_t>(r)[i] = i < n ? IdOf(top[i]) : -1;
    p.top_logprobs.row<float>(r)[i] = i < n ? logprob(IdOf(top[i])) : 0.0f;
  }
}

}  // namespace

void CpuBackend::Sample(const ops::SampleParams& p) {
  Parallel(p.logits.n_rows(), [&](size_t r, int thread) {
    const auto i = static_cast<int64_t>(r);
    const int64_t n_vocab = p.logits.dim(1);
    const ops::SampleRow& row = p.rows[r];
    Scratch scratch = workspace_.thread(thread);
    float* corrected = scratch.Take<float>(n_vocab);
    Key* keys = scratch.Take<Key>(n_vocab);
    Key* other = scratch.Take<Key>(n_vocab);
    Correct(row, {p.logits.row<float>(i), static_cast<size_t>(n_vocab)},
            corrected);
    const int32_t id = SampleOne(
        row, corrected, keys, Candidates(row, corrected, n_vocab, keys), other);
    p.ids.as<int32_t>()[r] = id;
    if (row.n_top >= 0 && id >= 0) LogProbabilities(p, i, id, keys);
  });
}

}  // namespace belay::cpu
