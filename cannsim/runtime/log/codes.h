// SPDX-License-Identifier: Apache-2.0
// What logs say about error numbers of the runtime.
#ifndef BELAY_CANNSIM_RUNTIME_LOG_CODES_H_
#define BELAY_CANNSIM_RUNTIME_LOG_CODES_H_

namespace cannsim {

// A few words ("vector core exception"); for numbers without any of their own,
// "failed". Never null.
const char* CodeText(int code);

// The runtime's inner number in the form that logs use ("0x715005e"), and the
// task's ("0x31"); "" where no public source names one.
const char* InnerCode(int code);
const char* TaskCode(int code);

}  // namespace cannsim

#endif  // BELAY_CANNSIM_RUNTIME_LOG_CODES_H_
