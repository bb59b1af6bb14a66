// SPDX-License-Identifier: Apache-2.0
#include "cannsim/runtime/faults/faults.h"

#include <chrono>
#include <thread>
#include <utility>

#include "acl/acl_base.h"
#include "cannsim/runtime/error.h"
#include "cannsim/runtime/log/codes.h"
#include "cannsim/runtime/process.h"

namespace cannsim {
namespace {

using What = FaultRule::What;
using When = FaultRule::When;
using Action = FaultRule::Action;
using Clock = std::chrono::steady_clock;

// A rule that applies for ever is told about a few times.
constexpr uint64_t kMaxTold = 3;
// What the runtime takes when no limit is set (acl.md: 1091 s on the 950).
constexpr int64_t kExecuteTimeoutS = 1091;

bool FitsKind(What what, TaskKind kind) {
  switch (what) {
    case What::kTask:
      // Marks and waits of events never fail: who waits would wait for ever.
      return kind != TaskKind::kRecord && kind != TaskKind::kWait &&
             kind != TaskKind::kReset;
    case What::kOperator:
      return kind == TaskKind::kOperator;
    case What::kCopy:
      return kind == TaskKind::kCopy;
    case What::kFill:
      return kind == TaskKind::kMemset;
    default:
      return false;
  }
}

bool FitsPlace(const FaultRule& rule, int device, int stream) {
  return (rule.device < 0 || rule.device == device) &&
         (rule.stream < 0 || rule.stream == stream);
}

const char* IdOf(const FaultRule& rule) {
  if (rule.what == What::kByte) return "SIM-036";
  switch (rule.action) {
    case Action::kHang:
      return "SIM-031";
    case Action::kSlow:
      return "SIM-032";
    case Action::kIgnore:
      return "SIM-033";
    case Action::kMissing:
      return "SIM-034";
    case Action::kLose:
      return "SIM-035";
    default:
      return "SIM-030";
  }
}

int FailAsTold(int code) { return Fail(code, std::string(CodeText(code))); }

// Never ends by itself: the stream's end by force, or the limit on how long an
// operator may run, ends it.
int Hang(const TaskRun& run) {
  const auto begin = Clock::now();
  while (!run.abandoned.load()) {
    const int64_t set = Process::Get().op_execute_timeout_s.load();
    const std::chrono::seconds limit(set > 0 ? set : kExecuteTimeoutS);
    if (Clock::now() - begin >= limit) {
      return FailAsTold(ACL_ERROR_RT_AICORE_TIMEOUT);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return ACL_SUCCESS;
}

}  // namespace

Faults::Faults(std::vector<FaultRule> rules, uint32_t quirks)
    : quirks_(quirks) {
  for (FaultRule& rule : rules) {
    may_lose_ |= rule.action == Action::kLose;
    rules_.push_back(std::make_unique<Rule>());
    rules_.back()->what = std::move(rule);
  }
}

void Faults::Tell(Quirk quirk, const std::string& what) {
  const uint32_t bit = 1U << static_cast<unsigned>(quirk);
  if ((told_.fetch_or(bit) & bit) != 0) return;
  Complain(
      fmt::format("{} quirk {}: {}", QuirkId(quirk), QuirkName(quirk), what));
}

void Faults::TellRule(Rule& rule, const std::string& what) {
  if (rule.n_told.fetch_add(1) >= kMaxTold) return;
  Complain(fmt::format("{} line {} of the fault script: {}", IdOf(rule.what),
                       rule.what.line, what));
}

// Counts one more piece of work that fits; whether the rule means it.
bool Faults::Counts(Rule& rule) {
  const uint64_t n = rule.n_seen.fetch_add(1) + 1;
  switch (rule.what.when) {
    case When::kAt:
      return n == rule.what.n;
    case When::kEvery:
      return n % rule.what.n == 0;
    case When::kFrom:
      return n >= rule.what.n;
  }
  return false;
}

void Faults::Apply(Rule& rule, Task* task, int device, unsigned stream) {
  const std::string place =
      fmt::format("{}, number {} that fits, on device {}, stream {}",
                  task->name, rule.n_seen.load(), device, stream);
  switch (rule.what.action) {
    case Action::kReturn: {
      const int code = rule.what.code;
      TellRule(rule, fmt::format("{} fails with {}", place, code));
      task->run = [code](const TaskRun&) { return FailAsTold(code); };
      return;
    }
    case Action::kHang:
      TellRule(rule, place + " hangs");
      task->run = Hang;
      return;
    case Action::kSlow:
      TellRule(rule, fmt::format("{} takes {} times as long", place,
                                 rule.what.factor));
      task->slow *= rule.what.factor;
      return;
    case Action::kIgnore:
      TellRule(rule,
               place + " is ignored: it reports success and does nothing");
      task->run = [](const TaskRun&) { return ACL_SUCCESS; };
      return;
    case Action::kLose:
      TellRule(rule, place + " loses the device");
      task->run = [this, device](const TaskRun&) {
        lost_[static_cast<size_t>(device)] = true;
        return FailAsTold(ACL_ERROR_RT_LOST_HEARTBEAT);
      };
      return;
    case Action::kMissing:
      return;
  }
}

void Faults::Arm(Task* task, int device, unsigned stream) {
  bool is_done = false;
  for (const auto& rule : rules_) {
    const FaultRule& what = rule->what;
    const bool is_named =
        what.name.empty() || what.name == FaultName(task->name);
    if (!FitsKind(what.what, task->kind) || !is_named ||
        what.action == Action::kMissing ||
        !FitsPlace(what, device, static_cast<int>(stream)) || !Counts(*rule)) {
      continue;
    }
    // The first rule that takes the work away wins; slowness adds up.
    if (is_done && what.action != Action::kSlow) continue;
    Apply(*rule, task, device, stream);
    is_done |= what.action != Action::kSlow;
  }
  if (!may_lose_ || !FitsKind(What::kTask, task->kind)) return;
  task->run = [this, device, run = std::move(task->run)](const TaskRun& r) {
    const int code = CheckLost(device);
    return code == 0 ? run(r) : code;
  };
}

int Faults::OnCall(What what, const char* name, int device, int stream) {
  if (const int code = CheckLost(device); code != 0) return code;
  for (const auto& rule : rules_) {
    const FaultRule& r = rule->what;
    const bool fits =
        r.name.empty()
            ? r.what == what || (r.what == What::kTask && what != What::kWait &&
                                 what != What::kMalloc)
            : r.name == FaultName(name);
    if (!fits || r.action != Action::kReturn || !FitsPlace(r, device, stream) ||
        !Counts(*rule)) {
      continue;
    }
    TellRule(*rule, fmt::format("{}, number {} that fits, on device {} fails "
                                "with {}",
                                name, rule->n_seen.load(), device, r.code));
    return FailAsTold(r.code);
  }
  return ACL_SUCCESS;
}

int Faults::OnMalloc(int device, size_t used_after) {
  if (const int code = OnCall(What::kMalloc, "aclrtMalloc", device, -1);
      code != 0) {
    return code;
  }
  for (const auto& rule : rules_) {
    const FaultRule& r = rule->what;
    if (r.what != What::kByte || !FitsPlace(r, device, -1) ||
        used_after <= r.n) {
      continue;
    }
    TellRule(*rule, fmt::format("device {} refuses to use {} bytes, more than "
                                "{}",
                                device, used_after, r.n));
    return FailAsTold(r.code);
  }
  return ACL_SUCCESS;
}

bool Faults::IsMissing(const char* op) {
  for (const auto& rule : rules_) {
    if (rule->what.action != Action::kMissing ||
        rule->what.name != FaultName(op)) {
      continue;
    }
    TellRule(*rule, fmt::format("{} is taken away from this chip", op));
    return true;
  }
  return false;
}

bool Faults::IsLost(int device) const {
  return may_lose_ && device >= 0 &&
         static_cast<size_t>(device) < lost_.size() &&
         lost_[static_cast<size_t>(device)].load();
}

int Faults::CheckLost(int device) {
  if (!IsLost(device)) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_LOST_HEARTBEAT, "device {}: {}", device,
              CodeText(ACL_ERROR_RT_LOST_HEARTBEAT));
}

}  // namespace cannsim
