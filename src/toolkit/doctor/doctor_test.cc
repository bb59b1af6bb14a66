// SPDX-License-Identifier: Apache-2.0
#include "toolkit/doctor/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "base/file.h"
#include "toolkit/doctor/facts/npu_smi.h"
#include "toolkit/doctor/facts/version.h"
#include "toolkit/doctor/machine/live.h"
#include "toolkit/doctor/machine/recorded.h"
#include "toolkit/doctor/report/report.h"

namespace belay::doctor {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

TEST(VersionTest, Order) {
  const char* ascending[] = {
      "7.0.T10",      "7.0.0",    "8.0.RC3.alpha003", "8.0.RC3",  "8.0.0",
      "8.1.RC1",      "8.3.RC1",  "8.3.RC2",          "8.5.0",    "8.5.1",
      "9.0.0-beta.2", "9.0.0",    "23.0.7",           "24.1.rc2", "24.1.rc3",
      "24.1.0",       "24.1.0.3", "25.0.rc1.1",       "25.3.rc1", "25.7.rc1",
      "25.7.rc1.1"};
  for (size_t i = 0; i + 1 < std::size(ascending); ++i) {
    EXPECT_LT(CompareVersions(ascending[i], ascending[i + 1]), 0)
        << ascending[i] << " " << ascending[i + 1];
    EXPECT_GT(CompareVersions(ascending[i + 1], ascending[i]), 0);
  }
  EXPECT_EQ(CompareVersions("v0.11.0", "0.11"), 0);
  EXPECT_EQ(CompareVersions("2.9.0+cpu", "2.9.0"), 0);
  EXPECT_EQ(CompareVersions("25.3.RC1", "25.3.rc1"), 0);
  EXPECT_TRUE(IsSameRelease("8.5.0", "8.5.1", 2));
  EXPECT_FALSE(IsSameRelease("8.3.RC1", "8.5.0", 2));
  EXPECT_EQ(BaseVersion("v2.9.0.post2"), "2.9.0");
  EXPECT_EQ(BaseVersion("2.7.1.dev20250724"), "2.7.1");
  EXPECT_EQ(BaseVersion("2.6.0rc1"), "2.6.0");
  EXPECT_EQ(BaseVersion(""), "");
}

TEST(NpuSmiTest, LayoutsOfAllFamilies) {
  const SmiInfo a2 = ParseNpuSmi(
      "| npu-smi 23.0.5.1                 Version: 23.0.5.1            |\n"
      "| NPU   Name                | Health        | Power(W)    Temp(C) |\n"
      "| 0     910B4               | OK            | 88.2        30      |\n"
      "| 0                         | 0000:C1:00.0  | 0    0 / 0  26838/ 32768 "
      "|\n"
      "| NPU     Chip              | Process id    | Process name | "
      "Process memory(MB) |\n"
      "| 0       0                 | 4123          | python3      | 24000 |\n"
      "| No running processes found in NPU 1 |\n");
  EXPECT_EQ(a2.version, "23.0.5.1");
  ASSERT_EQ(a2.devices.size(), 1u);
  EXPECT_EQ(a2.devices[0].name, "910B4");
  EXPECT_EQ(a2.devices[0].used_mb, 26838);
  EXPECT_EQ(a2.devices[0].total_mb, 32768);
  EXPECT_EQ(a2.devices[0].temperature_c, 30);
  EXPECT_EQ(a2.devices[0].power_w, 88.2);
  EXPECT_EQ(a2.devices[0].ai_core_percent, 0);
  ASSERT_EQ(a2.processes.size(), 1u);
  EXPECT_EQ(a2.processes[0].pid, 4123);
  const SmiInfo a5 = ParseNpuSmi(
      "| NPU ID | Name             | Health        | Power(W) |\n"
      "| 3      | Ascend950PR      | Alarm         | 206.9    |\n"
      "|        |                  | 0000:01:00.0  | 0  0 / 0  5399  / 131072 "
      "|\n");
  ASSERT_EQ(a5.devices.size(), 1u);
  EXPECT_EQ(a5.devices[0].npu, 3);
  EXPECT_EQ(a5.devices[0].health, "Alarm");
  EXPECT_EQ(a5.devices[0].total_mb, 131072);
  const SmiInfo old = ParseNpuSmi(
      "| 64      310P3                 | OK   | NA           32 |\n"
      "| 0       0                     | 0000:03:00.0 | 0  1526 / 44280 |\n");
  ASSERT_EQ(old.devices.size(), 1u);
  EXPECT_EQ(old.devices[0].used_mb, 1526);
  EXPECT_EQ(old.devices[0].power_w, -1);
  EXPECT_EQ(old.devices[0].temperature_c, 32);
  EXPECT_TRUE(ParseNpuSmi("dcmi module initialize failed. ret is -8005")
                  .devices.empty());
}

TEST(RecordedTest, RefusesWhatIsNoMachine) {
  for (const char* text : {"", "[]", "{}", "{\"format\": 2}", "x"}) {
    EXPECT_EQ(ErrorIdOf(ParseMachine(text, "x").status()), "DOCT-001") << text;
  }
}

TEST(RecordedTest, BundlesKeepWhatWasSaidAndNoSecrets) {
  const auto machine = ParseMachine(
      R"({"format": 1, "variables": {"ASCEND_HOME_PATH": "/x",
          "HCCL_TOKEN": "abc", "MY_PASSWORD": "abc", "HOME": "/h"},
          "paths": {"/dev/davinci0": {"kind": "device", "access": "rw"}},
          "commands": {"npu-smi info": {"status": 3, "out": "hello"},
            "dmesg --level=err,crit,alert,emerg":
              {"status": 0, "out": "user x logged in\n[ascend] bad\n"}}})",
      "x");
  ASSERT_TRUE(machine.ok());
  const auto catalogue = diag::Catalogue::LoadEmbedded();
  ASSERT_TRUE(catalogue.ok());
  Recorder recorder(**machine);
  const Verdict before = Examine(recorder, *catalogue, {});
  EXPECT_THAT(recorder.ToJson(), Not(HasSubstr("abc")));
  EXPECT_THAT(recorder.ToJson(), Not(HasSubstr("logged in")));
  for (const char* name : {"m.tar.zst", "m.tar.gz", "m.tar"}) {
    const std::string path =
        (fs::temp_directory_path() /
         ("belay_doctor_" + std::to_string(getpid()) + name))
            .string();
    ASSERT_TRUE(recorder.Write(path).ok());
    const auto again = OpenMachine(path);
    fs::remove(path);
    ASSERT_TRUE(again.ok()) << again.status();
    const Verdict after = Examine(**again, *catalogue, {});
    ASSERT_EQ(after.findings.size(), before.findings.size());
    for (size_t i = 0; i < after.findings.size(); ++i) {
      EXPECT_EQ(after.findings[i].id, before.findings[i].id);
    }
    EXPECT_EQ((*again)->Run("npu-smi info").out, "hello");
  }
}

TEST(LiveTest, AnswersAndGivesUp) {
  const auto machine =
      NewLiveMachine({{"PATH", "/usr/bin:/bin"}, {"A", "b"}}, 200);
  EXPECT_EQ(machine->Run("echo a b").out, "a b\n");
  EXPECT_EQ(machine->Run("false").status, 1);
  EXPECT_FALSE(machine->Run("there-is-no-such-program").is_found);
  EXPECT_THAT(machine->Run("env").out, HasSubstr("A=b"));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_TRUE(machine->Run("sleep 60").timed_out);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
  EXPECT_EQ(machine->Stat("/dev/null").kind, PathKind::kDevice);
  EXPECT_EQ(machine->Stat("/dev").kind, PathKind::kFolder);
  EXPECT_FALSE(machine->Stat("/there/is/nothing").exists());
  EXPECT_FALSE(machine->Read("/dev/zero").has_value());
  EXPECT_TRUE(machine->Read("/proc/self/limits").has_value());
  EXPECT_FALSE(machine->List("/dev").empty());
}

TEST(DoctorTest, ScopesDifferencesAndScript) {
  EXPECT_FALSE(ParseScopes("host,nonsense").ok());
  EXPECT_EQ(ParseScopes("host,cann")->size(), 2u);
  const auto text = [](const char* version) {
    return std::string(R"({"format": 1, "paths": {"/dev/davinci0":
      {"kind": "device", "access": ""}, "/usr/local/Ascend/driver/version.info":
      {"text": "Version=)") +
           version + "\"}}}";
  };
  const auto one = ParseMachine(text("24.1.rc3"), "x");
  const auto other = ParseMachine(text("25.3.rc1"), "x");
  ASSERT_TRUE(one.ok() && other.ok());
  const auto catalogue = diag::Catalogue::LoadEmbedded();
  ASSERT_TRUE(catalogue.ok());
  Options options;
  options.scopes = {Scope::kHost};
  const Verdict a = Examine(**one, *catalogue, options);
  const auto differences =
      Compare(a.facts, Examine(**other, *catalogue, options).facts);
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_EQ(differences[0].name, "driver");
  EXPECT_EQ(differences[0].other, "25.3.rc1");
  const std::string script = FixScript(a, *catalogue, diag::Lang::kEn);
  EXPECT_THAT(script, HasSubstr("# DOCT-013"));
  for (size_t at = 0; at < script.size(); at = script.find('\n', at) + 1) {
    EXPECT_TRUE(script[at] == '#' || script[at] == '\n');
    if (script.find('\n', at) == std::string::npos) break;
  }
  const auto json = VerdictToJson(a, *catalogue, diag::Lang::kZh);
  EXPECT_EQ(json["findings"][0]["verdict"], "error");
  EXPECT_FALSE(json["findings"][0]["why"].get<std::string>().empty());
}

}  // namespace
}  // namespace belay::doctor
