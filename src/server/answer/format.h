// SPDX-License-Identifier: Apache-2.0
// How an answer looks on the wire: chat completions, plain completions, /infer.
#ifndef BELAY_SERVER_ANSWER_FORMAT_H_
#define BELAY_SERVER_ANSWER_FORMAT_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "server/answer/choice.h"
#include "server/api/generation.h"

namespace belay::server {

// What the whole answer took.
struct Usage {
  int64_t n_prompt_tokens = 0;
  int64_t n_cached_tokens = 0;
  int64_t n_completion_tokens = 0;
  int64_t n_reasoning_tokens = 0;
  double ttft_ms = 0;
  double latency_ms = 0;
};

// What all documents of one answer say.
struct AnswerHead {
  std::string id;  // "chatcmpl-..."
  std::string model;
  int64_t created_unix_s = 0;
  bool include_usage = false;
  std::string notes_json;  // the value of "belay_notes", or ""
  std::shared_ptr<const text::Tokenizer> tokenizer;  // for log probabilities
  bool logprobs = false;
};

// A finished choice and the log probabilities of its tokens.
struct WholeChoice {
  const Choice* choice = nullptr;
  std::vector<TokenInfo> infos;
};

// Appends server-sent events to `sse`, or gives the whole document.
class AnswerFormat {
 public:
  virtual ~AnswerFormat() = default;

  // Before the first piece of a choice.
  virtual void Begin(int choice, std::string* sse) = 0;
  virtual void Add(int choice, const std::vector<Piece>& pieces,
                   const std::vector<TokenInfo>& infos, std::string* sse) = 0;
  virtual void End(int choice, const Choice& done, std::string* sse) = 0;
  // After all choices: the usage, when it was asked for.
  virtual void Last(const Usage& usage, std::string* sse) = 0;

  virtual std::string Whole(const std::vector<WholeChoice>& choices,
                            const Usage& usage) = 0;
};

std::unique_ptr<AnswerFormat> MakeChatFormat(AnswerHead head);

// `echoes`: what each choice begins with; "" = nothing.
std::unique_ptr<AnswerFormat> MakeCompletionFormat(
    AnswerHead head, std::vector<std::string> echoes);

// {"text", "tokens", "ttft_ms", "latency_ms"}; never a stream.
std::unique_ptr<AnswerFormat> MakeInferFormat();

}  // namespace belay::server

#endif  // BELAY_SERVER_ANSWER_FORMAT_H_
