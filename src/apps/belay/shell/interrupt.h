// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_APPS_BELAY_SHELL_INTERRUPT_H_
#define BELAY_APPS_BELAY_SHELL_INTERRUPT_H_

#include <atomic>

namespace belay::apps {

// From now on the first Ctrl-C (SIGINT) or SIGTERM sets the returned flag
// instead of ending the process; a second one of the same kind ends it at once.
// Long commands look at the flag and return MakeError(kSysInterrupted, ...).
// Calling it again clears the flag and arms it again.
const std::atomic<bool>& CatchInterrupts();

}  // namespace belay::apps

#endif  // BELAY_APPS_BELAY_SHELL_INTERRUPT_H_
