// SPDX-License-Identifier: Apache-2.0
#include "apps/belay/shell/batch.h"

#include <CLI/CLI.hpp>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error_ids.h"

namespace belay::apps {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

StatusOr<ordered_json> AnswerLine(const std::string& line, size_t number,
                                  const BatchFn& answer) {
  const std::string where = "line " + std::to_string(number);
  json request;
  try {
    request = json::parse(line);
  } catch (const json::exception& error) {
    return MakeError(
        kArgUsage,
        {.where = where, .what = error.what(), .expected = "JSON", .got = ""});
  }
  if (!request.is_object()) {
    return MakeError(kArgUsage, {.where = where,
                                 .what = "",
                                 .expected = "a JSON object",
                                 .got = request.type_name()});
  }
  StatusOr<ordered_json> result = answer(request);
  if (!result.ok()) return WithContext(result.status(), where);
  return result;
}

}  // namespace

std::string ReadInput(const Context& context) {
  if (context.in == nullptr) return "";
  return {std::istreambuf_iterator<char>(*context.in), {}};
}

StatusOr<ExitCode> RunJsonLines(const Context& context, const BatchFn& answer) {
  ExitCode code = ExitCode::kOk;
  if (context.in == nullptr) return code;
  std::string line;
  for (size_t number = 1; std::getline(*context.in, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    StatusOr<ordered_json> result = AnswerLine(line, number, answer);
    ordered_json out;
    if (result.ok()) {
      out = *std::move(result);
    } else {
      code = ExitCode::kFindings;
      out["error"] =
          diag::ErrorToJson(result.status(), context.catalogue, context.lang);
    }
    context.out << out.dump(-1, ' ', /*ensure_ascii=*/false,
                            ordered_json::error_handler_t::replace)
                << std::endl;
  }
  return code;
}

void AddJsonLinesFlag(CLI::App& command, const Context& context, bool& flag) {
  command.add_flag(
      "--jsonl", flag,
      context.T("one JSON object a line from standard input, one a line out",
                "从标准输入逐行读取 JSON 对象，逐行输出结果"));
}

}  // namespace belay::apps
