// SPDX-License-Identifier: Apache-2.0
// belay tokenize: text to token ids.
#include <CLI/CLI.hpp>
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

struct TokenizeArgs {
  std::string tokenizer;
  std::string text;
  bool has_text = false;
  bool ids = false;
  bool pieces = false;
  bool count = false;
  bool plain = false;
  bool jsonl = false;
};

std::string PieceOf(const Tokenizer& tokenizer, int32_t id) {
  return tokenizer.PieceOf(id).value_or("");
}

void PrintIds(const std::vector<int32_t>& ids, const Context& context) {
  for (size_t i = 0; i < ids.size(); ++i) {
    context.out << (i == 0 ? "" : " ") << ids[i];
  }
  context.out << "\n";
}

ordered_json ToJson(const Tokenizer& tokenizer, const std::vector<int32_t>& ids,
                    const TokenizeArgs& args) {
  if (args.count) return {{"count", ids.size()}};
  ordered_json result{{"ids", ids}};
  if (args.pieces) {
    result["pieces"] = ordered_json::array();
    for (const int32_t id : ids) {
      result["pieces"].push_back(PieceOf(tokenizer, id));
    }
  }
  return result;
}

StatusOr<ExitCode> TokenizeOne(const Tokenizer& tokenizer,
                               const TokenizeArgs& args,
                               const Context& context) {
  const std::string text = args.text == "-" ? ReadInput(context) : args.text;
  BELAY_ASSIGN_OR_RETURN(
      const std::vector<int32_t> ids,
      tokenizer.Encode(text, {.parse_special = !args.plain}));
  if (context.json) {
    PrintJson(context, ToJson(tokenizer, ids, args));
  } else if (args.count) {
    context.out << ids.size() << "\n";
  } else if (args.pieces) {
    for (const int32_t id : ids) {
      context.out << id << "\t" << PieceOf(tokenizer, id) << "\n";
    }
  } else {
    PrintIds(ids, context);
  }
  return ExitCode::kOk;
}

StatusOr<ordered_json> TokenizeLine(const Tokenizer& tokenizer,
                                    const TokenizeArgs& args,
                                    const json& request) {
  const auto text = request.find("text");
  if (text == request.end() || !text->is_string()) {
    return MakeError(
        kArgUsage,
        {.where = "text",
         .what = "",
         .expected = "a string",
         .got = text == request.end() ? "nothing" : text->type_name()});
  }
  BELAY_ASSIGN_OR_RETURN(const std::vector<int32_t> ids,
                         tokenizer.Encode(text->get_ref<const std::string&>(),
                                          {.parse_special = !args.plain}));
  return ToJson(tokenizer, ids, args);
}

StatusOr<ExitCode> Tokenize(const TokenizeArgs& args, const Context& context) {
  if (args.has_text == args.jsonl) {
    return MakeError(kArgUsage, {.where = "belay tokenize",
                                 .what = context.T("either TEXT or --jsonl",
                                                   "请给出 TEXT 或 --jsonl"),
                                 .expected = "",
                                 .got = ""});
  }
  BELAY_ASSIGN_OR_RETURN(const std::shared_ptr<const Tokenizer> tokenizer,
                         Tokenizer::Open(args.tokenizer));
  if (!args.jsonl) return TokenizeOne(*tokenizer, args, context);
  return RunJsonLines(context, [&](const json& request) {
    return TokenizeLine(*tokenizer, args, request);
  });
}

}  // namespace

void AddTokenize(CLI::App& app, Context& context) {
  auto args = std::make_shared<TokenizeArgs>();
  CLI::App* command = AddCommand(
      app, context,
      {.name = "tokenize",
       .about = context.T("Text to token ids", "把文本转换成 token id"),
       .example = "belay tokenize --tokenizer DIR \"Hello, world\"\n"
                  "belay tokenize --tokenizer DIR --count - < prompt.txt\n"
                  "belay tokenize --tokenizer DIR --jsonl < texts.jsonl"},
      [args, &context] { return Tokenize(*args, context); });
  command
      ->add_option("--tokenizer", args->tokenizer,
                   context.T("tokenizer.json, or the folder that holds it",
                             "tokenizer.json 或其所在目录"))
      ->required();
  command
      ->add_option_function<std::string>(
          "TEXT",
          [args](const std::string& text) {
            args->text = text;
            args->has_text = true;
          },
          context.T("the text; - reads standard input",
                    "文本；- 表示读取标准输入"))
      ->expected(1);
  auto* ids = command->add_flag(
      "--ids", args->ids,
      context.T("print the ids (the default)", "输出 id（默认）"));
  auto* pieces = command->add_flag(
      "--pieces", args->pieces,
      context.T("print each id with its piece, as tokenizer.json spells it",
                "输出每个 id 及其在 tokenizer.json 中的写法"));
  auto* count = command->add_flag(
      "--count", args->count,
      context.T("print the number of tokens", "输出 token 数量"));
  ids->excludes(pieces)->excludes(count);
  pieces->excludes(count);
  command->add_flag("--plain", args->plain,
                    context.T("encode special tokens in the text as plain text",
                              "把文本中的特殊 token 当作普通文本编码"));
  AddJsonLinesFlag(*command, context, args->jsonl);
  AddJsonFlag(*command, context);
}

}  // namespace belay::apps
