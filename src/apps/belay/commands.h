// SPDX-License-Identifier: Apache-2.0
// The commands of belay: one file each, one line each in commands.cc.
#ifndef BELAY_APPS_BELAY_COMMANDS_H_
#define BELAY_APPS_BELAY_COMMANDS_H_

#include "apps/belay/shell/context.h"

namespace belay::apps {

// Adds every command, in the order of --help.
void AddCommands(CLI::App& app, Context& context);

void AddRun(CLI::App& app, Context& context);
void AddChat(CLI::App& app, Context& context);
void AddServe(CLI::App& app, Context& context);
void AddTrace(CLI::App& app, Context& context);
void AddPerplexity(CLI::App& app, Context& context);
void AddExplain(CLI::App& app, Context& context);
void AddInspect(CLI::App& app, Context& context);
void AddMakeModel(CLI::App& app, Context& context);
void AddConvert(CLI::App& app, Context& context);
void AddPack(CLI::App& app, Context& context);
void AddTokenize(CLI::App& app, Context& context);
void AddDetokenize(CLI::App& app, Context& context);
void AddRender(CLI::App& app, Context& context);
void AddParse(CLI::App& app, Context& context);
void AddBench(CLI::App& app, Context& context);
void AddLoadTest(CLI::App& app, Context& context);
void AddCompletion(CLI::App& app, Context& context);

}  // namespace belay::apps

#endif  // BELAY_APPS_BELAY_COMMANDS_H_
