// SPDX-License-Identifier: Apache-2.0
#include "text/grammar/schema/schema.h"

#include "text/grammar/json_rules.h"
#include "text/grammar/schema/compiler.h"

namespace belay::text {
namespace {

// A value with white space before it; nothing follows it.
StatusOr<std::shared_ptr<const Grammar>> BuildDocument(JsonRules& rules,
                                                       GrammarRule value) {
  GrammarBuilder& builder = rules.builder();
  const GrammarRule root = builder.NewRule();
  builder.Call(builder.Call(builder.start(root), rules.Space()), value,
               builder.end(root));
  return builder.Build(root, "#");
}

}  // namespace

StatusOr<std::shared_ptr<const Grammar>> JsonObjectGrammar() {
  GrammarBuilder builder;
  JsonRules rules(builder);
  return BuildDocument(rules, rules.AnyObject());
}

StatusOr<std::shared_ptr<const Grammar>> CompileJsonSchema(
    const JsonValue& schema) {
  BELAY_RETURN_IF_ERROR(SchemaCompiler::CheckSize(schema));
  GrammarBuilder builder;
  JsonRules rules(builder);
  SchemaCompiler compiler(rules, schema);
  const GrammarRule value = compiler.RuleOf({.schema = &schema, .path = "#"});
  BELAY_RETURN_IF_ERROR(compiler.Finish());
  return BuildDocument(rules, value);
}

}  // namespace belay::text
