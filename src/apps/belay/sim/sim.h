// SPDX-License-Identifier: Apache-2.0
// `belay sim env` and `belay sim run`.
#ifndef BELAY_APPS_BELAY_SIM_SIM_H_
#define BELAY_APPS_BELAY_SIM_SIM_H_

#include "apps/belay/shell/context.h"

namespace belay::apps {

void AddSim(CLI::App& app, Context& context);

}  // namespace belay::apps

#endif  // BELAY_APPS_BELAY_SIM_SIM_H_
