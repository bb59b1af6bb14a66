// SPDX-License-Identifier: Apache-2.0
#include "apps/belay/shell/lines.h"

#include <CLI/CLI.hpp>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error_ids.h"
#include "base/file.h"

namespace belay::apps {

using nlohmann::json;
using nlohmann::ordered_json;

std::string ReadInput(const Context& context) {
  if (context.in == nullptr) return "";
  return {std::istreambuf_iterator<char>(*context.in), {}};
}

StatusOr<std::string> ReadFileOrInput(const Context& context,
                                      const std::string& path) {
  if (path != "-") return ReadFile(path);
  return ReadInput(context);
}

ExitCode RunLines(const Context& context, const LineFn& answer) {
  ExitCode code = ExitCode::kOk;
  if (context.in == nullptr) return code;
  std::string line;
  for (size_t number = 1; std::getline(*context.in, line); ++number) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const StatusOr<ordered_json> result = answer(line);
    ordered_json out;
    if (result.ok()) {
      out = *result;
    } else {
      code = ExitCode::kFindings;
      const Status error =
          WithContext(result.status(), "line " + std::to_string(number));
      out["error"] = diag::ErrorToJson(error, context.catalogue, context.lang);
    }
    context.out << out.dump(-1, ' ', /*ensure_ascii=*/false,
                            ordered_json::error_handler_t::replace)
                << std::endl;
  }
  return code;
}

ExitCode RunJsonLines(const Context& context, const ObjectFn& answer) {
  return RunLines(context,
                  [&](const std::string& line) -> StatusOr<ordered_json> {
                    json request;
                    try {
                      request = json::parse(line);
                    } catch (const json::exception& error) {
                      return MakeError(kArgUsage, {.where = "",
                                                   .what = error.what(),
                                                   .expected = "JSON",
                                                   .got = ""});
                    }
                    if (request.is_object()) return answer(request);
                    return MakeError(kArgUsage, {.where = "",
                                                 .what = "",
                                                 .expected = "a JSON object",
                                                 .got = request.type_name()});
                  });
}

void AddJsonLinesFlag(CLI::App& command, const Context& context, bool& flag) {
  command.add_flag(
      "--jsonl", flag,
      context.T("one JSON object a line from standard input, one a line out",
                "从标准输入逐行读取 JSON 对象，逐行输出结果"));
}

}  // namespace belay::apps
