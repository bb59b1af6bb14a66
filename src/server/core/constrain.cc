// SPDX-License-Identifier: Apache-2.0
#include "server/core/constrain.h"

#include <utility>

#include "base/error_ids.h"
#include "server/core/grammar_constraint.h"
#include "text/chat/tokens.h"
#include "text/grammar/schema/schema.h"

namespace belay::server {
namespace {

using GrammarOr = StatusOr<std::shared_ptr<const text::Grammar>>;

GrammarOr Compile(const Format &format) {
  switch (format.kind) {
    case Format::Kind::kFree:
      break;
    case Format::Kind::kJsonObject:
      return text::JsonObjectGrammar();
    case Format::Kind::kJsonSchema:
      return text::CompileJsonSchema(format.schema);
    case Format::Kind::kToolCall:
      return text::CompileToolCalls(
          format.tools, {.name = format.function, .parallel = format.parallel});
  }
  return nullptr;
}

// Equal for formats with equal grammars.
std::string KeyOf(const Format &format) {
  std::string key = std::to_string(static_cast<int>(format.kind)) + "\n" +
                    format.function + "\n" + (format.parallel ? "1\n" : "0\n");
  if (format.kind == Format::Kind::kJsonSchema) {
    key += text::DumpJson(format.schema);
  }
  for (const text::JsonValue &tool : format.tools) {
    key += text::DumpJson(tool) + "\n";
  }
  return key;
}

}  // namespace

StatusOr<std::shared_ptr<engine::TokenConstraint>> MakeConstraint(
    const Format &format, text::ThinkingMode mode, const ModelInfo &info) {
  if (format.kind == Format::Kind::kFree) return nullptr;
  GrammarConstraint::Tokens tokens = {.eos_ids = info.eos_ids,
                                      .reasoning_end = std::nullopt};
  if (mode == text::ThinkingMode::kThinking) {
    tokens.reasoning_end = info.tokenizer->IdOf(text::kThinkEnd);
    if (!tokens.reasoning_end) {
      return MakeError(kApiUnsupported,
                       {.where = format.where,
                        .what = "thinking",
                        .expected = std::string(text::kThinkEnd),
                        .got = "no such token"});
    }
  }
  auto masks = info.grammars->Find(*info.tokenizer, KeyOf(format),
                                   [&] { return Compile(format); });
  if (!masks.ok()) return WithContext(masks.status(), format.where);
  return std::make_shared<GrammarConstraint>(*std::move(masks),
                                             std::move(tokens));
}

}  // namespace belay::server
