// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_TOOLKIT_LOADTEST_TEXT_CHECK_H_
#define BELAY_TOOLKIT_LOADTEST_TEXT_CHECK_H_

#include <cstdint>
#include <string_view>

#include "toolkit/loadtest/plan.h"

namespace belay::loadtest {

// Looks at the text of a finished answer of `n_tokens` tokens. Only what no
// sound model writes counts: at least 160 bytes at the end that are one unit of
// up to 200 bytes, eight times at least; U+FFFD and control characters; markers
// of the chat encoding; no text at all.
TextFault CheckText(std::string_view text, int64_t n_tokens);

}  // namespace belay::loadtest

#endif  // BELAY_TOOLKIT_LOADTEST_TEXT_CHECK_H_
