// SPDX-License-Identifier: Apache-2.0
// Files and lines that a command reads; "-" is standard input.
#ifndef BELAY_APPS_BELAY_SHELL_LINES_H_
#define BELAY_APPS_BELAY_SHELL_LINES_H_

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "apps/belay/shell/context.h"

namespace belay::apps {

// The whole of a file or of standard input. Error: SYS-001.
StatusOr<std::string> ReadFileOrInput(const Context& context,
                                      const std::string& path);

using LineFn =
    std::function<StatusOr<nlohmann::ordered_json>(const std::string& line)>;

// Calls `answer` with the text of every line of standard input that is not
// blank and writes what it returns as one line, flushed, so that a program can
// ask and wait. A line that fails gives {"error": {...}} in its place, and
// kFindings at the end.
ExitCode RunLines(const Context& context, const LineFn& answer);

}  // namespace belay::apps

#endif  // BELAY_APPS_BELAY_SHELL_LINES_H_
