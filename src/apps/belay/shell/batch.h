// SPDX-License-Identifier: Apache-2.0
// Standard input, and the --jsonl form of commands: one JSON object a line in,
// one a line out, in the same order.
#ifndef BELAY_APPS_BELAY_SHELL_BATCH_H_
#define BELAY_APPS_BELAY_SHELL_BATCH_H_

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "apps/belay/shell/context.h"

namespace belay::apps {

// All of standard input.
std::string ReadInput(const Context& context);

using BatchFn =
    std::function<StatusOr<nlohmann::ordered_json>(const nlohmann::json&)>;

// Calls `answer` with every line of standard input that is not blank and writes
// what it returns, flushed, so that a program can ask and wait. A line that
// fails gives {"error": {...}} in its place, and kFindings at the end.
StatusOr<ExitCode> RunJsonLines(const Context& context, const BatchFn& answer);

// Adds --jsonl.
void AddJsonLinesFlag(CLI::App& command, const Context& context, bool& flag);

}  // namespace belay::apps

#endif  // BELAY_APPS_BELAY_SHELL_BATCH_H_
