// SPDX-License-Identifier: Apache-2.0
#include "toolkit/logs/parse/rules.h"

#include <algorithm>
#include <map>
#include <utility>

namespace belay::logs {
namespace {

struct TierLine {
  std::string_view prefix;  // of the id
  Tier tier;
};

// The longest prefix counts.
constexpr TierLine kTiers[] = {
    {"", Tier::kFault},
    {"ACL-", Tier::kSymptom},
    {"ACL-016", Tier::kWrapper},
    {"ACLNN-", Tier::kSymptom},
    {"ACLNN-004", Tier::kWrapper},
    {"ACLNN-006", Tier::kRoot},
    {"ACLNN-007", Tier::kWrapper},
    {"DCMI-", Tier::kRoot},
    {"DRV-", Tier::kSymptom},
    {"DRV-004", Tier::kRoot},
    {"DRV-011", Tier::kRoot},
    {"ESTR-015", Tier::kRoot},  // illegal variable
    {"ESTR-017", Tier::kWrapper},
    {"ESTR-021", Tier::kRoot},  // operator package against driver
    {"ESTR-022", Tier::kRoot},  // scheduler on the device
    {"ESTR-024", Tier::kRoot},  // Python modules of the compiler
    {"ESTR-035", Tier::kRoot},  // illegal argument, tells which
    {"ESTR-036", Tier::kWait},  // stream synchronisation timed out
    {"ESTR-038", Tier::kRoot},  // driver too old
    {"ESTR-040", Tier::kWrapper},
    {"ESTR-042", Tier::kWrapper},
    {"ESTR-043", Tier::kWait},  // notify wait
    {"ESTR-045", Tier::kRoot},  // rank table
    {"ESTR-046", Tier::kWait},  // socket
    {"ESTR-047", Tier::kRoot},  // HCCL resources
    {"ESTR-048", Tier::kRoot},  // versions differ
    {"ESTR-050", Tier::kWait},  // negotiation
    {"ESTR-051", Tier::kRoot},  // TLS
    {"ESTR-052", Tier::kRoot},  // port
    {"ESTR-053", Tier::kWrapper},
    {"ESTR-055", Tier::kRoot},  // driver refuses the device
    {"ESTR-056", Tier::kRoot},  // device memory
    {"ESTR-057", Tier::kRoot},
    {"ESTR-063", Tier::kRoot},  // HCCL_BUFFSIZE and tiling
    {"ESTR-064", Tier::kRoot},  // hardware event
    {"ESTR-065", Tier::kSymptom},
    {"ESTR-067", Tier::kWrapper},
    {"EVENT-", Tier::kRoot},
    {"GE-", Tier::kSymptom},
    {"GE-005", Tier::kRoot},
    {"HCCL-", Tier::kSymptom},
    {"HCCL-003", Tier::kRoot},
    {"HCCL-004", Tier::kWrapper},
    {"HCCL-007", Tier::kWait},
    {"HCCL-010", Tier::kFault},
    {"INST-", Tier::kRoot},
    {"ISSUE-", Tier::kRoot},
    {"ISSUE-007", Tier::kSymptom},
    {"ISSUE-041", Tier::kWait},  // an RPC timed out
    {"ISSUE-042", Tier::kWait},
    {"ISSUE-110", Tier::kSymptom},
    {"ISSUE-126", Tier::kSymptom},  // health; the event beside it says more
    {"LOGS-", Tier::kRoot},
    {"PTA-001", Tier::kEffect},
    {"PTA-002", Tier::kRoot},
    {"RT-003", Tier::kRoot},  // invisible device
    {"RT-012", Tier::kSymptom},
    {"RT-022", Tier::kRoot},     // memory
    {"RT-025", Tier::kSymptom},  // no device; what hides it says more
    {"RT-026", Tier::kRoot},     // streams, events used up
    {"RT-030", Tier::kSymptom},
    {"RT-037", Tier::kSymptom},
    {"RT-038", Tier::kSymptom},  // SDMA
    {"RT-045", Tier::kSymptom},  // SetDevice
    {"RT-049", Tier::kWait},     // host waited too long
    {"RT-050", Tier::kRoot},     // memory fault
    {"RT-051", Tier::kSymptom},
    {"RT-053", Tier::kSymptom},
    {"RT-057", Tier::kWrapper},
    {"TRIAGE-004", Tier::kRoot},
};

constexpr uint8_t kNeedsAscend = Rule::kNeedsAscend;
constexpr uint8_t kWeak = Rule::kWeak;

constexpr std::string_view kNoLibrary = "cannot open shared object file";
constexpr std::string_view kNoSymbol = "undefined symbol";

std::vector<Rule> MachineRules() {
  return {
      // Memory
      {"RT-022", {"npu out of memory"}},
      {"RT-022", {"alloc device memory failed"}, {"207000"}, kWeak},
      {"RT-022", {"memory_allocation_failure"}, {}, kWeak},
      {"DRV-004", {"halmemalloc", "fail"}, {}, kWeak},
      {"ISSUE-011", {"available kv cache memory: -"}},
      {"ISSUE-011", {"no available memory for the cache blocks"}},
      {"ISSUE-111", {"free memory on device", "less than desired"}},
      {"LOGS-020", {"out of memory: kill"}},
      {"LOGS-020", {"oom-kill:"}, {}, kWeak},
      {"LOGS-023", {"no space left on device"}},
      {"LOGS-024", {"insufficient shared memory"}},
      // Containers and devices
      {"ISSUE-112", {"of visible devices (0)"}},
      {"ISSUE-110", {"drvmnggetconsoleloglevel failed"}},
      {"ISSUE-108", {"failed to initialize dcmi"}},
      {"ISSUE-108", {"dcmierror_librarynotfound"}},
      {"ISSUE-108", {"libdcmi.so", "cannot open"}},
      {"ISSUE-108", {"libdcmi.so", "not found"}},
      {"ISSUE-125", {"invalid card id"}, {}, kNeedsAscend},
      {"RT-003", {"set visible device failed"}},
      {"ESTR-035", {"must be configured in ascending order"}},
      {"ISSUE-121", {"rtgetdeviceindexbyphyid", "fail"}},
      {"ACL-016", {"init runtime platform info failed"}},
      {"ESTR-021", {"failed to verify the opp"}, {}, kWeak},
      {"RT-045", {"failed to start the device"}, {}, kWeak},
      {"RT-045", {"[ascend] [error]", "start", "fail"}, {}, kWeak},
      {"RT-045", {"[ascend] [error]", "boot", "fail"}, {}, kWeak},
      {"TRIAGE-004", {"ascend: device", "init failed"}},
      {"INST-005", {"failed to load firmware"}, {}, kNeedsAscend},
      {"ISSUE-122", {"halhostregister", "65534"}},
  };
}

std::vector<Rule> SoftwareRules() {
  return {
      // Libraries
      {"ISSUE-105", {"libatb.so", kNoLibrary}},
      {"ISSUE-106", {"libhccl.so", kNoLibrary}},
      {"ISSUE-106", {"failed to infer device type"}, {}, kWeak},
      {"ISSUE-107", {"libascend_hal.so", kNoLibrary}},
      {"ISSUE-109", {"ascend_transport.so", kNoLibrary}},
      {"INST-006", {"dump.so", kNoLibrary}},
      {"ISSUE-104", {kNoSymbol, "_zn3mki"}},
      {"ISSUE-103", {kNoSymbol, "msprofsyscycletime"}},
      {"LOGS-021", {kNoSymbol, "atb"}, {"_zn3mki"}},
      {"INST-006", {kNoSymbol, "torch_npu"}, {"atb", "msprofsys"}},
      {"INST-006", {kNoSymbol, "aclrt"}, {"atb"}},
      {"INST-006", {kNoSymbol, "/ascend/"}, {"atb", "msprofsys"}},
      // The chip
      {"ISSUE-113", {"can not support soc_version"}},
      {"ISSUE-114", {"does not match", "installed version's device type"}},
      {"ISSUE-114", {"soc_version", "not support"}, {"can not support soc_"}},
      {"ISSUE-114", {"soc_version", "unsupported"}},
      {"ISSUE-114", {"soc version", "not support"}, {}, kNeedsAscend},
      {"ISSUE-114", {"soc version", "unsupported"}, {}, kNeedsAscend},
      {"ISSUE-044", {"float8_e", "not support"}, {}, kNeedsAscend},
  };
}

std::vector<Rule> KernelRules() {
  return {
      // Kernels
      {"RT-040", {"address of the mte instruction is out of range"}},
      {"RT-040", {"aicore error exception"}, {}, kWeak},
      {"RT-040", {"aicore execution is abnormal"}, {}, kWeak},
      {"RT-040", {"[aicore exception]"}, {}, kWeak},
      {"RT-039", {"aicore execution times out"}, {}, kWeak},
      {"RT-039", {"aicore timeout"}, {}, kWeak},
      {"RT-046", {"vector core timeout"}, {}, kWeak},
      {"RT-046", {"vector core execution times out"}, {}, kWeak},
      {"RT-047", {"ub address out of bounds"}},
      {"RT-047", {"mpu address access is invalid"}},
      {"RT-047", {"d-cache reads and writes data to the ub"}},
      {"RT-047", {"unaligned uub"}},
      {"ISSUE-077", {"ub address", "vec instruction", "not aligned"}},
      {"RT-047", {"vector core exception"}, {}, kWeak},
      {"RT-047", {"vector core execution is abnormal"}, {}, kWeak},
      {"RT-047", {"aivec error"}, {}, kWeak},
      {"RT-041", {"aicpu exception"}, {}, kWeak},
      {"RT-041", {"aicpu execution is abnormal"}, {}, kWeak},
      {"RT-041", {"aicpu", "sq", "exception status"}, {}, kWeak},
      {"RT-041", {"[error] hccl(", "aicpu"}, {}, kWeak},
      {"RT-038", {"system direct memory access"}, {}, kWeak},
      {"RT-038", {"sdma error"}, {"there is a sdma"}, kWeak},
      {"RT-012", {"reason=[task timeout]"}, {}, kWeak},
      {"RT-050", {"uncorrectable memory error"}, {}, kNeedsAscend},
      {"ISSUE-007", {"aicpukfcrpcserver", "timeout"}},
      {"DRV-003", {"trssqcqquery", "invalid para"}},
      {"ACLNN-006", {"parse dynamic kernel config fail"}},
      {"ACLNN-006", {"failed to parsedynamickernels"}},
      {"ACLNN-006", {"aclopkernelinit failed"}},
      {"ESTR-063", {"hccl_buffsize", "too small"}},
      {"STRM-010", {"expected all tensors to be on the same device", "npu"}},
      // The operator compiler's Python
      {"ESTR-024", {"no module named 'tbe'"}},
      {"ESTR-024", {"no module named 'te'"}},
      {"ESTR-024", {"failed to import python module"}, {}, kNeedsAscend},
      {"ESTR-024", {"np.float_", "was removed"}, {}, kNeedsAscend},
  };
}

std::vector<Rule> SystemRules() {
  return {
      // Communication
      {"ESTR-050", {"topo exchange", "timeout"}},
      {"ESTR-050", {"failed to connect agent"}},
      {"ESTR-050", {"rankinfodetect setupagent fail"}},
      {"ESTR-050", {"need connect ranknum is"}},
      {"ESTR-046", {"get socket timeout"}, {"topo exchange"}},
      {"ESTR-046", {"wait socket establish timeout"}},
      {"ESTR-046", {"link_error_info"}},
      {"ESTR-046", {"connect timeout detect result"}},
      {"ESTR-046", {"linksestablishcompleted", "fail"}},
      {"ESTR-046", {"linkinfo", "time out"}},
      {"ESTR-043", {"notify register times out"}, {}, kWeak},
      {"ESTR-049", {"create transport fail"}, {}, kWeak},
      {"ESTR-051", {"for config \"tls\""}},
      {"ESTR-051", {"ranklist for enabled tls"}},
      {"ESTR-052", {"listen on ip", "fail"}, {}, kNeedsAscend},
      {"ESTR-052", {"failed to bind the ip port"}, {}, kWeak},
      {"ESTR-052", {"host nic listen start failed"}},
      {"ESTR-015", {"by hccl_socket_ifname, but not found"}},
      {"ESTR-015", {"get host ip fail by socket ifname"}, {}, kWeak},
      {"ESTR-015", {"for environment variable hccl_", "is invalid"}, {}, kWeak},
      {"HCCL-010", {"error cqe"}},
      {"HCCL-010", {"cqe status"}, {}, kNeedsAscend},
      {"RT-051", {"suspect remote error"}, {}, kWeak},
      {"ISSUE-123", {"hccl fftsplus task timeout"}},
      {"ISSUE-058", {"failed to connect to target"}, {}, kNeedsAscend},
      // Hardware events
      {"EVENT-003", {"[ascend]", "heartbeat lost"}},
      {"EVENT-003", {"heart_beat_judge"}, {}, kWeak},
      {"EVENT-001", {"multi ecc err"}},
      {"EVENT-001", {"multi bit ecc"}, {}, kNeedsAscend},
      {"EVENT-001", {"multi-bit ecc"}, {}, kNeedsAscend},
      {"ISSUE-124", {"cma_alloc", "fail"}, {}, kNeedsAscend},
      {"ISSUE-124", {"cma", "alloc failed"}, {}, kNeedsAscend},
      // Serving engines
      {"ISSUE-041", {"rpc call to", "timed out"}},
      {"ISSUE-042", {"event wait timeout"}, {}, kNeedsAscend},
      {"ISSUE-053", {"invalid tool call parser"}},
      {"ISSUE-053", {"invalid reasoning parser"}},
      {"ISSUE-003", {"unrecognized arguments", "--attention"}},
      {"ISSUE-089", {"hidden in should be smaller than hidden out"}},
      {"ISSUE-090", {"ascendrmsnorm", "has no attribute"}},
      {"ISSUE-076", {"flash_attn seems to be not installed"}},
  };
}

std::vector<Rule> MakeRules() {
  std::vector<Rule> rules;
  for (const auto& part :
       {MachineRules(), SoftwareRules(), KernelRules(), SystemRules()}) {
    rules.insert(rules.end(), part.begin(), part.end());
  }
  // The libraries of CANN that a program finds only with set_env.sh.
  for (const std::string_view library :
       {"libascendcl.so", "libge_runner.so", "libgraph.so", "libruntime.so",
        "libopapi.so", "libnnopbase.so", "libtorch_npu.so", "libmsprofiler",
        "libacl_", "libplatform.so", "liberror_manager.so", "libascendalog",
        "libc_sec.so", "libunified_dlog", "libhcom", "libcann", "libaclnn"}) {
    rules.push_back({"PTA-002", {library, kNoLibrary}});
  }
  // What TBE imports; missing in the Python that runs the compiler.
  for (const std::string_view module :
       {"no module named 'decorator'", "no module named 'attr'",
        "no module named 'psutil'", "no module named 'synr'",
        "no module named 'cffi'", "no module named 'sympy'",
        "no module named 'scipy'", "no module named 'absl'",
        "no module named 'cloudpickle'", "no module named 'tornado'",
        "no module named 'ml_dtypes'", "no module named 'numpy'"}) {
    rules.push_back({"ESTR-024", {module}, {}, kNeedsAscend});
  }
  return rules;
}

struct TriggerWord {
  std::string_view word;
  Trigger trigger;
};

constexpr TriggerWord kTriggerWords[] = {
    {"error", Trigger::kError},
    {"fail", Trigger::kError},
    {"exception", Trigger::kError},
    {"fatal", Trigger::kError},
    {"timeout", Trigger::kError},
    {"timed out", Trigger::kError},
    {"errno", Trigger::kError},
    {"retcode", Trigger::kError},
    {"ret_code", Trigger::kError},
    {"errcode", Trigger::kError},
    {"ret is", Trigger::kError},
    {"runtime result", Trigger::kError},
    {"event id=", Trigger::kError},
    {"inner error", Trigger::kError},
    {"e69999", Trigger::kError},
    {"[pid:", Trigger::kError},
    {"traceback (most recent call last)", Trigger::kTraceback},
    {"segmentation fault", Trigger::kFatal},
    {"core dumped", Trigger::kFatal},
    {"bus error", Trigger::kFatal},
    {"terminate called", Trigger::kFatal},
    {"sigsegv", Trigger::kFatal},
    {"sigabrt", Trigger::kFatal},
    {"sigkill", Trigger::kFatal},
    {"killed", Trigger::kFatal},
    {"ascend", Trigger::kAscend},
    {"davinci", Trigger::kAscend},
    {" npu", Trigger::kAscend},  // alone it is in "input"
    {"npu:", Trigger::kAscend},
    {"npu-smi", Trigger::kAscend},
    {"torch.npu", Trigger::kAscend},
    {"hccl", Trigger::kAscend},
    {"aclnn", Trigger::kAscend},
    {"aclrt", Trigger::kAscend},
    {"torch_npu", Trigger::kAscend},
    {"processing accelerators: huawei", Trigger::kAscend},
    {"version", Trigger::kVersion},
    {"torch-npu==", Trigger::kVersion},
    {"torch_npu==", Trigger::kVersion},
    {"vllm-ascend==", Trigger::kVersion},
    {"vllm_ascend==", Trigger::kVersion},
    {"health status", Trigger::kSmi},
    {"| warning ", Trigger::kSmi},
    {"| alarm ", Trigger::kSmi},
    {"| critical ", Trigger::kSmi},
};

}  // namespace

std::string_view NameOf(Tier tier) {
  static constexpr std::string_view kNames[] = {"root",    "fault",  "symptom",
                                                "wrapper", "effect", "wait"};
  return kNames[static_cast<size_t>(tier)];
}

Tier TierOf(std::string_view entry_id) {
  const TierLine* best = &kTiers[0];
  for (const TierLine& line : kTiers) {
    if (entry_id.starts_with(line.prefix) &&
        line.prefix.size() >= best->prefix.size()) {
      best = &line;
    }
  }
  return best->tier;
}

std::span<const Rule> Rules() {
  static const std::vector<Rule> rules = MakeRules();
  return rules;
}

RuleSet::RuleSet() {
  std::map<std::string_view, uint16_t> index;
  const auto index_of = [&](std::string_view text) {
    const auto [at, is_new] =
        index.emplace(text, static_cast<uint16_t>(patterns_.size()));
    if (is_new) {
      patterns_.push_back(text);
      triggers_.push_back(0);
      rules_with_.emplace_back();
    }
    return at->second;
  };
  for (const TriggerWord& word : kTriggerWords) {
    triggers_[index_of(word.word)] |=
        static_cast<uint8_t>(1U << static_cast<unsigned>(word.trigger));
  }
  for (const Rule& rule : Rules()) {
    Compiled compiled{.rule = &rule, .all = {}, .none = {}};
    for (const auto text : rule.all) compiled.all.push_back(index_of(text));
    for (const auto text : rule.none) compiled.none.push_back(index_of(text));
    rules_with_[compiled.all[0]].push_back(
        static_cast<uint16_t>(compiled_.size()));
    compiled_.push_back(std::move(compiled));
  }
  matcher_.emplace_back(patterns_);
}

void RuleSet::Find(std::string_view line, Found& found) const {
  found.rules.clear();
  found.triggers = 0;
  PatternSet patterns;
  if (!matcher_[0].Find(line, patterns)) return;
  const auto test = [&](uint16_t pattern) { return patterns.test(pattern); };
  // libstdc++'s own way from bit to bit: few of hundreds are set.
  for (size_t p = patterns._Find_first(); p < patterns_.size();
       p = patterns._Find_next(p)) {
    found.triggers |= triggers_[p];
    for (const uint16_t r : rules_with_[p]) {
      const Compiled& compiled = compiled_[r];
      if (std::all_of(compiled.all.begin(), compiled.all.end(), test) &&
          std::none_of(compiled.none.begin(), compiled.none.end(), test)) {
        found.rules.push_back(compiled.rule);
      }
    }
  }
  std::sort(found.rules.begin(), found.rules.end());
}

}  // namespace belay::logs
