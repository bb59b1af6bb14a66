// SPDX-License-Identifier: Apache-2.0
#include "toolkit/tune/bind.h"

#include <fmt/format.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <set>

#include "base/error_ids.h"

namespace belay::tune {
namespace {

std::vector<int> UsableCpus(const doctor::Host& host,
                            const doctor::NumaNode& node) {
  if (host.allowed_cpus.empty()) return node.cpus;
  std::vector<int> cpus;
  std::set_intersection(node.cpus.begin(), node.cpus.end(),
                        host.allowed_cpus.begin(), host.allowed_cpus.end(),
                        std::back_inserter(cpus));
  return cpus;
}

StatusOr<BindChoice> Named(const doctor::Host& host, int id) {
  const doctor::NumaNode* node = host.Node(id);
  if (node != nullptr) {
    BindChoice choice{id, UsableCpus(host, *node), "as asked for"};
    if (!choice.cpus.empty()) return choice;
  }
  std::vector<int> ids;
  for (const doctor::NumaNode& one : host.nodes) ids.push_back(one.id);
  return MakeError(kArgUsage,
                   {.where = "--numa",
                    .what = "",
                    .expected = fmt::format("auto, off or a node of {}",
                                            doctor::FormatCpuList(ids)),
                    .got = fmt::format("{}", id)});
}

}  // namespace

StatusOr<BindChoice> ChooseBinding(const doctor::Host& host,
                                   const BindRequest& request) {
  if (request.node >= 0) return Named(host, request.node);
  if (host.nodes.size() < 2) return BindChoice{-1, {}, "one node"};
  if (request.on_npu) {
    std::set<int> nodes;
    for (const doctor::BusDevice& npu : host.npus) nodes.insert(npu.node);
    if (nodes.size() != 1 || *nodes.begin() < 0) {
      return BindChoice{-1, {}, "the NPUs are at several nodes, or at none"};
    }
    BELAY_ASSIGN_OR_RETURN(BindChoice choice, Named(host, *nodes.begin()));
    choice.why = "the NPUs are there";
    return choice;
  }
  if (request.n_threads <= 0) {
    return BindChoice{-1, {}, "the cores of all nodes work"};
  }
  const doctor::NumaNode* best = nullptr;
  for (const doctor::NumaNode& node : host.nodes) {
    if (UsableCpus(host, node).size() <
            static_cast<size_t>(request.n_threads) ||
        node.free_kib < request.bytes / 1024) {
      continue;
    }
    if (best == nullptr || node.free_kib > best->free_kib) best = &node;
  }
  if (best == nullptr) {
    return BindChoice{-1, {}, "threads and memory fit no single node"};
  }
  return BindChoice{best->id, UsableCpus(host, *best),
                    "threads and memory fit there"};
}

Status Bind(const BindChoice& choice) {
  if (choice.node < 0) return absl::OkStatus();
  const auto failed = [](const char* call) {
    return MakeError(kSysTopology, {.where = call,
                                    .what = std::strerror(errno),
                                    .expected = "",
                                    .got = ""});
  };
  const int most = *std::max_element(choice.cpus.begin(), choice.cpus.end());
  cpu_set_t* set = CPU_ALLOC(most + 1);
  if (set == nullptr) return failed("CPU_ALLOC");
  const size_t bytes = CPU_ALLOC_SIZE(most + 1);
  CPU_ZERO_S(bytes, set);
  for (const int cpu : choice.cpus) CPU_SET_S(cpu, bytes, set);
  const int error = sched_setaffinity(0, bytes, set);
  CPU_FREE(set);
  if (error != 0) return failed("sched_setaffinity");
  std::array<unsigned long, 16> nodes{};
  constexpr int kBits = 8 * sizeof(unsigned long);
  if (choice.node >= kBits * static_cast<int>(nodes.size())) {
    return absl::OkStatus();  // no kernel has that many
  }
  nodes[static_cast<size_t>(choice.node / kBits)] |= 1UL
                                                     << (choice.node % kBits);
  // Preferred, not bound: the policy is inherited, and a full node must not
  // mean no memory.
  if (syscall(SYS_set_mempolicy, MPOL_PREFERRED, nodes.data(),
              kBits * nodes.size()) != 0 &&
      errno != ENOSYS && errno != EPERM) {
    return failed("set_mempolicy");
  }
  return absl::OkStatus();
}

}  // namespace belay::tune
