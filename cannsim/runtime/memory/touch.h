// SPDX-License-Identifier: Apache-2.0
// Says what the program did when it dies of touching device memory.
#ifndef BELAY_CANNSIM_RUNTIME_MEMORY_TOUCH_H_
#define BELAY_CANNSIM_RUNTIME_MEMORY_TOUCH_H_

namespace cannsim {

// Catches SIGSEGV and SIGBUS: an address in device memory is reported on
// stderr with the calls that used the buffer (SIM-010 of the catalogue); then,
// and for any other address, the handler that was there before goes on. Once a
// process.
void InstallTouchReporter();

}  // namespace cannsim

#endif  // BELAY_CANNSIM_RUNTIME_MEMORY_TOUCH_H_
