// SPDX-License-Identifier: Apache-2.0
// A collective as data: who sends what to whom, what is reduced, what is sent
// on. All of them run the same way: the ranks meet and compare their calls,
// then bytes move through the rings.
#ifndef BELAY_CANNSIM_HCCL_COLLECTIVE_H_
#define BELAY_CANNSIM_HCCL_COLLECTIVE_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "cannsim/hccl/communicator.h"

namespace cannsim::hccl {

enum class Kind : uint32_t {
  kAllReduce,
  kAllGather,
  kAllGatherV,
  kReduceScatter,
  kReduceScatterV,
  kBroadcast,
  kReduce,
  kScatter,
  kAlltoAll,
  kAlltoAllV,
  kAlltoAllVC,
  kBarrier,
};

// "HcclAllReduce"; a literal.
const char* NameOf(Kind kind);

struct Piece {
  char* at = nullptr;
  uint64_t bytes = 0;
};

// A piece for each rank. Own pieces are copied.
struct Move {
  std::vector<Piece> send;
  std::vector<Piece> recv;
};

struct Collective {
  Kind kind = Kind::kBarrier;
  HcclDataType dtype = HCCL_DATA_TYPE_RESERVED;
  HcclReduceOp op = HCCL_REDUCE_RESERVED;
  uint32_t root = kNobody;
  // Of the call, where all ranks must give the same.
  uint64_t count = 0;
  Move first;
  // When > 0: what comes first is `first.recv[*].bytes` of equal pieces whose
  // addresses are not set; their reduction goes to `reduced`.
  uint64_t n_reduced = 0;
  char* reduced = nullptr;
  Move second;  // empty, or after the reduction

  explicit Collective(Kind which, uint32_t n_ranks);
  // Over the links of this rank.
  uint64_t BytesMoved(uint32_t rank) const;
};

// Queues it. `caller` is the place in the program.
HcclResult Queue(const std::shared_ptr<Communicator>& communicator,
                 Collective collective, aclrtStream stream, const void* caller);

// What the runtime's stream wait says of an outcome that is not ok; breaks the
// communicator. `what` is the call, `done` what was done until then.
int FailOutcome(Communicator& communicator, const Outcome& outcome,
                const char* what, uint64_t number);

// Waits for the task's turn in the communicator. False when it must not go on;
// then `*code` is what it returns.
bool BeginTask(Communicator& communicator, Turn& turn, const TaskRun& run,
               const char* what, int* code);

// Simulated time of bytes over a link between devices.
TaskCost CostOfLink(uint64_t bytes);

// Queues on a stream, after a look at the device.
HcclResult Launch(const std::shared_ptr<Communicator>& communicator,
                  aclrtStream stream, const char* name, uint64_t bytes,
                  std::function<int(const TaskRun&)> run);

}  // namespace cannsim::hccl

#endif  // BELAY_CANNSIM_HCCL_COLLECTIVE_H_
