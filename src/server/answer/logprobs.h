// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_SERVER_ANSWER_LOGPROBS_H_
#define BELAY_SERVER_ANSWER_LOGPROBS_H_

#include <vector>

#include "server/answer/choice.h"
#include "server/api/json_writer.h"
#include "text/tokenizer.h"

namespace belay::server {

// The value of "logprobs" in a chat choice: {"content": [{"token", "logprob",
// "bytes", "top_logprobs"}], "refusal": null}, with "reasoning_content" beside
// it for the tokens of the reasoning, as DeepSeek's API has it.
void WriteChatLogprobs(const std::vector<TokenInfo>& infos,
                       const text::Tokenizer& tokenizer, JsonWriter& json);

// That of a plain completion: {"tokens", "token_logprobs", "top_logprobs",
// "text_offset"}. Offsets count bytes of the answer.
void WriteCompletionLogprobs(const std::vector<TokenInfo>& infos,
                             const text::Tokenizer& tokenizer,
                             JsonWriter& json);

}  // namespace belay::server

#endif  // BELAY_SERVER_ANSWER_LOGPROBS_H_
