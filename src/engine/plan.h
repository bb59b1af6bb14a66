// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_ENGINE_PLAN_H_
#define BELAY_ENGINE_PLAN_H_

#include "base/error.h"
#include "engine/engine.h"
#include "spec/layout.h"

namespace belay::engine {

// The memory that an engine with `options` needs on one rank. Errors: ARG-001,
// ENG-001 (context beyond the model's), ENG-003 (the budget does not hold),
// ENG-005.
StatusOr<spec::Layout> PlanMemory(const EngineParts& parts,
                                  const EngineOptions& options);

}  // namespace belay::engine

#endif  // BELAY_ENGINE_PLAN_H_
