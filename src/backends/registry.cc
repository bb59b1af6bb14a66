// SPDX-License-Identifier: Apache-2.0
#include "backends/registry.h"

#include "backends/cann/cann.h"
#include "backends/cpu/cpu.h"
#include "backends/ref/ref.h"
#include "base/error_ids.h"

namespace belay::backends {

std::vector<std::string_view> Names() { return {"cpu", "ref", "cann"}; }

StatusOr<std::unique_ptr<ops::Backend>> Create(std::string_view name,
                                               const ops::Numerics& numerics,
                                               ThreadPool* pool,
                                               const Options& options) {
  if (name == "cpu") {
    return cpu::Create(
        numerics, pool,
        {.simd_target = options.simd_target, .topology = options.topology});
  }
  if (name == "ref" || name == "cann") {
    if (!options.simd_target.empty()) {
      return MakeError(kBackUnsupported, {.where = "--simd-target",
                                          .what = "",
                                          .expected = "--backend cpu",
                                          .got = std::string(name)});
    }
    if (name == "ref") return ref::Create(numerics);
    return cann::Create(numerics,
                        {.variable = options.variable,
                         .device = options.device,
                         .step_timeout_ms = options.device_timeout_ms});
  }
  std::string known;
  for (const std::string_view n : Names()) {
    known += (known.empty() ? "" : " | ") + std::string(n);
  }
  return MakeError(kArgUnknownBackend, {.where = "--backend",
                                        .what = "",
                                        .expected = known,
                                        .got = std::string(name)});
}

}  // namespace belay::backends
