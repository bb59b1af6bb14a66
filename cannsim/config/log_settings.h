// SPDX-License-Identifier: Apache-2.0
// Where logs go and how much is logged: the variables of CANN's own logging
// (ascend.md of the facts, 3.1).
#ifndef BELAY_CANNSIM_CONFIG_LOG_SETTINGS_H_
#define BELAY_CANNSIM_CONFIG_LOG_SETTINGS_H_

#include <string>
#include <utility>
#include <vector>

namespace cannsim {

struct LogSettings {
  std::string root;  // "" = nowhere to write
  int level = 3;     // 0 debug, 1 info, 2 warning, 3 error, 4 nothing
  std::vector<std::pair<std::string, int>> module_levels;
  bool to_stdout = false;
  int n_files = 10;  // kept of a process and kind

  int LevelOf(const char* module) const {
    for (const auto& [name, level_of_it] : module_levels) {
      if (name == module) return level_of_it;
    }
    return level;
  }
};

// ASCEND_PROCESS_LOG_PATH, ASCEND_WORK_PATH, HOME, ASCEND_GLOBAL_LOG_LEVEL,
// ASCEND_MODULE_LOG_LEVEL, ASCEND_SLOG_PRINT_TO_STDOUT,
// ASCEND_LOG_PRINT_TO_STDOUT, ASCEND_HOST_LOG_FILE_NUM. Values that are not
// legal count as not set.
LogSettings LogSettingsFromEnvironment();

}  // namespace cannsim

#endif  // BELAY_CANNSIM_CONFIG_LOG_SETTINGS_H_
