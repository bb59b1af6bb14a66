// SPDX-License-Identifier: Apache-2.0
// CompileToolCalls: the markup of RenderToolCalls (text/chat/templates.h) as a
// grammar.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/error_ids.h"
#include "text/chat/tokens.h"
#include "text/grammar/json_rules.h"
#include "text/grammar/schema/compiler.h"
#include "text/grammar/schema/schema.h"

namespace belay::text {
namespace {

constexpr int kMaxCalls = 16;  // in parallel

// The text of a tag with the marker in its token's form: "<｜DSML｜invoke".
std::string Tag(std::string_view spelled) {
  std::string out(spelled);
  const size_t at = out.find(kDsml);
  const char marker[] = {static_cast<char>(kMarkerByte), 0};
  if (at != std::string::npos) {
    out.replace(at, kDsml.size(), std::string_view(marker, 2));
  }
  return out;
}

// A name that an attribute of the markup can hold.
bool IsPlainName(std::string_view name) {
  return !name.empty() &&
         name.find_first_of("\"<>\n\r") == std::string_view::npos;
}

class ToolCallCompiler {
 public:
  StatusOr<std::shared_ptr<const Grammar>> Run(
      std::span<const JsonValue> functions, const ToolCallOptions& options) {
    const GrammarRule invoke = builder_.NewRule();
    bool found = false;
    for (const JsonValue& function : functions) {
      const JsonValue* name = function.Find("name");
      if (name == nullptr || !name->is_string() || !IsPlainName(name->text)) {
        return BadTool("name", "a name without quotes and angle brackets");
      }
      if (!options.name.empty() && name->text != options.name) continue;
      found = true;
      BELAY_RETURN_IF_ERROR(AddFunction(function, name->text, invoke));
    }
    if (!found) return BadTool("tool_choice", "a tool of the request");
    return builder_.Build(Block(invoke, options.parallel), "tools");
  }

 private:
  static Status BadTool(std::string where, std::string expected) {
    return MakeError(kChatBadTool, {.where = std::move(where),
                                    .what = "",
                                    .expected = std::move(expected),
                                    .got = ""});
  }

  GrammarRule Block(GrammarRule invoke, bool parallel) {
    const GrammarRule root = builder_.NewRule();
    const GrammarNode close = builder_.NewNode();
    GrammarNode node = builder_.Literal(builder_.start(root),
                                        "\n\n" + Tag(kCallsBegin) + ">\n");
    for (int i = 0; i < (parallel ? kMaxCalls : 1); ++i) {
      if (i > 0) node = builder_.Literal(node, "\n");
      node = builder_.Call(node, invoke);
      builder_.Empty(node, close);
    }
    builder_.Empty(builder_.Literal(close, "\n" + Tag(kCallsEnd) + ">"),
                   builder_.end(root));
    return root;
  }

  Status AddFunction(const JsonValue& function, const std::string& name,
                     GrammarRule invoke) {
    const GrammarNode head =
        builder_.Literal(builder_.start(invoke),
                         Tag(kInvokeBegin) + " name=\"" + name + "\">\n");
    const GrammarNode tail = builder_.NewNode();
    builder_.Empty(builder_.Literal(tail, "\n" + Tag(kInvokeEnd) + ">"),
                   builder_.end(invoke));
    const JsonValue* schema = function.Find("parameters");
    const JsonValue* strict = function.Find("strict");
    const bool is_strict = strict != nullptr && strict->Truthy();
    Status status;
    if (schema != nullptr && !schema->is_null()) {
      const GrammarRule parameters = builder_.NewRule();
      status = AddParameters(*schema, parameters);
      if (status.ok()) {
        builder_.Call(head, parameters, tail);
        return status;
      }
      // What was added to `parameters` is not reached.
      if (is_strict) return WithContext(status, name);
    }
    builder_.Call(head, AnyParameters(), tail);
    return absl::OkStatus();
  }

  // <parameter name="NAME" string=", then either form.
  GrammarNode ParameterHead(GrammarNode from) {
    return builder_.Literal(from, Tag(kParameterBegin) + " name=\"");
  }
  SchemaCompiler::TwoForms ParameterValue(GrammarNode name_end,
                                          GrammarNode to) {
    SchemaCompiler::TwoForms forms;
    const GrammarNode which = builder_.Literal(name_end, "\" string=\"");
    forms.plain_from = builder_.Literal(which, "true\">");
    forms.json_from = builder_.Literal(which, "false\">");
    forms.plain_to = builder_.NewNode();
    forms.json_to = forms.plain_to;
    const GrammarNode end =
        builder_.Literal(forms.plain_to, Tag(kParameterEnd));
    builder_.Bytes(end, '>', '>', to);
    return forms;
  }

  // Any text; a bar only where no marker is spelled.
  void AddPlainText(GrammarNode from, GrammarNode to) {
    const GrammarNode text = builder_.NewNode();
    const GrammarNode bar = builder_.NewNode();
    builder_.Empty(from, text);
    const CodePointSet plain = PlainCharacters();
    AddCharacters(builder_, text, plain, TextForm::kPlain, text);
    AddCharacters(builder_, text, {{kMarkerBar, kMarkerBar}}, TextForm::kPlain,
                  bar);
    CodePointSet not_d = Complement(plain);
    not_d.push_back({'D', 'D'});
    AddCharacters(builder_, bar, Complement(Normalize(std::move(not_d))),
                  TextForm::kPlain, text);
    AddCharacters(builder_, bar, {{kMarkerBar, kMarkerBar}}, TextForm::kPlain,
                  bar);
    builder_.Empty(text, to);
    builder_.Empty(bar, to);
  }

  GrammarRule AnyParameters() {
    const GrammarRule rule = builder_.NewRule();
    const GrammarRule one = builder_.NewRule();
    const GrammarNode name = ParameterHead(builder_.start(one));
    CodePointSet letters = Normalize({{'A', 'Z'},
                                      {'a', 'z'},
                                      {'0', '9'},
                                      {'_', '_'},
                                      {'-', '-'},
                                      {'.', '.'}});
    const GrammarNode more = builder_.NewNode();
    AddCharacters(builder_, name, letters, TextForm::kPlain, more);
    AddCharacters(builder_, more, letters, TextForm::kPlain, more);
    const auto forms = ParameterValue(more, builder_.end(one));
    AddPlainText(forms.plain_from, forms.plain_to);
    rules_.AddOneOf(forms.json_from, {"true", "false", "null"}, forms.json_to);
    for (const GrammarRule value :
         {rules_.AnyNumber(false), rules_.AnyObject(), rules_.AnyArray()}) {
      builder_.Call(forms.json_from, value, forms.json_to);
    }
    const GrammarNode node = builder_.Call(builder_.start(rule), one);
    builder_.Empty(builder_.start(rule), builder_.end(rule));
    builder_.Empty(node, builder_.end(rule));
    builder_.Call(builder_.Literal(node, "\n"), one, node);
    return rule;
  }

  Status AddParameters(const JsonValue& schema, GrammarRule rule) {
    BELAY_RETURN_IF_ERROR(SchemaCompiler::CheckSize(schema));
    SchemaCompiler compiler(rules_, schema);
    SchemaPlace place = {.schema = &schema, .path = "#"};
    for (int i = 0;; ++i) {
      BELAY_ASSIGN_OR_RETURN(const SchemaShape shape,
                             compiler.reader().Read(place));
      if (shape.kind == SchemaShape::Kind::kSame && i < 32) {
        place = shape.parts[0];
        continue;
      }
      if (shape.kind != SchemaShape::Kind::kTyped ||
          (shape.types & kObject) == 0) {
        return SchemaReader::WrongValue(place, "type", "object");
      }
      break;
    }
    BELAY_ASSIGN_OR_RETURN(const auto members, compiler.MembersOf(place));
    GrammarNode none = builder_.start(rule);
    GrammarNode some = builder_.NewNode();
    for (const auto& member : members.list) {
      BELAY_ASSIGN_OR_RETURN(const GrammarRule one,
                             ParameterRule(compiler, member));
      const GrammarNode next_some = builder_.NewNode();
      const GrammarNode next_none = builder_.NewNode();
      builder_.Call(none, one, next_some);
      builder_.Call(builder_.Literal(some, "\n"), one, next_some);
      if (!member.required) {
        builder_.Empty(none, next_none);
        builder_.Empty(some, next_some);
      }
      none = next_none;
      some = next_some;
    }
    builder_.Empty(none, builder_.end(rule));
    builder_.Empty(some, builder_.end(rule));
    return compiler.Finish();
  }

  StatusOr<GrammarRule> ParameterRule(SchemaCompiler& compiler,
                                      const SchemaCompiler::Member& member) {
    if (!IsPlainName(member.name)) {
      return BadTool(member.value.path,
                     "a name without quotes and angle brackets");
    }
    const GrammarRule rule = builder_.NewRule();
    const GrammarNode name =
        builder_.Literal(ParameterHead(builder_.start(rule)), member.name);
    const auto forms = ParameterValue(name, builder_.end(rule));
    BELAY_ASSIGN_OR_RETURN(const SchemaShape shape,
                           compiler.reader().Read(member.value));
    const JsonValue& schema = *member.value.schema;
    const bool is_any_text =
        shape.kind == SchemaShape::Kind::kTyped && shape.types == kString &&
        schema.Find("pattern") == nullptr && schema.Find("format") == nullptr &&
        schema.Find("minLength") == nullptr &&
        schema.Find("maxLength") == nullptr;
    if (is_any_text) {
      AddPlainText(forms.plain_from, forms.plain_to);
    } else {
      BELAY_RETURN_IF_ERROR(compiler.AddInTwoForms(member.value, forms));
    }
    return rule;
  }

  GrammarBuilder builder_;
  JsonRules rules_{builder_};
};

}  // namespace

StatusOr<std::shared_ptr<const Grammar>> CompileToolCalls(
    std::span<const JsonValue> functions, const ToolCallOptions& options) {
  return ToolCallCompiler().Run(functions, options);
}

}  // namespace belay::text
