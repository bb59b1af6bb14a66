// SPDX-License-Identifier: Apache-2.0
// belay detokenize: token ids to text.
#include <CLI/CLI.hpp>
#include <charconv>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "apps/belay/commands.h"
#include "apps/belay/shell/lines.h"
#include "base/error_ids.h"
#include "text/tokenizer.h"

namespace belay::apps {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;
using text::Tokenizer;

struct DetokenizeArgs {
  std::string tokenizer;
  std::vector<std::string> ids;
  bool skip_special = false;
  bool jsonl = false;
};

Status UnknownId(const std::string& id) {
  return MakeError(kTokUnknownId,
                   {.where = "", .what = "", .expected = "", .got = id});
}

// Appends the ids of "1 2 3" or "1,2,3".
Status ParseIds(std::string_view text, std::vector<int32_t>* ids) {
  constexpr std::string_view kSeparators = " \t\r\n,";
  while (true) {
    const size_t start = text.find_first_not_of(kSeparators);
    if (start == std::string_view::npos) return absl::OkStatus();
    text.remove_prefix(start);
    const std::string_view word =
        text.substr(0, text.find_first_of(kSeparators));
    int32_t id = 0;
    const auto [end, error] =
        std::from_chars(word.data(), word.data() + word.size(), id);
    if (error != std::errc() || end != word.data() + word.size()) {
      return MakeError(kArgBadTokens, {.where = "belay detokenize",
                                       .what = "",
                                       .expected = "ids such as 1 2 3",
                                       .got = std::string(word)});
    }
    ids->push_back(id);
    text.remove_prefix(word.size());
  }
}

StatusOr<std::string> Decode(const Tokenizer& tokenizer,
                             const std::vector<int32_t>& ids,
                             const DetokenizeArgs& args) {
  for (const int32_t id : ids) {
    if (!tokenizer.Contains(id)) return UnknownId(std::to_string(id));
  }
  return tokenizer.Decode(ids, {.skip_special = args.skip_special});
}

// The text is written as it is, with no newline of our own: a round trip gives
// the same bytes.
StatusOr<ExitCode> DetokenizeOne(const Tokenizer& tokenizer,
                                 const DetokenizeArgs& args,
                                 const Context& context) {
  std::vector<int32_t> ids;
  for (const std::string& word : args.ids) {
    BELAY_RETURN_IF_ERROR(
        ParseIds(word == "-" ? ReadInput(context) : word, &ids));
  }
  BELAY_ASSIGN_OR_RETURN(const std::string text, Decode(tokenizer, ids, args));
  if (context.json) {
    PrintJson(context, {{"text", text}});
  } else {
    context.out << text;
  }
  return ExitCode::kOk;
}

// dump() calls itself for each level of nesting: never for a list.
std::string KindOrValue(const json& value) {
  return value.is_structured() ? value.type_name() : value.dump();
}

StatusOr<ordered_json> DetokenizeLine(const Tokenizer& tokenizer,
                                      const DetokenizeArgs& args,
                                      const json& request) {
  const auto list = request.find("ids");
  if (list == request.end() || !list->is_array()) {
    return MakeError(
        kArgBadTokens,
        {.where = "ids",
         .what = "",
         .expected = "a list of ids",
         .got = list == request.end() ? "nothing" : list->type_name()});
  }
  std::vector<int32_t> ids;
  for (const json& id : *list) {
    if (!id.is_number_integer()) {
      return MakeError(kArgBadTokens, {.where = "ids",
                                       .what = "",
                                       .expected = "whole numbers",
                                       .got = KindOrValue(id)});
    }
    const auto value = id.get<int64_t>();
    if (value != static_cast<int32_t>(value)) return UnknownId(id.dump());
    ids.push_back(static_cast<int32_t>(value));
  }
  BELAY_ASSIGN_OR_RETURN(const std::string text, Decode(tokenizer, ids, args));
  return ordered_json{{"text", text}};
}

StatusOr<ExitCode> Detokenize(const DetokenizeArgs& args,
                              const Context& context) {
  if (args.ids.empty() != args.jsonl) {
    return MakeError(kArgUsage, {.where = "belay detokenize",
                                 .what = context.T("either ids or --jsonl",
                                                   "请给出 id 或 --jsonl"),
                                 .expected = "",
                                 .got = ""});
  }
  BELAY_ASSIGN_OR_RETURN(const std::shared_ptr<const Tokenizer> tokenizer,
                         Tokenizer::Open(args.tokenizer));
  if (!args.jsonl) return DetokenizeOne(*tokenizer, args, context);
  return RunJsonLines(context, [&](const json& request) {
    return DetokenizeLine(*tokenizer, args, request);
  });
}

}  // namespace

void AddDetokenize(CLI::App& app, Context& context) {
  auto args = std::make_shared<DetokenizeArgs>();
  CLI::App* command = AddCommand(
      app, context,
      {.name = "detokenize",
       .about = context.T("Token ids to text", "把 token id 转换成文本"),
       .example = "belay detokenize --tokenizer DIR 19923 14 2058\n"
                  "belay detokenize --tokenizer DIR --jsonl < ids.jsonl"},
      [args, &context] { return Detokenize(*args, context); });
  command
      ->add_option("--tokenizer", args->tokenizer,
                   context.T("tokenizer.json, or the folder that holds it",
                             "tokenizer.json 或其所在目录"))
      ->required();
  command->add_option(
      "IDS", args->ids,
      context.T("the ids, with spaces or commas; - reads standard input",
                "id 列表，用空格或逗号分隔；- 表示读取标准输入"));
  command->add_flag("--skip-special", args->skip_special,
                    context.T("leave special tokens out", "略去特殊 token"));
  AddJsonLinesFlag(*command, context, args->jsonl);
  AddJsonFlag(*command, context);
}

}  // namespace belay::apps
