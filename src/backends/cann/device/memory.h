// SPDX-License-Identifier: Apache-2.0
// Memory of the device and copies. Everything is taken at load and plan; a step
// only copies through pinned rings that are as old as the plan.
#ifndef BELAY_BACKENDS_CANN_DEVICE_MEMORY_H_
#define BELAY_BACKENDS_CANN_DEVICE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/error.h"
#include "cann_api/handles.h"
#include "cann_api/runtime.h"

namespace belay::cann {

// Weights, one after another in few large pieces: an allocation each would cost
// a page each, and time.
class WeightMemory {
 public:
  explicit WeightMemory(const cann_api::Runtime& runtime) : runtime_(runtime) {}

  StatusOr<void*> Take(size_t bytes);
  // A copy of host memory, done when it returns.
  Status Copy(void* device, const void* host, size_t bytes) const;
  // Take and Copy.
  StatusOr<void*> Put(const void* host, size_t bytes);
  size_t bytes() const { return bytes_; }

 private:
  const cann_api::Runtime& runtime_;
  std::vector<cann_api::DeviceMemory> slabs_;
  std::byte* next_ = nullptr;
  size_t left_ = 0;
  size_t bytes_ = 0;  // taken from the device
};

// Copies of a step. What goes in is staged, so that the caller's memory is free
// at once; what comes out is delivered by Deliver(), after the one wait.
class Copies {
 public:
  explicit Copies(cann_api::Runtime& runtime) : runtime_(runtime) {}

  Status Create(size_t in_bytes, size_t out_bytes);

  // Waits (with `timeout_ms`) only when a ring is too small.
  Status In(void* device, const void* host, size_t bytes);
  Status Out(void* host, const void* device, size_t bytes);
  // The stream is idle: fills what Out() promised.
  void Deliver();
  // Forgets what Out() promised, after a fault.
  void Drop();
  void SetTimeout(int32_t timeout_ms) { timeout_ms_ = timeout_ms; }

 private:
  struct Promise {
    void* host;
    const std::byte* staged;
    size_t bytes;
  };
  Status WaitAndDeliver();

  cann_api::Runtime& runtime_;
  cann_api::PinnedMemory in_;
  cann_api::PinnedMemory out_;
  size_t in_bytes_ = 0;
  size_t out_bytes_ = 0;
  size_t in_used_ = 0;
  size_t out_used_ = 0;
  std::vector<Promise> promises_;
  int32_t timeout_ms_ = -1;
};

}  // namespace belay::cann

#endif  // BELAY_BACKENDS_CANN_DEVICE_MEMORY_H_
