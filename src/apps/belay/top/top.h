// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_APPS_BELAY_TOP_TOP_H_
#define BELAY_APPS_BELAY_TOP_TOP_H_

#include "apps/belay/shell/context.h"

namespace belay::apps {

void AddTop(CLI::App& app, Context& context);

}  // namespace belay::apps

#endif  // BELAY_APPS_BELAY_TOP_TOP_H_
