// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "apps/belay/shell/cli.h"
#include "base/file.h"

namespace belay::apps {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

// A tree of files as the kernel has them, in a folder.
class TuneTest : public testing::Test {
 protected:
  TuneTest()
      : folder_(fs::temp_directory_path() /
                ("belay_tune_app_" + std::to_string(getpid()))) {
    Write("proc/sys/kernel/numa_balancing", "1\n");
    Write("proc/sys/kernel/random/boot_id", "b\n");
    for (const std::string policy : {"policy0", "policy1"}) {
      const std::string root = "sys/devices/system/cpu/cpufreq/" + policy + "/";
      Write(root + "scaling_governor", "schedutil\n");
      Write(root + "scaling_available_governors", "performance schedutil\n");
    }
    Write("sys/devices/system/node/node0/cpulist", "0-1\n");
    Write("sys/devices/system/node/node1/cpulist", "2-3\n");
    const std::string npu = "sys/bus/pci/devices/0000:01:00.0/";
    Write(npu + "vendor", "0x19e5\n");
    Write(npu + "class", "0x120000\n");
    Write(npu + "numa_node", "1\n");
    Write(npu + "msi_irqs/9", "msi\n");
    Write("proc/irq/9/smp_affinity_list", "0-3\n");
    before_ = Files();
  }
  ~TuneTest() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  struct Result {
    int code;
    std::string out, err;
  };
  Result Tune(std::vector<std::string> args) {
    std::ostringstream out, err;
    std::vector<std::string> all = {"tune", "--root", (folder_ / "t").string(),
                                    "--record", (folder_ / "r.json").string()};
    all.insert(all.end(), args.begin(), args.end());
    const int code = RunBelay(std::move(all), {.out = out, .err = err});
    return {code, out.str(), err.str()};
  }
  void Write(const std::string& name, const std::string& text) {
    const fs::path path = folder_ / "t" / name;
    fs::create_directories(path.parent_path());
    EXPECT_TRUE(WriteFileAtomically(path.string(), text).ok());
  }
  std::map<std::string, std::string> Files() const {
    std::map<std::string, std::string> files;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / "t")) {
      if (entry.is_regular_file()) {
        files[entry.path().string()] = ReadFile(entry.path().string()).value();
      }
    }
    return files;
  }

  fs::path folder_;
  std::map<std::string, std::string> before_;
};

TEST_F(TuneTest, ProposesAndChangesNothing) {
  const Result text = Tune({});
  EXPECT_EQ(text.code, 1) << text.err;
  EXPECT_THAT(text.out, HasSubstr("schedutil -> performance"));
  EXPECT_THAT(text.out, HasSubstr("--physcpubind=2-3 --preferred=1"));
  const Result result = Tune({"--json"});
  const json plan = json::parse(result.out);
  EXPECT_EQ(plan["settings"].size(), 4u);
  EXPECT_EQ(plan["settings"][3]["proposed"], "2-3");
  EXPECT_EQ(plan["bindings"][0]["node"], 1);
  EXPECT_EQ(Files(), before_);
  EXPECT_FALSE(fs::exists(folder_ / "r.json"));
}

TEST_F(TuneTest, AppliesAndReverts) {
  const Result applied = Tune({"--apply", "--no-measure", "--json"});
  EXPECT_EQ(applied.code, 0) << applied.err;
  EXPECT_EQ(json::parse(applied.out)["results"].size(), 3u);
  EXPECT_NE(Files(), before_);
  EXPECT_EQ(Tune({}).code, 0);  // nothing left to propose
  const Result twice = Tune({"--apply"});
  EXPECT_EQ(twice.code, 0) << twice.err;  // and so nothing to lose
  const Result reverted = Tune({"--revert"});
  EXPECT_EQ(reverted.code, 0) << reverted.err;
  EXPECT_THAT(reverted.out, HasSubstr("4 settings restored"));
  EXPECT_EQ(Files(), before_);
  const Result again = Tune({"--revert"});
  EXPECT_EQ(again.code, 3);
  EXPECT_THAT(again.err, HasSubstr("SYS-001"));
}

// Settings of a folder change no speed: whatever is kept, nothing is lost.
TEST_F(TuneTest, MeasuresACommand) {
  const Result applied = Tune({"--apply", "--runs", "2", "--", "true"});
  EXPECT_EQ(applied.code, 0) << applied.err;
  EXPECT_THAT(applied.out, HasSubstr("1/s"));
  if (fs::exists(folder_ / "r.json")) {
    EXPECT_EQ(Tune({"--revert"}).code, 0);
  }
  EXPECT_EQ(Files(), before_);
  const Result failed = Tune({"--apply", "--", "false"});
  EXPECT_EQ(failed.code, 3);
  EXPECT_THAT(failed.err, HasSubstr("TUNE-004"));
  EXPECT_EQ(Files(), before_);
}

TEST_F(TuneTest, Usage) {
  EXPECT_EQ(Tune({"--apply", "--revert"}).code, 2);
  EXPECT_EQ(Tune({"--", "true"}).code, 2);
  EXPECT_TRUE(WriteFileAtomically((folder_ / "r.json").string(), "{}").ok());
  EXPECT_THAT(Tune({"--revert"}).err, HasSubstr("TUNE-002"));
}

}  // namespace
}  // namespace belay::apps
