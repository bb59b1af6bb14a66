// SPDX-License-Identifier: Apache-2.0
// What a decode step of cann costs, counted by the stand-in: once a sequence is
// older than its window nothing is made, taken or compiled any more.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <numeric>
#include <string>
#include <vector>

#include "backends/cann/backend.h"
#include "cannsim/cannsim.h"
#include "support/golden_set.h"
#include "support/stepper.h"
#include "support/test_model.h"

namespace belay::test {
namespace {

cannsimCounters Count() {
  using Get = void (*)(cannsimCounters*, size_t);
  const auto get =
      reinterpret_cast<Get>(dlsym(RTLD_DEFAULT, "cannsim_get_counters"));
  cannsimCounters counters = {};
  EXPECT_NE(get, nullptr);
  if (get != nullptr) get(&counters, sizeof(counters));
  return counters;
}

class CannStepsTest : public ::testing::Test {
 protected:
  CannStepsTest()
      : model_(GoldenFolder() + "/tiny_fp4", {.backend = "cann"}),
        stepper_(model_, {.n_slots = 2}) {}

  size_t n_executors() {
    return static_cast<cann::CannBackend&>(model_.backend()).n_executors();
  }
  // One token of each of the sequences.
  void Decode(int n_sequences) {
    std::vector<Part> parts;
    for (int slot = 0; slot < n_sequences; ++slot) {
      parts.push_back({slot, position_, {(7 * position_ + slot) % 1000}});
    }
    stepper_.Run(parts);
    ++position_;
  }
  void Prefill(int n_sequences, int n_tokens) {
    std::vector<int32_t> ids(static_cast<size_t>(n_tokens));
    std::iota(ids.begin(), ids.end(), 3);
    for (int slot = 0; slot < n_sequences; ++slot) {
      stepper_.Run({{slot, 0, ids}});
    }
    position_ = n_tokens;
  }

  TestModel model_;
  Stepper stepper_;
  int32_t position_ = 0;
};

TEST_F(CannStepsTest, AnOldSequenceTakesNothing) {
  for (const int n_sequences : {1, 2}) {
    SCOPED_TRACE(n_sequences);
    Prefill(n_sequences, 30);
    for (int i = 0; i < 8; ++i) Decode(n_sequences);
    const size_t n_made = n_executors();
    const cannsimCounters before = Count();
    constexpr int kSteps = 12;
    for (int i = 0; i < kSteps; ++i) Decode(n_sequences);
    const cannsimCounters after = Count();
    EXPECT_EQ(n_executors(), n_made);
    EXPECT_EQ(after.allocations, before.allocations);
    EXPECT_EQ(after.frees, before.frees);
    EXPECT_EQ(after.host_allocations, before.host_allocations);
    EXPECT_EQ(after.host_frees, before.host_frees);
    EXPECT_EQ(after.compilations, before.compilations);
    EXPECT_EQ(after.blocking_copies, before.blocking_copies);
    EXPECT_EQ(after.bytes_on_device, before.bytes_on_device);
    EXPECT_EQ(after.host_syncs - before.host_syncs, kSteps);
    // The stepper wants all logits: as many as it asked for, and no more.
    const auto vocab = static_cast<uint64_t>(model_.config().vocab_size);
    EXPECT_EQ(after.bytes_to_host - before.bytes_to_host,
              kSteps * static_cast<uint64_t>(n_sequences) * vocab * 4);
    const double layers = static_cast<double>(model_.config().n_layers);
    std::printf(
        "  %d sequences: %.0f launches a layer, %.0f bytes up a step\n",
        n_sequences,
        static_cast<double>(after.launches - before.launches) / kSteps / layers,
        static_cast<double>(after.bytes_to_device - before.bytes_to_device) /
            kSteps);
  }
}

}  // namespace
}  // namespace belay::test
