// SPDX-License-Identifier: Apache-2.0
// JSON Schema (draft 2020-12) as grammars: what structured output is held to.
//
// docs/structured-output.md has the table of keywords. The rule behind it: a
// text of the grammar is valid for the schema, always; a keyword that cannot
// be kept is refused by name, never ignored. The grammar may be narrower than
// the schema (members come in the order of `properties`).
#ifndef BELAY_TEXT_GRAMMAR_SCHEMA_SCHEMA_H_
#define BELAY_TEXT_GRAMMAR_SCHEMA_SCHEMA_H_

#include <memory>
#include <span>
#include <string>

#include "base/error.h"
#include "text/chat/json.h"
#include "text/grammar/grammar.h"

namespace belay::text {

// The texts of response_format {"type": "json_object"}: any object.
StatusOr<std::shared_ptr<const Grammar>> JsonObjectGrammar();

// The texts that are valid for `schema`. Errors, with a JSON pointer as their
// place: GRAM-001 (a keyword's value is not what it must be), GRAM-002 (a
// keyword that is not supported), GRAM-003 (a pattern or format), GRAM-004
// (nothing is valid), GRAM-005 (too large), GRAM-006 ($ref that leads
// nowhere), GRAM-007 (oneOf whose parts may both hold).
StatusOr<std::shared_ptr<const Grammar>> CompileJsonSchema(
    const JsonValue& schema);

struct ToolCallOptions {
  std::string name;      // the one that must be called; "" = any
  bool parallel = true;  // several calls
};

// The text of tool calls behind the end of the reasoning, or of nothing, in
// DeepSeek's markup (docs/chat.md), for tool_choice "required" or a name.
// `functions` are OpenAI's "function" objects. Marker 0 is "｜DSML｜". A
// function without "strict": true whose schema is refused may have any
// parameters; with it the error is returned.
// Errors: CHAT-006 (a function without a name, or none of that name), and
// those of CompileJsonSchema.
StatusOr<std::shared_ptr<const Grammar>> CompileToolCalls(
    std::span<const JsonValue> functions, const ToolCallOptions& options);

}  // namespace belay::text

#endif  // BELAY_TEXT_GRAMMAR_SCHEMA_SCHEMA_H_
