// SPDX-License-Identifier: Apache-2.0
#include "base/cpu_count.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace belay {
namespace {

namespace fs = std::filesystem;

// A made-up /proc and /sys.
class CpuCountTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = fs::temp_directory_path() / "belay_cpu_test.XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { fs::remove_all(root_); }

  void Put(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void PutSiblings(int cpu, const std::string& siblings) const {
    Put("sys/devices/system/cpu/cpu" + std::to_string(cpu) +
            "/topology/thread_siblings_list",
        siblings + "\n");
  }
  int Count(const std::vector<int>& cpus) const {
    return CountUsableCores(cpus, root_.string());
  }

  fs::path root_;
};

const std::vector<int> kFour = {0, 1, 2, 3};

TEST_F(CpuCountTest, WithNothingToReadEachCpuIsACore) {
  EXPECT_EQ(Count(kFour), 4);
  EXPECT_EQ(Count({}), 1);
}

TEST_F(CpuCountTest, HyperThreadsOfACoreCountOnce) {
  PutSiblings(0, "0,2");
  PutSiblings(2, "0,2");
  PutSiblings(1, "1,3");
  PutSiblings(3, "1,3");
  EXPECT_EQ(Count(kFour), 2);
  EXPECT_EQ(Count({0, 2}), 1);
  EXPECT_EQ(Count({0, 1}), 2);
}

TEST_F(CpuCountTest, QuotaOfVersion2) {
  Put("proc/self/cgroup", "0::/a/b\n");
  Put("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(Count(kFour), 4);
  Put("sys/fs/cgroup/a/b/cpu.max", "250000 100000\n");
  EXPECT_EQ(Count(kFour), 2);
  Put("sys/fs/cgroup/a/b/cpu.max", "50000 100000\n");
  EXPECT_EQ(Count(kFour), 1);
  Put("sys/fs/cgroup/a/b/cpu.max", "nonsense");
  EXPECT_EQ(Count(kFour), 4);
}

TEST_F(CpuCountTest, QuotaOfAGroupAbove) {
  Put("proc/self/cgroup", "0::/a/b\n");
  Put("sys/fs/cgroup/a/b/cpu.max", "400000 100000\n");
  Put("sys/fs/cgroup/a/cpu.max", "300000 100000\n");
  EXPECT_EQ(Count(kFour), 3);
  Put("sys/fs/cgroup/cpu.max", "200000 100000\n");  // the container itself
  EXPECT_EQ(Count(kFour), 2);
}

TEST_F(CpuCountTest, QuotaOfVersion1) {
  Put("proc/self/cgroup",
      "9:name=systemd:/\n3:cpuset:/\n1:cpu,cpuacct:/docker/x\n0::/\n");
  Put("sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_quota_us", "-1\n");
  Put("sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Count(kFour), 4);
  Put("sys/fs/cgroup/cpu,cpuacct/docker/x/cpu.cfs_quota_us", "300000\n");
  EXPECT_EQ(Count(kFour), 3);
}

TEST_F(CpuCountTest, OtherControllersDoNotCount) {
  Put("proc/self/cgroup", "3:cpuset:/\nnonsense\n4\n");
  Put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "100000\n");
  Put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(Count(kFour), 4);
}

TEST(AllowedCpusTest, IsAscendingAndNotEmptyHere) {
  const std::vector<int> cpus = AllowedCpus();
  ASSERT_FALSE(cpus.empty());
  EXPECT_TRUE(std::is_sorted(cpus.begin(), cpus.end()));
}

}  // namespace
}  // namespace belay
