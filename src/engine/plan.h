// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_ENGINE_PLAN_H_
#define BELAY_ENGINE_PLAN_H_

#include <memory>

#include "base/error.h"
#include "engine/engine.h"
#include "engine/prefix/spill.h"
#include "spec/layout.h"

namespace belay::engine {

// The memory that an engine with `options` needs on one rank. Errors: ARG-001,
// ENG-001 (context beyond the model's), ENG-003 (the budget does not hold),
// ENG-005.
StatusOr<spec::Layout> PlanMemory(const EngineParts& parts,
                                  const EngineOptions& options);

// The spill folder for what `layout` holds; null when none is asked for, or no
// prefix is kept anyway. Errors: SYS-002.
StatusOr<std::unique_ptr<PrefixSpill>> OpenSpill(const EngineOptions& options,
                                                 const spec::Layout& layout);

}  // namespace belay::engine

#endif  // BELAY_ENGINE_PLAN_H_
