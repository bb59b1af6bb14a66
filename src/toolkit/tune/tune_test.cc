// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

#include "base/error_ids.h"
#include "base/error_ids_toolkit.h"
#include "base/file.h"
#include "toolkit/tune/apply.h"
#include "toolkit/tune/bind.h"
#include "toolkit/tune/journal.h"
#include "toolkit/tune/measure.h"
#include "toolkit/tune/plan.h"

namespace belay::tune {
namespace {

namespace fs = std::filesystem;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

// Files of a kernel: a list with brackets takes one of its words, some files
// take nothing, and a process may be killed in the middle.
class FakeKernel : public doctor::Machine, public Writer {
 public:
  std::map<std::string, std::string> files;
  std::set<std::string> refuses;  // EIO, as interrupts that the kernel manages
  std::string keeps;              // takes every value and keeps its own
  int n_writes_to_live = 1 << 30;

  std::optional<std::string> Read(const std::string& path) override {
    const auto found = files.find(path);
    if (found == files.end()) return std::nullopt;
    return found->second;
  }
  doctor::PathState Stat(const std::string& path) override {
    doctor::PathState state;
    if (files.contains(path)) state.kind = doctor::PathKind::kFile;
    return state;
  }
  std::vector<std::string> List(const std::string& folder) override {
    std::set<std::string> names;
    for (const auto& [path, text] : files) {
      if (!path.starts_with(folder + "/")) continue;
      const size_t start = folder.size() + 1;
      names.insert(path.substr(start, path.find('/', start) - start));
    }
    return {names.begin(), names.end()};
  }
  doctor::CommandOutput Run(const std::string& command) override {
    doctor::CommandOutput output;
    if (command == "npu-smi info" && !smi.empty()) {
      output.is_found = true;
      output.status = 0;
      output.out = smi;
    }
    return output;
  }
  std::map<std::string, std::string> Variables() override { return {}; }
  std::string Arch() override { return "aarch64"; }
  std::optional<uint64_t> FreeBytes(const std::string& /*path*/) override {
    return std::nullopt;
  }
  std::optional<uint64_t> TotalBytes(const std::string& /*path*/) override {
    return std::nullopt;
  }
  std::optional<doctor::SharedObject> ReadLibrary(
      const std::string& /*path*/,
      const std::vector<std::string>& /*wanted*/) override {
    return std::nullopt;
  }

  Status Write(const std::string& path, const std::string& text) override {
    if (n_writes_to_live-- <= 0) throw std::runtime_error("killed");
    const auto found = files.find(path);
    if (found == files.end() || refuses.contains(path)) {
      return MakeError(kSysWriteFailed, {.where = path,
                                         .what = "Input/output error",
                                         .expected = "",
                                         .got = ""});
    }
    if (path == keeps) return absl::OkStatus();
    std::string& now = found->second;
    const size_t open = now.find('[');
    if (open == std::string::npos) {
      now = text + "\n";
      return absl::OkStatus();
    }
    now.erase(now.find(']'), 1);
    now.erase(open, 1);
    const size_t at = now.find(text);
    now.insert(at + text.size(), "]");
    now.insert(at, "[");
    return absl::OkStatus();
  }

  std::string smi;
};

constexpr char kPolicy[] = "/sys/devices/system/cpu/cpufreq/policy";

// Two nodes of 32 cores, two NPUs at each, everything as a distribution sets
// it.
FakeKernel TwoSockets() {
  FakeKernel kernel;
  auto& files = kernel.files;
  files["/proc/sys/kernel/random/boot_id"] = "boot-1\n";
  files["/proc/sys/kernel/numa_balancing"] = "1\n";
  files["/sys/module/pcie_aspm/parameters/policy"] =
      "default performance [powersave] powersupersave \n";
  files["/sys/devices/system/cpu/cpufreq/boost"] = "0\n";
  for (int policy = 0; policy < 64; ++policy) {
    const std::string root = fmt::format("{}{}/", kPolicy, policy);
    files[root + "scaling_governor"] = "powersave\n";
    files[root + "scaling_available_governors"] = "performance powersave\n";
    files[root + "scaling_max_freq"] = "2000000\n";
    files[root + "cpuinfo_max_freq"] = "2600000\n";
  }
  for (int node = 0; node < 2; ++node) {
    const std::string root =
        fmt::format("/sys/devices/system/node/node{}/", node);
    files[root + "cpulist"] = node == 0 ? "0-31\n" : "32-63\n";
    files[root + "meminfo"] =
        fmt::format("Node {} MemTotal: 1000000 kB\nNode {} MemFree: {} kB\n",
                    node, node, node == 0 ? 900000 : 500000);
  }
  const char* addresses[] = {"0000:01:00.0", "0000:02:00.0", "0000:81:00.0",
                             "0000:82:00.0"};
  for (int npu = 0; npu < 4; ++npu) {
    const std::string root =
        fmt::format("/sys/bus/pci/devices/{}/", addresses[npu]);
    files[root + "vendor"] = "0x19e5\n";
    files[root + "class"] = "0x120000\n";
    files[root + "numa_node"] = npu < 2 ? "0\n" : "1\n";
    files[root + "power/control"] = "auto\n";
    files[root + fmt::format("msi_irqs/{}", 100 + npu)] = "msi\n";
    files[fmt::format("/proc/irq/{}/smp_affinity_list", 100 + npu)] =
        npu == 0 ? "0-31\n" : "0-63\n";
    kernel.smi += fmt::format(
        "| {}     910B3 | OK | 93.4 37 0 / 0 |\n"
        "| 0           | {} | 0 0 / 0 3000 / 65536 |\n",
        npu, addresses[npu]);
  }
  files["/proc/self/status"] =
      "Cpus_allowed_list:\t0-63\nMems_allowed_list:\t0-1\n";
  return kernel;
}

Plan PlanOf(FakeKernel& kernel) {
  const doctor::Facts facts = doctor::ReadFacts(kernel);
  return MakePlan(kernel, facts, doctor::ReadHost(kernel, facts));
}

std::string WantedFor(const Plan& plan, const std::string& path) {
  for (const Setting& one : plan.settings) {
    if (one.path == path) return one.wanted;
  }
  return "";
}

TEST(PlanTest, ProposesFromTheTopology) {
  FakeKernel kernel = TwoSockets();
  const auto untouched = kernel.files;
  const Plan plan = PlanOf(kernel);
  EXPECT_EQ(kernel.files, untouched);
  // 64 governors, 64 limits and boost, balancing, 3 interrupts, ASPM, 4 devices
  EXPECT_THAT(plan.settings, SizeIs(64 + 65 + 1 + 3 + 5));
  EXPECT_EQ(WantedFor(plan, std::string(kPolicy) + "7/scaling_governor"),
            "performance");
  EXPECT_EQ(WantedFor(plan, std::string(kPolicy) + "7/scaling_max_freq"),
            "2600000");
  EXPECT_EQ(WantedFor(plan, "/proc/sys/kernel/numa_balancing"), "0");
  EXPECT_EQ(WantedFor(plan, "/sys/module/pcie_aspm/parameters/policy"),
            "performance");
  // Already within its node, so it stays; the others go to the cores that no
  // rank gets.
  EXPECT_EQ(WantedFor(plan, "/proc/irq/100/smp_affinity_list"), "");
  EXPECT_EQ(WantedFor(plan, "/proc/irq/101/smp_affinity_list"), "15,31");
  EXPECT_EQ(WantedFor(plan, "/proc/irq/102/smp_affinity_list"), "47,63");
  ASSERT_THAT(plan.bindings, SizeIs(4));
  EXPECT_EQ(CommandOf(plan.bindings[0]),
            "numactl --physcpubind=0-14 --preferred=0");
  EXPECT_EQ(CommandOf(plan.bindings[3]),
            "numactl --physcpubind=48-62 --preferred=1");
  EXPECT_EQ(AffinityVariable(plan.bindings),
            "CPU_AFFINITY_CONF=1,npu0:0-14,npu1:16-30,npu2:32-46,npu3:48-62");
  EXPECT_THAT(plan.advice, IsEmpty());
  for (const Setting& one : plan.settings) {
    EXPECT_TRUE(IsTunable(one.path)) << one.path;
  }
}

// Threads of one core belong to one rank.
TEST(PlanTest, SharesAreWholeCores) {
  FakeKernel kernel = TwoSockets();
  kernel.files["/sys/devices/system/node/node0/cpulist"] = "0-3,64-67\n";
  for (int cpu = 0; cpu < 4; ++cpu) {
    for (const int one : {cpu, cpu + 64}) {
      kernel.files[fmt::format(
          "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", one)] =
          fmt::format("{},{}\n", cpu, cpu + 64);
    }
  }
  const Plan plan = PlanOf(kernel);
  EXPECT_EQ(doctor::FormatCpuList(plan.bindings[0].cpus), "0-1,64-65");
  EXPECT_EQ(doctor::FormatCpuList(plan.bindings[1].cpus), "2-3,66-67");
  // Pieces cannot be written in that variable.
  EXPECT_EQ(AffinityVariable(plan.bindings), "");
}

TEST(PlanTest, TheTrapOfTheArticle) {
  FakeKernel kernel = TwoSockets();
  kernel.files["/proc/self/numa_maps"] =
      "7f0000000000 bind:0 anon=1 dirty=1 N0=1 kernelpagesize_kB=4\n";
  kernel.files["/proc/4711/numa_maps"] = "7f0000000000 bind:1 anon=1\n";
  kernel.smi +=
      "| NPU Chip | Process id | Process name | Process memory(MB) |\n"
      "| 0   0    | 4711       | python3      | 2000               |\n";
  const Plan plan = PlanOf(kernel);
  ASSERT_THAT(plan.advice, SizeIs(2));
  EXPECT_EQ(plan.advice[0].id, "HOST-004");
  EXPECT_THAT(plan.advice[0].evidence, HasSubstr("node 0, not 1"));
  EXPECT_THAT(plan.advice[1].evidence, HasSubstr("4711"));
  for (const Binding& one : plan.bindings) {
    EXPECT_THAT(CommandOf(one), Not(HasSubstr("membind")));
  }
  kernel.files["/proc/self/numa_maps"] = "7f0000000000 default anon=1\n";
  kernel.files["/proc/4711/numa_maps"] = "7f0000000000 bind:0-1 anon=1\n";
  EXPECT_THAT(PlanOf(kernel).advice, IsEmpty());
  kernel.files["/proc/self/status"] =
      "Cpus_allowed_list:\t0-31\nMems_allowed_list:\t0\n";
  ASSERT_THAT(PlanOf(kernel).advice, SizeIs(1));
  EXPECT_EQ(PlanOf(kernel).advice[0].id, "DOCT-061");
}

TEST(PlanTest, WhatOnlyAPersonCanMend) {
  FakeKernel kernel = TwoSockets();
  kernel.files["/run/irqbalance.pid"] = "1\n";
  const std::string root = "/sys/bus/pci/devices/0000:01:00.0/";
  kernel.files[root + "current_link_width"] = "8\n";
  kernel.files[root + "max_link_width"] = "16\n";
  kernel.files["/sys/bus/pci/devices/0000:82:00.0/numa_node"] = "-1\n";
  std::set<std::string> ids;
  for (const Advice& one : PlanOf(kernel).advice) ids.insert(one.id);
  EXPECT_THAT(ids, testing::ElementsAre("DOCT-064", "DOCT-069", "TUNE-010"));
}

TEST(PlanTest, OneNodeWithoutNpusNeedsNoPlacing) {
  FakeKernel kernel;
  kernel.files["/sys/devices/system/node/node0/cpulist"] = "0-3\n";
  kernel.files["/proc/sys/kernel/numa_balancing"] = "1\n";
  const Plan plan = PlanOf(kernel);
  EXPECT_THAT(plan.settings, IsEmpty());
  EXPECT_THAT(plan.bindings, IsEmpty());
}

TEST(PlanTest, Tunables) {
  for (const char* path :
       {"/etc/passwd", "/proc/irq/../x/smp_affinity_list", "",
        "/proc/irq//smp_affinity_list", "/proc/irq/1/smp_affinity_list/x",
        "/sys/bus/pci/devices/../../x/power/control",
        "/sys/bus/pci/devices/..:/power/control",
        "/sys/devices/system/cpu/cpufreq/policy0/../scaling_governor",
        "/proc/sys/kernel/core_pattern"}) {
    EXPECT_FALSE(IsTunable(path)) << path;
  }
  EXPECT_EQ(ValueOf("always [madvise] never\n"), "madvise");
  EXPECT_EQ(ValueOf(" 0-3\n"), "0-3");
  EXPECT_EQ(ValueOf("] x ["), "] x [");
}

class ApplyTest : public testing::Test {
 protected:
  ApplyTest()
      : record_((fs::temp_directory_path() /
                 fmt::format("belay_tune_{}.json", getpid()))
                    .string()) {
    fs::remove(record_);
  }
  ~ApplyTest() override {
    std::error_code ignored;
    fs::remove(record_, ignored);
  }
  Target target() { return {kernel_, kernel_}; }
  StatusOr<std::vector<TopicResult>> Run(MeasureFn measure = nullptr) {
    ApplyOptions options;
    options.record = record_;
    options.measure = std::move(measure);
    options.stop = &stop_;
    return Apply(PlanOf(kernel_), target(), options);
  }

  std::string record_;
  FakeKernel kernel_ = TwoSockets();
  const std::map<std::string, std::string> before_ = kernel_.files;
  std::atomic<bool> stop_ = false;
};

TEST_F(ApplyTest, AppliesEverythingAndRevertsExactly) {
  const auto results = Run();
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_THAT(*results, SizeIs(5));
  EXPECT_THAT(PlanOf(kernel_).settings, IsEmpty());
  EXPECT_EQ(kernel_.files["/sys/module/pcie_aspm/parameters/policy"],
            "default [performance] powersave powersupersave \n");
  EXPECT_TRUE(fs::exists(record_));
  const auto reverted = Revert(target(), record_);
  ASSERT_TRUE(reverted.ok()) << reverted.status();
  EXPECT_THAT(reverted->restored, SizeIs(64 + 65 + 1 + 3 + 5));
  EXPECT_EQ(kernel_.files, before_);
  EXPECT_FALSE(fs::exists(record_));
  EXPECT_EQ(ErrorIdOf(Revert(target(), record_).status()), "SYS-001");
}

// Only the interrupts make the machine faster.
TEST_F(ApplyTest, KeepsOnlyWhatHelps) {
  const auto results = Run([&]() -> StatusOr<std::vector<double>> {
    const bool is_better =
        kernel_.files["/proc/irq/101/smp_affinity_list"] == "15,31\n";
    return std::vector<double>{is_better ? 2.0 : 1.0, is_better ? 2.1 : 1.1};
  });
  ASSERT_TRUE(results.ok()) << results.status();
  for (const TopicResult& one : *results) {
    EXPECT_EQ(one.is_kept, one.topic == Topic::kInterrupts)
        << NameOf(one.topic);
  }
  auto expected = before_;
  expected["/proc/irq/101/smp_affinity_list"] = "15,31\n";
  expected["/proc/irq/102/smp_affinity_list"] = "47,63\n";
  expected["/proc/irq/103/smp_affinity_list"] = "47,63\n";
  EXPECT_EQ(kernel_.files, expected);
  ASSERT_TRUE(Revert(target(), record_).ok());
  EXPECT_EQ(kernel_.files, before_);
}

TEST_F(ApplyTest, NoiseKeepsNothing) {
  int n = 0;
  const auto results = Run([&]() -> StatusOr<std::vector<double>> {
    ++n;
    return std::vector<double>{1.0 + 0.01 * n, 0.9, 1.2};
  });
  ASSERT_TRUE(results.ok());
  for (const TopicResult& one : *results) EXPECT_FALSE(one.is_kept);
  EXPECT_EQ(kernel_.files, before_);
  EXPECT_FALSE(fs::exists(record_));
}

// Whatever write is the last of a process that is killed.
TEST_F(ApplyTest, KilledAnywhereIsRevertable) {
  for (const int n : {0, 1, 63, 64, 100, 130, 133, 137}) {
    kernel_.n_writes_to_live = n;
    EXPECT_THROW((void)Run(), std::runtime_error) << n;
    kernel_.n_writes_to_live = 1 << 30;
    // A second start does not lose the old values.
    EXPECT_EQ(ErrorIdOf(Run().status()), "TUNE-001");
    ASSERT_TRUE(Revert(target(), record_).ok());
    EXPECT_EQ(kernel_.files, before_) << n;
  }
}

TEST_F(ApplyTest, InterruptsAndErrorsTakeEverythingBack) {
  int n = 0;
  const auto stopped = Run([&]() -> StatusOr<std::vector<double>> {
    if (++n == 4) stop_ = true;
    return std::vector<double>{1.0 * n};
  });
  EXPECT_EQ(ErrorIdOf(stopped.status()), "SYS-004");
  EXPECT_EQ(kernel_.files, before_);
  EXPECT_FALSE(fs::exists(record_));
  stop_ = false;
  n = 0;
  const auto failed = Run([&]() -> StatusOr<std::vector<double>> {
    if (++n < 4) return std::vector<double>{1.0 * n};
    return MakeError(kTuneMeasure,
                     {.where = "x", .what = "", .expected = "", .got = ""});
  });
  EXPECT_EQ(ErrorIdOf(failed.status()), "TUNE-004");
  EXPECT_EQ(kernel_.files, before_);
}

TEST_F(ApplyTest, RefusalsAreTold) {
  kernel_.refuses.insert("/proc/irq/102/smp_affinity_list");
  kernel_.keeps = "/proc/sys/kernel/numa_balancing";
  const auto results = Run();
  ASSERT_TRUE(results.ok());
  for (const TopicResult& one : *results) {
    if (one.topic == Topic::kInterrupts) {
      ASSERT_THAT(one.refusals, SizeIs(1));
      EXPECT_THAT(one.refusals[0].why, HasSubstr("Input/output error"));
      EXPECT_EQ(one.n_changed, 2u);
    } else if (one.topic == Topic::kNumaBalancing) {
      EXPECT_THAT(one.refusals, SizeIs(1));
      EXPECT_FALSE(one.is_kept);
    } else {
      EXPECT_THAT(one.refusals, IsEmpty());
    }
  }
  ASSERT_TRUE(Revert(target(), record_).ok());
  EXPECT_EQ(kernel_.files, before_);
}

TEST_F(ApplyTest, WhatCannotBeRestoredIsTold) {
  ASSERT_TRUE(Run().ok());
  const std::string path = std::string(kPolicy) + "3/scaling_governor";
  kernel_.refuses.insert(path);
  const Status status = Revert(target(), record_).status();
  EXPECT_EQ(ErrorIdOf(status), "TUNE-003");
  EXPECT_THAT(std::string(status.message()), HasSubstr(path));
  EXPECT_TRUE(fs::exists(record_));
  kernel_.refuses.clear();
  const auto again = Revert(target(), record_);
  ASSERT_TRUE(again.ok());
  EXPECT_THAT(again->restored, SizeIs(1));
  EXPECT_EQ(kernel_.files, before_);
}

// Numbers of interrupts and files change with a restart, settings end with it.
TEST_F(ApplyTest, ARecordOfAnotherBootIsStale) {
  ASSERT_TRUE(Run().ok());
  kernel_ = TwoSockets();
  kernel_.files["/proc/sys/kernel/random/boot_id"] = "boot-2\n";
  const auto after_boot = kernel_.files;
  const auto reverted = Revert(target(), record_);
  ASSERT_TRUE(reverted.ok());
  EXPECT_TRUE(reverted->is_stale);
  EXPECT_EQ(kernel_.files, after_boot);
}

TEST_F(ApplyTest, NothingIsChangedWithoutARecord) {
  record_ = "/there/is/no/such/folder/tune.json";
  EXPECT_EQ(ErrorIdOf(Run().status()), "SYS-002");
  EXPECT_EQ(kernel_.files, before_);
}

TEST(JournalTest, BelievesOnlySettings) {
  Journal journal{
      "b",
      {{{Topic::kInterrupts, "/proc/irq/5/smp_affinity_list", "0-3", "2"},
        ChangeState::kKept}}};
  const auto again = ParseJournal(JournalToJson(journal), "x");
  ASSERT_TRUE(again.ok()) << again.status();
  ASSERT_THAT(again->changes, SizeIs(1));
  EXPECT_EQ(again->changes[0].setting.now, "0-3");
  EXPECT_EQ(again->changes[0].state, ChangeState::kKept);
  const auto with = [&](const std::string& path, const std::string& old) {
    journal.changes[0].setting.path = path;
    journal.changes[0].setting.now = old;
    return ErrorIdOf(ParseJournal(JournalToJson(journal), "x").status());
  };
  EXPECT_EQ(with("/etc/passwd", "0"), "TUNE-002");
  EXPECT_EQ(with("/proc/irq/5/smp_affinity_list", "0\n1"), "TUNE-002");
  EXPECT_EQ(with("/proc/irq/5/smp_affinity_list", ""), "TUNE-002");
  EXPECT_EQ(with("/proc/irq/5/smp_affinity_list", "0"), "");
  for (const char* text :
       {"", "{}", "[]", R"({"format": 1, "changes": [1]})",
        R"({"format": 1, "changes": 1})", R"({"format": 2, "changes": []})"}) {
    EXPECT_EQ(ErrorIdOf(ParseJournal(text, "x").status()), "TUNE-002") << text;
  }
}

TEST(BindTest, Chooses) {
  FakeKernel kernel = TwoSockets();
  const auto choose = [&](const BindRequest& request) {
    const doctor::Facts facts = doctor::ReadFacts(kernel);
    return ChooseBinding(doctor::ReadHost(kernel, facts), request);
  };
  EXPECT_EQ(choose({})->node, -1);  // all cores of all nodes
  // 500000 kB are free on node 1, more on node 0.
  EXPECT_EQ(choose({.n_threads = 8, .bytes = 1 << 20})->node, 0);
  EXPECT_EQ(choose({.n_threads = 33, .bytes = 1 << 20})->node, -1);
  EXPECT_EQ(choose({.n_threads = 8, .bytes = uint64_t{1} << 40})->node, -1);
  EXPECT_EQ(choose({.node = 1})->node, 1);
  EXPECT_EQ(ErrorIdOf(choose({.node = 7}).status()), "ARG-001");
  EXPECT_EQ(choose({.on_npu = true})->node, -1);  // at both
  for (const char* address : {"81", "82"}) {
    kernel.files[std::string("/sys/bus/pci/devices/0000:") + address +
                 ":00.0/class"] = "0x020000\n";
  }
  EXPECT_EQ(choose({.on_npu = true})->node, 0);
  kernel.files["/proc/self/status"] = "Cpus_allowed_list:\t32-63\n";
  EXPECT_EQ(ErrorIdOf(choose({.on_npu = true}).status()), "ARG-001");
  EXPECT_EQ(choose({.n_threads = 8})->node, 1);
}

// On a thread of its own: a test must not stay bound.
TEST(BindTest, BindsAndMemoryStaysInReach) {
  std::thread([] {
    cpu_set_t allowed;
    ASSERT_EQ(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
    int cpu = 0;
    while (CPU_ISSET(static_cast<size_t>(cpu), &allowed) == 0) ++cpu;
    ASSERT_TRUE(Bind({0, {cpu}, ""}).ok());
    cpu_set_t now;
    ASSERT_EQ(sched_getaffinity(0, sizeof(now), &now), 0);
    EXPECT_EQ(CPU_COUNT(&now), 1);
    const auto maps = ReadFile("/proc/thread-self/numa_maps", 1 << 20);
    if (maps.ok()) {
      EXPECT_THAT(*maps, Not(HasSubstr(" bind:")));
    }
  }).join();
  EXPECT_TRUE(Bind({-1, {}, ""}).ok());
}

TEST(MeasureTest, RunsOfBothKinds) {
  const auto copies = MeasureBandwidth(2, 2, 1 << 16);
  ASSERT_TRUE(copies.ok());
  EXPECT_THAT(*copies, SizeIs(2));
  EXPECT_THAT(*copies, Each(testing::Gt(0)));
  EXPECT_THAT(MeasureCommand({"true"}, 2).value(), SizeIs(2));
  EXPECT_EQ(ErrorIdOf(MeasureCommand({"false"}, 1).status()), "TUNE-004");
  EXPECT_EQ(ErrorIdOf(MeasureCommand({"no-such-program"}, 1).status()),
            "TUNE-004");
  EXPECT_TRUE(Helps({1, 2}, {3, 4}));
  EXPECT_FALSE(Helps({1, 3}, {3, 4}));
  EXPECT_FALSE(Helps({}, {}));
}

}  // namespace
}  // namespace belay::tune
