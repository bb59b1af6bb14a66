// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_APPS_BELAY_MODEL_TOKEN_ARGS_H_
#define BELAY_APPS_BELAY_MODEL_TOKEN_ARGS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"

namespace belay::apps {

// ARG-004: nothing was given at `where`.
Status EmptyPrompt(const std::string& where);

// "5,7,9" -> ids. ARG-005 names the first piece that is no id; ARG-004 for "".
StatusOr<std::vector<int32_t>> ParseTokens(const std::string& list,
                                           const std::string& option);

// A file that holds a JSON array of ids. SYS-001, ARG-005, ARG-004.
StatusOr<std::vector<int32_t>> ReadTokensFile(const std::string& path);

// Whichever of the two was given; ARG-001 for both or none.
StatusOr<std::vector<int32_t>> TokensFrom(const std::string& list,
                                          const std::string& path);

}  // namespace belay::apps

#endif  // BELAY_APPS_BELAY_MODEL_TOKEN_ARGS_H_
