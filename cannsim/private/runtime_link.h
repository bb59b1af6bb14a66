// SPDX-License-Identifier: Apache-2.0
// What libascendcl.so gives to the other libraries of cannsim. They are built
// together, so C++ types may cross; programs never see these symbols' names.
#ifndef BELAY_CANNSIM_PRIVATE_RUNTIME_LINK_H_
#define BELAY_CANNSIM_PRIVATE_RUNTIME_LINK_H_

#include <cstddef>
#include <functional>

#include "acl/acl_base.h"
#include "cannsim/config/profile.h"

extern "C" {

// Sets the thread's message and last error; returns `code`.
int cannsim_fail(int code, const char* text);

// Names the call that the thread is in, for messages and histories. Returns
// what has to be given to cannsim_leave.
void* cannsim_enter(const char* api, const void* caller);
void cannsim_leave(void* scope);

// Queues an operator. On a null stream it has run when the call returns:
// clients launch there and never wait. An error code of acl.
int cannsim_launch(aclrtStream stream, const char* name,
                   std::function<int()> run);

// Where the bytes of device memory (or of registered host memory) really are;
// null after cannsim_fail when [address, +bytes) is not one buffer of it.
char* cannsim_worker(const void* address, size_t bytes, const char* use);

const cannsim::Profile* cannsim_profile();

}  // extern "C"

#endif  // BELAY_CANNSIM_PRIVATE_RUNTIME_LINK_H_
