// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_CAPI_SESSION_H_
#define BELAY_CAPI_SESSION_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "capi/belay.h"
#include "capi/model.h"
#include "text/chat/request.h"

namespace belay::capi {

class Session {
 public:
  explicit Session(std::shared_ptr<Model> model) : model_(std::move(model)) {}

  // Errors: CAPI-001 (the session has messages), TOK-*.
  Status Feed(std::string_view text);
  // Errors: CAPI-001 (it has plain text), CHAT-002, CHAT-003.
  Status AddMessage(std::string_view role, std::string_view text);

  struct Sink {
    belay_text_fn on_text = nullptr;
    void* user = nullptr;
  };
  StatusOr<belay_result> Generate(const belay_generate_options& options,
                                  Sink sink);

  void Cancel() { cancelled_ = true; }
  int64_t n_tokens() const { return static_cast<int64_t>(tokens_.size()); }

 private:
  struct Answer;

  StatusOr<std::vector<int32_t>> Prompt(
      const belay_generate_options& options) const;
  Status Run(engine::Request request, Answer& answer);

  std::shared_ptr<Model> model_;
  std::vector<int32_t> tokens_;  // plain text, or the last prompt and answer
  std::vector<text::ChatMessage> messages_;
  std::atomic<bool> cancelled_{false};
};

}  // namespace belay::capi

#endif  // BELAY_CAPI_SESSION_H_
