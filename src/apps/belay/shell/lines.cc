// SPDX-License-Identifier: Apache-2.0
#include "apps/belay/shell/lines.h"

#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/file.h"

namespace belay::apps {

using nlohmann::ordered_json;

StatusOr<std::string> ReadFileOrInput(const Context& context,
                                      const std::string& path) {
  if (path != "-") return ReadFile(path);
  if (context.in == nullptr) return std::string();
  return std::string(std::istreambuf_iterator<char>(*context.in), {});
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

}  // namespace belay::apps
