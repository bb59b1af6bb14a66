// SPDX-License-Identifier: Apache-2.0
// What libascendcl.so gives to the other libraries of cannsim. They are built
// together, so C++ types may cross; programs never see these symbols' names.
#ifndef BELAY_CANNSIM_PRIVATE_RUNTIME_LINK_H_
#define BELAY_CANNSIM_PRIVATE_RUNTIME_LINK_H_

#include <cstddef>
#include <cstdint>
#include <functional>

#include "acl/acl_base.h"
#include "cannsim/config/hccl_settings.h"
#include "cannsim/config/profile.h"
#include "cannsim/runtime/faults/quirks.h"
#include "cannsim/runtime/queue/task.h"

extern "C" {

// Sets the thread's message and last error; returns `code`.
int cannsim_fail(int code, const char* text);

// Sets the thread's message in the name of another module ("EI0006").
void cannsim_say(const char* letters, int code, const char* text);

// Names the call that the thread is in, for messages and histories. Returns
// what has to be given to cannsim_leave.
void* cannsim_enter(const char* api, const void* caller);
void cannsim_leave(void* scope);

// Queues an operator. On a null stream it has run when the call returns:
// clients launch there and never wait. An error code of acl.
int cannsim_launch(aclrtStream stream, const char* name,
                   std::function<int()> run);

// The same, with what it costs in simulated time.
int cannsim_launch_op(aclrtStream stream, const char* name,
                      const cannsim::TaskCost& cost, std::function<int()> run);

// For work that waits for other processes: it may look at the stream, and is
// queued on the default stream too.
int cannsim_launch_task(aclrtStream stream, const char* name,
                        const cannsim::TaskCost& cost,
                        std::function<int(const cannsim::TaskRun&)> run);

// Whether work on the stream is recorded now, to be run later or many times.
bool cannsim_is_recorded(aclrtStream stream);

// Whether the fault script takes an operator away from this chip.
bool cannsim_missing(const char* op);

// Whether a quirk is switched on; and, once a quirk, a line on stderr that says
// what it did.
bool cannsim_quirk(cannsim::Quirk quirk);
void cannsim_tell(cannsim::Quirk quirk, const char* what);

// Counts an operator that had to be compiled.
void cannsim_compiled();

// A line of the plog: an error of a module ("HCCL").
void cannsim_log(const char* module, const char* function, const char* text);

// Where the bytes of device memory (or of registered host memory) really are;
// null after cannsim_fail when [address, +bytes) is not one buffer of it.
char* cannsim_worker(const void* address, size_t bytes, const char* use);

// Bytes of workspace that every operator asks for (0 unless it is told to).
uint64_t cannsim_workspace();

// Whether the mode is strict; and a finding of it about a place of the program,
// which is added to the text.
bool cannsim_strict();
void cannsim_finding(const char* id, const void* place, const char* text);

const cannsim::Profile* cannsim_profile();

// From the environment, as it is now.
void cannsim_hccl_settings(cannsim::HcclSettings* settings);

}  // extern "C"

#endif  // BELAY_CANNSIM_PRIVATE_RUNTIME_LINK_H_
