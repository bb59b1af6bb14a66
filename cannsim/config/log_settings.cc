// SPDX-License-Identifier: Apache-2.0
#include "cannsim/config/log_settings.h"

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace cannsim {
namespace {

constexpr int kMaxLevel = 4;

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

// `otherwise` unless the text is a number from low to high.
int Number(std::string_view text, int low, int high, int otherwise) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  const bool is_good = result.ec == std::errc() && result.ptr == end &&
                       !text.empty() && value >= low && value <= high;
  return is_good ? value : otherwise;
}

std::string Root() {
  std::string root = Variable("ASCEND_PROCESS_LOG_PATH");
  if (!root.empty()) return root;
  root = Variable("ASCEND_WORK_PATH");
  if (!root.empty()) return root + "/log";
  root = Variable("HOME");
  return root.empty() ? "" : root + "/ascend/log";
}

// RUNTIME=1:OP=0
std::vector<std::pair<std::string, int>> ModuleLevels(std::string_view text) {
  std::vector<std::pair<std::string, int>> levels;
  while (!text.empty() && levels.size() < 64) {
    const size_t colon = text.find(':');
    const std::string_view part = text.substr(0, colon);
    const size_t mark = part.find('=');
    if (mark != std::string_view::npos) {
      const int level = Number(part.substr(mark + 1), 0, kMaxLevel, -1);
      if (level >= 0) levels.emplace_back(part.substr(0, mark), level);
    }
    if (colon == std::string_view::npos) break;
    text.remove_prefix(colon + 1);
  }
  return levels;
}

}  // namespace

LogSettings LogSettingsFromEnvironment() {
  LogSettings settings;
  settings.root = Root();
  settings.level = Number(Variable("ASCEND_GLOBAL_LOG_LEVEL"), 0, kMaxLevel, 3);
  settings.module_levels = ModuleLevels(Variable("ASCEND_MODULE_LOG_LEVEL"));
  settings.to_stdout = Variable("ASCEND_SLOG_PRINT_TO_STDOUT") == "1" ||
                       Variable("ASCEND_LOG_PRINT_TO_STDOUT") == "1";
  settings.n_files = Number(Variable("ASCEND_HOST_LOG_FILE_NUM"), 1, 1000, 10);
  return settings;
}

}  // namespace cannsim
