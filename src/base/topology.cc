// SPDX-License-Identifier: Apache-2.0
#include "base/topology.h"

#include <hwloc.h>

#include <algorithm>
#include <utility>

#include "base/error_ids.h"

namespace belay {
namespace {

class HwlocTopology final : public Topology {
 public:
  explicit HwlocTopology(hwloc_topology_t topology) : topology_(topology) {
    allowed_ = hwloc_topology_get_allowed_cpuset(topology_);
    FindCores();
  }
  ~HwlocTopology() override { hwloc_topology_destroy(topology_); }
  HwlocTopology(const HwlocTopology&) = delete;
  HwlocTopology& operator=(const HwlocTopology&) = delete;

  int n_cores() const override {
    int n = 0;
    for (const auto& cores : cores_of_node_)
      n += static_cast<int>(cores.size());
    return n;
  }
  int n_nodes() const override {
    return std::max(1, hwloc_get_nbobjs_by_type(topology_, HWLOC_OBJ_NUMANODE));
  }

  std::vector<int> CpusFor(int n_threads) const override {
    std::vector<int> cpus;
    if (n_threads != n_cores()) return cpus;
    for (size_t i = 0; static_cast<int>(cpus.size()) < n_threads; ++i) {
      for (const auto& cores : cores_of_node_) {
        if (i < cores.size()) cpus.push_back(cores[i]);
      }
    }
    return cpus;
  }

  void Interleave(void* data, size_t bytes) const override {
    if (n_nodes() < 2) return;
    (void)hwloc_set_area_membind(
        topology_, data, bytes, hwloc_topology_get_allowed_nodeset(topology_),
        HWLOC_MEMBIND_INTERLEAVE, HWLOC_MEMBIND_BYNODESET);
  }

 private:
  // The first CPU that we may use of each physical core, by its first node.
  void FindCores() {
    cores_of_node_.resize(static_cast<size_t>(n_nodes()));
    // A system that tells of no cores has CPUs alone.
    const int depth = hwloc_get_type_or_below_depth(topology_, HWLOC_OBJ_CORE);
    hwloc_obj_t core = nullptr;
    while ((core = hwloc_get_next_obj_by_depth(topology_, depth, core)) !=
           nullptr) {
      int cpu = -1;
      while ((cpu = hwloc_bitmap_next(core->cpuset, cpu)) >= 0) {
        if (hwloc_bitmap_isset(allowed_, static_cast<unsigned>(cpu)) != 0)
          break;
      }
      if (cpu < 0) continue;
      cores_of_node_[NodeOf(core)].push_back(cpu);
    }
  }

  // Nodes by their place in the list: their numbers may have holes.
  size_t NodeOf(hwloc_obj_t core) const {
    for (int i = 0; i < n_nodes(); ++i) {
      const hwloc_obj_t node = hwloc_get_obj_by_type(
          topology_, HWLOC_OBJ_NUMANODE, static_cast<unsigned>(i));
      if (node != nullptr && node->nodeset != nullptr &&
          hwloc_bitmap_isincluded(node->nodeset, core->nodeset) != 0) {
        return static_cast<size_t>(i);
      }
    }
    return 0;
  }

  hwloc_topology_t topology_;
  hwloc_const_bitmap_t allowed_ = nullptr;
  std::vector<std::vector<int>> cores_of_node_;
};

Status Failed(std::string what) {
  return MakeError(
      kSysTopology,
      {.where = "hwloc", .what = std::move(what), .expected = "", .got = ""});
}

StatusOr<std::unique_ptr<Topology>> Make(const char* synthetic) {
  hwloc_topology_t topology = nullptr;
  if (hwloc_topology_init(&topology) != 0) return Failed("init");
  if ((synthetic != nullptr &&
       hwloc_topology_set_synthetic(topology, synthetic) != 0) ||
      hwloc_topology_load(topology) != 0) {
    hwloc_topology_destroy(topology);
    return Failed(synthetic != nullptr ? synthetic : "load");
  }
  return std::unique_ptr<Topology>(new HwlocTopology(topology));
}

}  // namespace

StatusOr<std::unique_ptr<Topology>> Topology::Load() { return Make(nullptr); }

StatusOr<std::unique_ptr<Topology>> Topology::Synthetic(
    const std::string& description) {
  return Make(description.c_str());
}

}  // namespace belay
