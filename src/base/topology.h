// SPDX-License-Identifier: Apache-2.0
// The machine as far as threads and memory go: physical cores and NUMA nodes.
#ifndef BELAY_BASE_TOPOLOGY_H_
#define BELAY_BASE_TOPOLOGY_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"

namespace belay {

class Topology {
 public:
  // Of this machine, as far as this process may use it (affinity, cpusets).
  // SYS-005 when hwloc cannot tell.
  static StatusOr<std::unique_ptr<Topology>> Load();
  // Of a machine that hwloc's synthetic notation describes ("numa:2 core:4
  // pu:2"), to test choices. SYS-005 when it does not.
  static StatusOr<std::unique_ptr<Topology>> Synthetic(
      const std::string& description);
  virtual ~Topology() = default;

  virtual int n_cores() const = 0;  // physical
  virtual int n_nodes() const = 0;  // NUMA, with memory; at least 1

  // A logical CPU for each thread of a team, no two on one physical core, taken
  // from the nodes in turn, so that every node's memory channels work. Empty
  // unless the team takes every core: a thread that is bound to one of several
  // free cores cannot leave it when other work comes there.
  virtual std::vector<int> CpusFor(int n_threads) const = 0;

  // Spreads pages that were not written yet over the nodes in turn, for memory
  // that all threads read alike. Does nothing on one node; a system that
  // refuses keeps its own placement.
  virtual void Interleave(void* data, size_t bytes) const = 0;
};

}  // namespace belay

#endif  // BELAY_BASE_TOPOLOGY_H_
