// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_APPS_BELAY_TUNE_TUNE_H_
#define BELAY_APPS_BELAY_TUNE_TUNE_H_

#include "apps/belay/shell/context.h"

namespace belay::apps {

void AddTune(CLI::App& app, Context& context);

}  // namespace belay::apps

#endif  // BELAY_APPS_BELAY_TUNE_TUNE_H_
