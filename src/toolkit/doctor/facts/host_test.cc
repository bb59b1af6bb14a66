// SPDX-License-Identifier: Apache-2.0
#include "toolkit/doctor/facts/host.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "toolkit/doctor/machine/recorded.h"

namespace belay::doctor {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(CpuListTest, BothWays) {
  EXPECT_THAT(*ParseCpuList("0-3,8\n"), ElementsAre(0, 1, 2, 3, 8));
  EXPECT_THAT(*ParseCpuList(""), IsEmpty());
  EXPECT_THAT(*ParseCpuList("\t5 "), ElementsAre(5));
  for (const char* wrong :
       {"x", "1-", "-1", "3-1", "0-65536", "1 2", "0-3,2", "1;2"}) {
    EXPECT_FALSE(ParseCpuList(wrong).has_value()) << wrong;
  }
  for (const char* list : {"", "0", "0-3", "0-3,8", "1,3,5-7,9"}) {
    EXPECT_EQ(FormatCpuList(*ParseCpuList(list)), list);
  }
}

TEST(CpuListTest, Sets) {
  EXPECT_TRUE(IsWithin({1, 3}, {1, 2, 3}));
  EXPECT_FALSE(IsWithin({1, 4}, {1, 2, 3}));
  EXPECT_TRUE(Overlaps({1, 4}, {1, 2, 3}));
  EXPECT_FALSE(Overlaps({}, {1, 2, 3}));
}

TEST(HostTest, NodesDevicesAndInterrupts) {
  const auto machine = ParseMachine(
      R"({"format": 1, "paths": {
        "/sys/devices/system/node/node10/cpulist": {"text": "4-7\n"},
        "/sys/devices/system/node/node2/cpulist": {"text": "0-3\n"},
        "/sys/devices/system/node/node2/meminfo":
          {"text": "Node 2 MemTotal: 100 kB\nNode 2 MemFree:   40 kB\n"},
        "/sys/devices/system/node/possible": {"text": "0-1\n"},
        "/sys/bus/pci/devices/0000:01:00.0/vendor": {"text": "0x19e5\n"},
        "/sys/bus/pci/devices/0000:01:00.0/class": {"text": "0x120000\n"},
        "/sys/bus/pci/devices/0000:01:00.0/numa_node": {"text": "10\n"},
        "/sys/bus/pci/devices/0000:01:00.0/msi_irqs/7": {"kind": "file"},
        "/sys/bus/pci/devices/0000:01:00.0/msi_irqs/8": {"kind": "file"},
        "/proc/irq/7/smp_affinity_list": {"text": "0-7\n"},
        "/proc/irq/7/effective_affinity_list": {"text": "3\n"},
        "/proc/self/status":
          {"text": "Name: x\nCpus_allowed_list:\t0-3\n"}}})",
      "x");
  ASSERT_TRUE(machine.ok());
  const Host host = ReadHost(**machine, ReadFacts(**machine));
  ASSERT_EQ(host.nodes.size(), 2u);
  EXPECT_EQ(host.nodes[0].id, 2);
  EXPECT_EQ(host.nodes[0].free_kib, 40u);
  EXPECT_THAT(host.nodes[1].cpus, ElementsAre(4, 5, 6, 7));
  ASSERT_EQ(host.npus.size(), 1u);
  EXPECT_EQ(host.npus[0].node, 10);
  ASSERT_EQ(host.npus[0].interrupts.size(), 1u);  // of 8 nothing is known
  EXPECT_THAT(host.npus[0].interrupts[0].effective, ElementsAre(3));
  EXPECT_THAT(host.allowed_cpus, ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(host.allowed_nodes, IsEmpty());
  EXPECT_EQ(host.Node(1), nullptr);
}

}  // namespace
}  // namespace belay::doctor
