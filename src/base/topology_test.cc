// SPDX-License-Identifier: Apache-2.0
#include "base/topology.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "base/cpu_count.h"
#include "base/error_ids.h"

namespace belay {
namespace {

std::unique_ptr<Topology> Machine(const char* description) {
  auto topology = Topology::Synthetic(description);
  EXPECT_TRUE(topology.ok()) << topology.status();
  return std::move(topology).value();
}

using Cpus = std::vector<int>;

TEST(TopologyTest, TakesOneCpuOfEachCore) {
  const auto machine = Machine("numa:1 core:4 pu:2");
  EXPECT_EQ(machine->n_cores(), 4);
  EXPECT_EQ(machine->n_nodes(), 1);
  EXPECT_EQ(machine->CpusFor(4), (Cpus{0, 2, 4, 6}));
}

TEST(TopologyTest, TakesTheNodesInTurn) {
  const auto machine = Machine("numa:2 core:3 pu:2");
  EXPECT_EQ(machine->n_cores(), 6);
  EXPECT_EQ(machine->n_nodes(), 2);
  EXPECT_EQ(machine->CpusFor(6), (Cpus{0, 6, 2, 8, 4, 10}));
}

TEST(TopologyTest, FourNodesInTwoPackages) {
  const auto machine = Machine("package:2 numa:2 core:2 pu:1");
  EXPECT_EQ(machine->n_nodes(), 4);
  EXPECT_EQ(machine->CpusFor(8), (Cpus{0, 2, 4, 6, 1, 3, 5, 7}));
}

// Part of the cores, or more threads than cores: nobody is bound.
TEST(TopologyTest, BindsOnlyAWholeTeam) {
  const auto machine = Machine("numa:2 core:3 pu:2");
  for (const int n : {1, 5, 7, 12}) {
    EXPECT_TRUE(machine->CpusFor(n).empty()) << n;
  }
}

TEST(TopologyTest, RefusesWhatIsNoDescription) {
  EXPECT_EQ(ErrorIdOf(Topology::Synthetic("cores many").status()),
            kSysTopology.id);
}

TEST(TopologyTest, ThisMachineHasTheCpusThatWeMayUse) {
  const auto here = Topology::Load();
  ASSERT_TRUE(here.ok()) << here.status();
  EXPECT_GE((*here)->n_cores(), 1);
  EXPECT_GE((*here)->n_nodes(), 1);
  const std::vector<int> allowed = AllowedCpus();
  const std::vector<int> cpus = (*here)->CpusFor((*here)->n_cores());
  EXPECT_EQ(cpus.size(), static_cast<size_t>((*here)->n_cores()));
  EXPECT_EQ(std::set<int>(cpus.begin(), cpus.end()).size(), cpus.size());
  for (const int cpu : cpus) {
    EXPECT_NE(std::find(allowed.begin(), allowed.end(), cpu), allowed.end());
  }
  std::vector<char> memory(1 << 16);
  (*here)->Interleave(memory.data(), memory.size());  // no harm on one node
}

}  // namespace
}  // namespace belay
