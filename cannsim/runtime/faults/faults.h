// SPDX-License-Identifier: Apache-2.0
// The fault script and the quirks while a process runs: counts pieces of work
// and makes the chosen ones go wrong. All functions may be called from any
// thread.
#ifndef BELAY_CANNSIM_RUNTIME_FAULTS_FAULTS_H_
#define BELAY_CANNSIM_RUNTIME_FAULTS_FAULTS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cannsim/runtime/faults/quirks.h"
#include "cannsim/runtime/faults/script.h"
#include "cannsim/runtime/queue/task.h"

namespace cannsim {

class Faults {
 public:
  Faults(std::vector<FaultRule> rules, uint32_t quirks);

  bool has_rules() const { return !rules_.empty(); }
  bool Has(Quirk quirk) const { return HasQuirk(quirks_, quirk); }

  // Says on stderr, once a quirk, what it did.
  void Tell(Quirk quirk, const std::string& what);

  // A task is queued on a stream of a device: counts it, and exchanges its
  // work when a rule says so.
  void Arm(Task* task, int device, unsigned stream);

  // Work that the calling thread does itself (a synchronous copy or fill), or
  // a wait. 0, or an error code after Fail.
  int OnCall(FaultRule::What what, const char* name, int device, int stream);

  // An allocation that would bring the used memory to `used_after` bytes.
  int OnMalloc(int device, size_t used_after);

  // Whether the script takes the operator away.
  bool IsMissing(const char* op);

  // 507010 after Fail when the script lost the device.
  int CheckLost(int device);

 private:
  struct Rule {
    FaultRule what;
    std::atomic<uint64_t> n_seen{0};
    std::atomic<uint64_t> n_told{0};
  };

  bool Counts(Rule& rule);
  void Apply(Rule& rule, Task* task, int device, unsigned stream);
  void TellRule(Rule& rule, const std::string& what);
  bool IsLost(int device) const;

  std::vector<std::unique_ptr<Rule>> rules_;
  bool may_lose_ = false;
  const uint32_t quirks_;
  std::atomic<uint32_t> told_{0};  // quirks
  std::array<std::atomic<bool>, 64> lost_{};
};

}  // namespace cannsim

#endif  // BELAY_CANNSIM_RUNTIME_FAULTS_FAULTS_H_
