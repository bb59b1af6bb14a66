// SPDX-License-Identifier: Apache-2.0
// Sample: the largest logit on the device; whatever else a row may ask for on
// the host, which costs a wait and the copy of the logits.
#include <algorithm>

#include "backends/cann/backend.h"
#include "backends/cann/host_sample.h"

namespace belay::cann {
namespace {

// Rows whose logits are copied at once.
constexpr int64_t kCopyBytes = int64_t{32} << 20;
// Logits that are not finite become this, which nothing finite is below.
constexpr double kNever = -3.4e38;
constexpr double kAlmostNever = -3.39e38;

// ids = the first of the largest finite logits, or -1.
void Greedy(Compute& c, const Array& ids, const Array& logits) {
  const Compute::Scope scope(c);
  const int64_t n = logits.dim(0);
  const int64_t vocab = logits.dim(1);
  const Array x = c.Temp(kF32, {n, vocab});
  c.Cast(x, logits);
  c.Threshold(x, kAlmostNever, kNever);  // -inf and NaN
  c.Neg(x, x);
  c.Threshold(x, kAlmostNever, -kNever);  // inf
  c.Neg(x, x);
  const Array best = c.Temp(kF32, {n, 1});
  c.Max(best, x, 1);
  c.ArgMax(ids, x, 1);
  const Array there = c.Temp(kBool, {n});
  c.Greater(there, best.Reshaped({n}), kAlmostNever);
  const Array factor = c.Temp(kI32, {n});
  c.Cast(factor, there);
  c.Offset(ids, 1);
  c.Times(ids, factor);
  c.Offset(ids, -1);
}

}  // namespace

void CannBackend::Sample(const ops::SampleParams& p) {
  if (!Enter("Sample")) return;
  const Array logits = ArrayOf(p.logits);
  const int64_t n = logits.dim(0);
  const int64_t vocab = logits.dim(1);
  const int64_t chunk = std::clamp<int64_t>(kCopyBytes / (4 * vocab), 1, n);
  if (std::all_of(p.rows.begin(), p.rows.end(), IsPlainGreedy)) {
    for (int64_t first = 0; first < n; first += chunk) {
      const int64_t rows = std::min(chunk, n - first);
      Greedy(c_, ArrayOf(p.ids).Part(0, first, rows),
             logits.Part(0, first, rows));
    }
    return;
  }
  host_logits_.resize(static_cast<size_t>(n * vocab));
  CopyOut(host_logits_.data(), p.logits);
  if (!launcher_.ok()) return;
  const Status done = runtime_->Synchronize(options_.step_timeout_ms);
  if (!done.ok()) return launcher_.Fail(done);
  copies_.Deliver();
  const auto put = [&](const TensorView& to, int64_t row, const void* from,
                       size_t bytes) {
    if (bytes == 0 || !launcher_.ok()) return;
    const Status copied = copies_.In(to.row<std::byte>(row), from, bytes);
    if (!copied.ok()) launcher_.Fail(copied);
  };
  for (int64_t r = 0; r < n; ++r) {
    const HostSampled sampled =
        SampleOnHost(p.rows[static_cast<size_t>(r)],
                     std::span(host_logits_)
                         .subspan(static_cast<size_t>(r * vocab),
                                  static_cast<size_t>(vocab)));
    put(p.ids, r, &sampled.id, 4);
    if (p.rows[static_cast<size_t>(r)].n_top < 0 || sampled.id < 0) continue;
    put(p.logprobs, r, &sampled.logprob, 4);
    put(p.top_ids, r, sampled.top_ids.data(), 4 * sampled.top_ids.size());
    put(p.top_logprobs, r, sampled.top_logprobs.data(),
        4 * sampled.top_logprobs.size());
  }
}

}  // namespace belay::cann
