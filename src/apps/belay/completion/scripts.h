// SPDX-License-Identifier: Apache-2.0
// Shell completion out of the tree of commands, so that it cannot fall behind.
#ifndef BELAY_APPS_BELAY_COMPLETION_SCRIPTS_H_
#define BELAY_APPS_BELAY_COMPLETION_SCRIPTS_H_

#include <string>

namespace CLI {
class App;
}  // namespace CLI

namespace belay::apps {

// Scripts that define and register a completion for the program `app`.
std::string BashCompletion(const CLI::App& app);
std::string ZshCompletion(const CLI::App& app);

}  // namespace belay::apps

#endif  // BELAY_APPS_BELAY_COMPLETION_SCRIPTS_H_
