// SPDX-License-Identifier: Apache-2.0
#include "server/core/constrain.h"

#include "base/error_ids.h"

namespace belay::server {

StatusOr<std::shared_ptr<engine::TokenConstraint>> MakeConstraint(
    const Format& format, text::ThinkingMode /*mode*/,
    const ModelInfo& /*info*/) {
  if (format.kind == Format::Kind::kFree) return nullptr;
  return MakeError(kApiUnsupported, {.where = format.where,
                                     .what = "constrained decoding",
                                     .expected = "",
                                     .got = ""});
}

}  // namespace belay::server
