// SPDX-License-Identifier: Apache-2.0
// From what a request wants its answer to look like to the engine's constraint.
#ifndef BELAY_SERVER_CORE_CONSTRAIN_H_
#define BELAY_SERVER_CORE_CONSTRAIN_H_

#include <memory>

#include "base/error.h"
#include "engine/constraint.h"
#include "server/api/chat_request.h"
#include "server/core/model.h"

namespace belay::server {

// One constraint for one choice; null for free text. `mode` says how the answer
// begins: reasoning is never constrained. Errors: API-012.
StatusOr<std::shared_ptr<engine::TokenConstraint>> MakeConstraint(
    const Format& format, text::ThinkingMode mode, const ModelInfo& info);

}  // namespace belay::server

#endif  // BELAY_SERVER_CORE_CONSTRAIN_H_
