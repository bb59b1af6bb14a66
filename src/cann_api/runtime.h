// SPDX-License-Identifier: Apache-2.0
// A device, started in the one safe order: init, set device, wait until it is
// ready (bounded), context, stream. Memory and work come after that, never
// before: there are versions on which they fail otherwise.
#ifndef BELAY_CANN_API_RUNTIME_H_
#define BELAY_CANN_API_RUNTIME_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cann_api/acl_error.h"
#include "cann_api/api.h"
#include "cann_api/handles.h"

namespace belay::cann_api {

// A step of the start, in order, for reports.
struct TimedStep {
  std::string name;
  double seconds = 0;
  Status status;
};

struct StartOptions {
  int32_t device = 0;
  int32_t ready_timeout_ms = 30000;
};

class Runtime {
 public:
  // Adds a step for each thing it does to `steps`, the failed one last.
  // Errors: CANN-002, -008, -009, -012, or what a call says.
  static StatusOr<std::unique_ptr<Runtime>> Start(
      const Api& api, const StartOptions& options,
      std::vector<TimedStep>* steps);
  ~Runtime();

  const Api& api() const { return api_; }
  int32_t device() const { return device_; }
  aclrtStream stream() const { return stream_.get(); }
  // "Ascend910B3"; "" when the runtime does not tell.
  const std::string& soc() const { return soc_; }

  // Makes this runtime's context the calling thread's; cheap when it is.
  void Use() const;

  // The status of a call of `name` on this device; `detail` as in Place.
  Status Check(int code, std::string_view name,
               std::string_view detail = "") const;
  // The same for what belongs to the stream.
  Status CheckStream(int code, std::string_view name,
                     std::string_view detail = "") const;

  // Device memory, aligned to 512 bytes; CANN-004 says what was free.
  StatusOr<DeviceMemory> Allocate(size_t bytes) const;
  StatusOr<PinnedMemory> AllocatePinned(size_t bytes) const;

  // Waits for the stream, at most `timeout_ms` (-1 = for ever). CANN-005 names
  // the stream; it is then taken for hung, and only forced to end.
  Status Synchronize(int32_t timeout_ms);

  // Ends the stream with whatever still runs in it, after a fault: memory that
  // its work uses can then be freed. Nothing can be queued any more.
  void Abandon();

  // Frees stream and context, resets the device. Done by the destructor.
  Status Stop();

 private:
  Runtime(const Api& api, int32_t device) : api_(api), device_(device) {}
  Status StartDevice(const StartOptions& options,
                     std::vector<TimedStep>* steps);
  Status WaitUntilReady(int32_t timeout_ms) const;
  Status CreateContext();
  Status CreateStream();

  const Api& api_;
  int32_t device_;
  std::string soc_;
  Context context_;
  Stream stream_;
  int32_t stream_id_ = -1;
  bool counted_ = false;  // among those that hold the process's runtime
  bool set_ = false;      // the device is
  bool hung_ = false;
};

// Runs `work`, and adds how long it took.
template <typename Work>
Status Timed(std::vector<TimedStep>* steps, std::string name,
             const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  Status status = work();
  const std::chrono::duration<double> taken =
      std::chrono::steady_clock::now() - start;
  if (steps != nullptr) {
    steps->push_back({std::move(name), taken.count(), status});
  }
  return status;
}

}  // namespace belay::cann_api

#endif  // BELAY_CANN_API_RUNTIME_H_
