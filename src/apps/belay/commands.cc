// SPDX-License-Identifier: Apache-2.0
#include "apps/belay/commands.h"

#include "apps/belay/doctor/doctor.h"
#include "apps/belay/logs/logs.h"
#include "apps/belay/sim/sim.h"
#include "apps/belay/top/top.h"
#include "apps/belay/tune/tune.h"

namespace belay::apps {

void AddCommands(CLI::App& app, Context& context) {
  AddRun(app, context);
  AddChat(app, context);
  AddServe(app, context);
  AddTrace(app, context);
  AddPerplexity(app, context);
  AddRender(app, context);
  AddParse(app, context);
  AddBench(app, context);
  AddLoadTest(app, context);
  AddSim(app, context);
  AddDoctor(app, context);
  AddLogs(app, context);
  AddTune(app, context);
  AddTop(app, context);
  AddInspect(app, context);
  AddMakeModel(app, context);
  AddConvert(app, context);
  AddPack(app, context);
  AddTokenize(app, context);
  AddDetokenize(app, context);
  AddExplain(app, context);
  AddCompletion(app, context);
}

}  // namespace belay::apps
