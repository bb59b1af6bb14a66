// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_TEXT_GRAMMAR_SCHEMA_COMPILER_H_
#define BELAY_TEXT_GRAMMAR_SCHEMA_COMPILER_H_

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/error.h"
#include "text/grammar/json_rules.h"
#include "text/grammar/schema/shape.h"

namespace belay::text {

// Schemas of one document into rules of one builder.
class SchemaCompiler {
 public:
  // Both are borrowed.
  SchemaCompiler(JsonRules& rules, const JsonValue& document)
      : rules_(rules), reader_(document) {}

  // GRAM-005 for a document so large that looking names up in it would take
  // seconds. To be called first.
  static Status CheckSize(const JsonValue& document);

  // The rule of a schema; its inside comes with Finish(), so that recursion of
  // a schema is no recursion here.
  GrammarRule RuleOf(const SchemaPlace& place);

  // Fills all rules that were asked for. Errors: those of CompileJsonSchema.
  Status Finish();

  // The values of a schema in two forms, as parameters of tool calls have
  // them: strings plain and all others in JSON.
  struct TwoForms {
    GrammarNode plain_from = 0;
    GrammarNode plain_to = 0;
    GrammarNode json_from = 0;
    GrammarNode json_to = 0;
  };
  Status AddInTwoForms(const SchemaPlace& place, const TwoForms& forms,
                       int depth = 0);

  // The members of an object schema, in order; for a schema that is no object
  // schema, GRAM-001.
  struct Member {
    std::string name;
    SchemaPlace value;
    bool required = false;
  };
  struct Members {
    std::vector<Member> list;
    // The schema of all others; none when there may be none.
    std::optional<SchemaPlace> additional;
  };
  StatusOr<Members> MembersOf(const SchemaPlace& place) const;

  const SchemaReader& reader() const { return reader_; }

 private:
  struct Ends {
    GrammarNode from = 0;
    GrammarNode to = 0;
  };

  Status Fill(const SchemaPlace& place, GrammarRule rule);
  // The values of these types of a typed schema.
  Status AddTyped(const SchemaPlace& place, TypeSet types, Ends ends);
  Status AddString(const SchemaPlace& place, TextForm form, Ends ends);
  StatusOr<GrammarRule> NumberRule(const SchemaPlace& place, bool integer);
  StatusOr<GrammarRule> ArrayRule(const SchemaPlace& place);
  StatusOr<GrammarRule> ObjectRule(const SchemaPlace& place);

  JsonRules& rules_;
  SchemaReader reader_;
  std::unordered_map<const JsonValue*, GrammarRule> known_;
  std::vector<std::pair<SchemaPlace, GrammarRule>> todo_;
};

}  // namespace belay::text

#endif  // BELAY_TEXT_GRAMMAR_SCHEMA_COMPILER_H_
