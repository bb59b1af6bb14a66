// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_APPS_BELAY_CHECKPOINT_INSPECT_GGUF_H_
#define BELAY_APPS_BELAY_CHECKPOINT_INSPECT_GGUF_H_

#include <string>

#include "apps/belay/shell/context.h"
#include "base/error.h"

namespace belay::apps {

// belay inspect of a GGUF file: config, tensors and bytes by type, tokenizer,
// what is not used. Errors as checkpoint::gguf::GgufModel::Open.
StatusOr<ExitCode> InspectGguf(const std::string& path, bool strict,
                               const Context& context);

}  // namespace belay::apps

#endif  // BELAY_APPS_BELAY_CHECKPOINT_INSPECT_GGUF_H_
