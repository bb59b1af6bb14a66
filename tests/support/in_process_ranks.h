// SPDX-License-Identifier: Apache-2.0
// Several ranks as threads of one process, for tests.
#ifndef BELAY_TESTS_SUPPORT_IN_PROCESS_RANKS_H_
#define BELAY_TESTS_SUPPORT_IN_PROCESS_RANKS_H_

#include <barrier>
#include <memory>
#include <vector>

#include "ops/communicator.h"

namespace belay::test {

// What the ranks of a group meet at.
struct Meeting {
  explicit Meeting(int n_ranks)
      : barrier(n_ranks), parts(static_cast<size_t>(n_ranks)) {}
  std::barrier<> barrier;
  std::vector<ConstTensorView> parts;  // what each rank brings
};

class InProcessRank final : public ops::Communicator {
 public:
  InProcessRank(int rank, Meeting& meeting) : rank_(rank), meeting_(meeting) {}

  int rank() const override { return rank_; }
  int n_ranks() const override {
    return static_cast<int>(meeting_.parts.size());
  }
  void AllReduceSum(TensorView x) override;
  void AllGatherColumns(ConstTensorView local, TensorView out) override;

 private:
  const int rank_;
  Meeting& meeting_;
};

}  // namespace belay::test

#endif  // BELAY_TESTS_SUPPORT_IN_PROCESS_RANKS_H_
