// SPDX-License-Identifier: Apache-2.0
// Options of a command from a TOML file.
#ifndef BELAY_APPS_BELAY_CONFIG_CONFIG_FILE_H_
#define BELAY_APPS_BELAY_CONFIG_CONFIG_FILE_H_

#include <string>
#include <string_view>

#include "apps/belay/shell/context.h"
#include "base/error.h"

namespace CLI {
class App;
}  // namespace CLI

namespace belay::apps {

// Gives every option of `command` that the command line did not give the value
// of its key in `toml`: keys are the long names without dashes, "_" and "-" are
// alike, tables are only for order and may have any name. Flags take true and
// false. Call it after parsing, before the values are used.
// Errors, with line and column: CFG-001 (not TOML), CFG-002 (no such option),
// CFG-003 (a value that the option does not take).
Status ApplyConfig(std::string_view toml, const std::string& where,
                   CLI::App& command);

// The same from a file. Error: SYS-001, too.
Status ApplyConfigFile(const std::string& path, CLI::App& command);

// A TOML file with every option of the command: its help as a comment, and its
// default commented out.
std::string ConfigTemplate(CLI::App& command);

struct ConfigArgs {
  std::string path;    // --config
  bool print = false;  // --print-config
};
void AddConfigOptions(CLI::App& command, ConfigArgs& args,
                      const Context& context);

}  // namespace belay::apps

#endif  // BELAY_APPS_BELAY_CONFIG_CONFIG_FILE_H_
