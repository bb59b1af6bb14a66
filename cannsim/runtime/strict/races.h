// SPDX-License-Identifier: Apache-2.0
// Strict mode: who may use a buffer when. Each stream, the host and each record
// of an event know which tasks are before them (a vector clock); two uses of
// the same bytes, one of them a write, must be before one another. What is
// found does not depend on how fast anything ran.
#ifndef BELAY_CANNSIM_RUNTIME_STRICT_RACES_H_
#define BELAY_CANNSIM_RUNTIME_STRICT_RACES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "cannsim/runtime/error.h"

namespace cannsim {

// The last task of each stream that is known to be before: stream -> number.
using Order = std::map<unsigned, uint64_t>;

class Races {
 public:
  // The calling thread's call uses [address, +bytes) of the buffer at `buffer`.
  // Kept until the call queues its task or does the work itself.
  static void Use(uintptr_t buffer, uintptr_t address, size_t bytes,
                  const char* use);
  // A call begins: what an earlier one did not queue is forgotten.
  static void Forget();

  // The call's task is queued on a stream.
  void Queued(unsigned stream, const char* task);
  // The call does its work now, on the host.
  void OnHost();
  // The call frees the buffer.
  void Freed(uintptr_t buffer, size_t bytes);

  // What is before a point behind all tasks of a stream.
  std::shared_ptr<const Order> At(unsigned stream);
  // Later tasks of the stream, and later calls of the host, are behind it.
  void StreamWaits(unsigned stream, const Order& order);
  void HostWaits(const Order& order);

 private:
  struct Access {
    unsigned stream = 0;
    uint64_t task = 0;
    bool writes = false;
    uintptr_t begin = 0;
    uintptr_t end = 0;
    Call call;
    const char* name = "";
  };

  static bool IsBefore(const Access& access, const Order& order);
  void Check(const char* id, uintptr_t buffer, const Access& now,
             const Order& order, const char* what);
  void Keep(uintptr_t buffer, const Access& now);

  std::mutex mutex_;
  Order host_;
  std::map<unsigned, Order> streams_;
  std::unordered_map<uintptr_t, std::vector<Access>> accesses_;  // by buffer
};

}  // namespace cannsim

#endif  // BELAY_CANNSIM_RUNTIME_STRICT_RACES_H_
