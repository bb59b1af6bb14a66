// SPDX-License-Identifier: Apache-2.0
#include "engine/request.h"

#include <cmath>
#include <string>
#include <utility>

#include "base/error_ids.h"

namespace belay::engine {

Status CheckSampling(const SamplingParams& s) {
  const auto check = [](bool ok, std::string name, std::string expected,
                        float got) {
    if (ok) return absl::OkStatus();
    return MakeError(kArgBadSampling, {.where = std::move(name),
                                       .what = "",
                                       .expected = std::move(expected),
                                       .got = std::to_string(got)});
  };
  BELAY_RETURN_IF_ERROR(
      check(std::isfinite(s.temperature) && s.temperature >= 0, "temperature",
            ">= 0", s.temperature));
  BELAY_RETURN_IF_ERROR(
      check(s.top_k >= 0, "top-k", ">= 0", static_cast<float>(s.top_k)));
  BELAY_RETURN_IF_ERROR(
      check(s.top_p > 0 && s.top_p <= 1, "top-p", "in (0, 1]", s.top_p));
  BELAY_RETURN_IF_ERROR(
      check(s.min_p >= 0 && s.min_p <= 1, "min-p", "in [0, 1]", s.min_p));
  BELAY_RETURN_IF_ERROR(check(std::abs(s.presence_penalty) <= 2,
                              "presence penalty", "in [-2, 2]",
                              s.presence_penalty));
  BELAY_RETURN_IF_ERROR(check(std::abs(s.frequency_penalty) <= 2,
                              "frequency penalty", "in [-2, 2]",
                              s.frequency_penalty));
  BELAY_RETURN_IF_ERROR(
      check(std::isfinite(s.repetition_penalty) && s.repetition_penalty > 0,
            "repetition penalty", "> 0", s.repetition_penalty));
  for (const auto& [token, bias] : s.logit_bias) {
    BELAY_RETURN_IF_ERROR(check(std::abs(bias) <= 100,
                                "logit bias of " + std::to_string(token),
                                "in [-100, 100]", bias));
  }
  return absl::OkStatus();
}

}  // namespace belay::engine
