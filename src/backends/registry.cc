// SPDX-License-Identifier: Apache-2.0
#include "backends/registry.h"

#include "backends/cpu/cpu.h"
#include "backends/ref/ref.h"
#include "base/error_ids.h"

namespace belay::backends {

std::vector<std::string_view> Names() { return {"cpu", "ref"}; }

StatusOr<std::unique_ptr<ops::Backend>> Create(std::string_view name,
                                               const ops::Numerics& numerics,
                                               ThreadPool* pool,
                                               const Options& options) {
  if (name == "cpu") {
    return cpu::Create(
        numerics, pool,
        {.simd_target = options.simd_target, .topology = options.topology});
  }
  if (name == "ref") {
    if (options.simd_target.empty()) return ref::Create(numerics);
    return MakeError(kBackUnsupported, {.where = "--simd-target",
                                        .what = "scalar code alone",
                                        .expected = "--backend cpu",
                                        .got = std::string(name)});
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
