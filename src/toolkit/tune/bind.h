// SPDX-License-Identifier: Apache-2.0
// The NUMA binding of a process of our own: `belay serve --numa`.
#ifndef BELAY_TOOLKIT_TUNE_BIND_H_
#define BELAY_TOOLKIT_TUNE_BIND_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "toolkit/doctor/facts/host.h"

namespace belay::tune {

struct BindRequest {
  int node = -1;        // wanted by the user; -1: choose
  int n_threads = 0;    // of the process; 0: all cores
  uint64_t bytes = 0;   // weights and caches that it will hold
  bool on_npu = false;  // it feeds NPUs
};

// Either bound to one node, or left where it is (`node` < 0) for the reason.
struct BindChoice {
  int node = -1;
  std::vector<int> cpus;  // of the node that this process may use
  std::string why;        // "one node", "needs the cores of all nodes", ...
};

// A process that feeds NPUs belongs to their node. One that computes belongs to
// one node only if its threads and its memory fit there; else all nodes' memory
// channels together are faster. ARG-001 for a node that is not there, or has no
// CPU that this process may use.
StatusOr<BindChoice> ChooseBinding(const doctor::Host& host,
                                   const BindRequest& request);

// Binds the calling thread, and what it starts from now on, to the CPUs; memory
// comes from the node as long as it has some, and from others then: never the
// article's trap. SYS-005 when the system refuses.
Status Bind(const BindChoice& choice);

}  // namespace belay::tune

#endif  // BELAY_TOOLKIT_TUNE_BIND_H_
