// SPDX-License-Identifier: Apache-2.0
// What the ranks of a communicator share: a piece of memory without a name
// (memfd), so that nothing is left behind however they end. It holds a slot for
// each rank and two rings for each ordered pair, one for collectives and one
// for messages.
#ifndef BELAY_CANNSIM_HCCL_SEGMENT_H_
#define BELAY_CANNSIM_HCCL_SEGMENT_H_

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "hccl/hccl.h"

namespace cannsim::hccl {

inline constexpr uint32_t kMaxRanks = 64;  // as devices: CANNSIM_DEVICES
inline constexpr uint32_t kNobody = ~0U;

using Id = std::array<uint8_t, 16>;

// A process that may end: its number, and when it started, since numbers are
// used again.
struct Life {
  int32_t pid = 0;
  uint64_t start_time = 0;
};
Life MyLife();
// Whether it has not ended; one that nobody has waited for yet has.
bool IsAlive(const Life& life);

// What HcclRootInfo holds: where the root keeps the memory.
struct RootCard {
  char magic[8];
  Id id;
  Life life;
  int32_t fd;
};
static_assert(sizeof(RootCard) <= sizeof(HcclRootInfo));

// One call of a collective, for the comparison between ranks.
struct Description {
  uint64_t number;  // of the collective in its communicator, from 0
  uint32_t kind;
  uint32_t dtype;
  uint32_t op;
  uint32_t root;
  uint64_t count;
  double now_ns;             // simulated time of the rank
  uint64_t send[kMaxRanks];  // bytes for each rank
  uint64_t recv[kMaxRanks];  // bytes from each rank
};

enum class SlotState : uint32_t { kFree, kTaking, kJoined, kBroken, kLeft };

struct Slot {
  std::atomic<SlotState> state;
  std::atomic<uint32_t> blamed;  // the rank that a broken one waited for
  Life life;
  alignas(64) std::atomic<uint32_t> bell;   // rung when something changed
  alignas(64) std::atomic<uint64_t> n_met;  // collectives that it came to
  // A rank is at most one collective ahead of those that still look.
  Description calls[4];
  std::atomic<uint64_t> sub_key;  // of the communicator that it begins
  RootCard sub_card;
};

// Bytes from one rank to another; one writer, one reader.
struct Ring {
  alignas(64) std::atomic<uint64_t> written;
  uint64_t n_messages;  // the writer's
  alignas(64) std::atomic<uint64_t> taken;
  std::atomic<uint64_t> refused;  // 1 + the number of a message, by the reader
};

enum class Way { kCollective, kMessage };

class Segment {
 public:
  // The root's: memory for a communicator of any size. An errno.
  static int Create(RootCard* card);
  // Forgets the root's hold on it: nobody else can come in.
  static void Close(const RootCard& card);

  // Maps the memory of a card. Null with an errno (EINVAL: no card of ours).
  static std::shared_ptr<Segment> Open(const RootCard& card, int* error);
  ~Segment();
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  // The size that was asked for first, after which all must ask for the same.
  uint32_t SetRanks(uint32_t n_ranks);
  // Takes a place; false when somebody has it.
  bool Join(uint32_t rank);
  bool MapRings();

  uint32_t n_ranks() const { return n_ranks_; }
  Slot& slot(uint32_t rank);
  Ring& ring(Way way, uint32_t from, uint32_t to);

  // Moves up to `bytes`; how many. Ring the bell of the other side after it.
  size_t Push(Way way, uint32_t from, uint32_t to, const char* data,
              size_t bytes);
  // Copies without taking (when `take` is false); null data: throws away.
  size_t Pull(Way way, uint32_t from, uint32_t to, char* data, size_t bytes,
              bool take);

  void WakeUp(uint32_t rank);
  void WakeAll();
  // Sleeps until the rank's bell is no longer `seen`, at most a short while.
  void Listen(uint32_t rank, uint32_t seen);

 private:
  Segment() = default;
  char* RingBytes(Way way, uint32_t from, uint32_t to);
  size_t RingOffset(Way way, uint32_t from, uint32_t to) const;

  int fd_ = -1;
  void* header_ = nullptr;
  char* rings_ = nullptr;
  size_t rings_bytes_ = 0;
  size_t ring_bytes_ = 0;  // of data in one ring
  uint32_t n_ranks_ = 0;
};

}  // namespace cannsim::hccl

#endif  // BELAY_CANNSIM_HCCL_SEGMENT_H_
