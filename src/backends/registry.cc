// SPDX-License-Identifier: Apache-2.0
#include "backends/registry.h"

#include "backends/cpu/cpu.h"
#include "backends/ref/ref.h"
#include "base/error_ids.h"

namespace belay::backends {

std::vector<std::string_view> Names() { return {"cpu", "ref"}; }

StatusOr<std::unique_ptr<ops::Backend>> Create(std::string_view name,
                                               const ops::Numerics& numerics,
                                               ThreadPool* pool) {
  if (name == "cpu") return cpu::Create(numerics, pool);
  if (name == "ref") return ref::Create(numerics);
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
