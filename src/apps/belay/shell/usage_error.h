// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_APPS_BELAY_SHELL_USAGE_ERROR_H_
#define BELAY_APPS_BELAY_SHELL_USAGE_ERROR_H_

#include "apps/belay/shell/context.h"
#include "base/error.h"

namespace CLI {
class App;
class ParseError;
}  // namespace CLI

namespace belay::apps {

// ARG-001 for what the parser refused, in the user's language. `where` is the
// command ("belay explain").
Status UsageError(const CLI::ParseError& error, const CLI::App& app,
                  const Context& context);

}  // namespace belay::apps

#endif  // BELAY_APPS_BELAY_SHELL_USAGE_ERROR_H_
