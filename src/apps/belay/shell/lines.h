// SPDX-License-Identifier: Apache-2.0
// Files and lines that a command reads; "-" is standard input.
#ifndef BELAY_APPS_BELAY_SHELL_LINES_H_
#define BELAY_APPS_BELAY_SHELL_LINES_H_

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "apps/belay/shell/context.h"

namespace belay::apps {

// All of standard input.
std::string ReadInput(const Context& context);

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

using ObjectFn =
    std::function<StatusOr<nlohmann::ordered_json>(const nlohmann::json&)>;

// The same for lines that hold one JSON object each; ARG-001 for a line that
// does not.
ExitCode RunJsonLines(const Context& context, const ObjectFn& answer);

// Adds --jsonl.
void AddJsonLinesFlag(CLI::App& command, const Context& context, bool& flag);

}  // namespace belay::apps

#endif  // BELAY_APPS_BELAY_SHELL_LINES_H_
