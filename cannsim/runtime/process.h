// SPDX-License-Identifier: Apache-2.0
// All state of the simulator in a process: the C interface has no other place
// to put it. Made at the first use and never destroyed, so that calls from
// destructors of the program still find it.
#ifndef BELAY_CANNSIM_RUNTIME_PROCESS_H_
#define BELAY_CANNSIM_RUNTIME_PROCESS_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "acl/acl_rt.h"
#include "cannsim/config/settings.h"
#include "cannsim/runtime/faults/faults.h"
#include "cannsim/runtime/memory/device_memory.h"
#include "cannsim/runtime/memory/host_memory.h"
#include "cannsim/runtime/queue/capture.h"
#include "cannsim/runtime/queue/event.h"
#include "cannsim/runtime/queue/stream.h"
#include "cannsim/runtime/registry.h"
#include "cannsim/runtime/strict/races.h"

namespace cannsim {

// A context: a default stream, and what its streams share.
struct Context {
  int device = 0;
  bool primary = false;
  std::atomic<bool> alive{true};
  std::shared_ptr<FailureState> failure = std::make_shared<FailureState>();
  std::shared_ptr<Stream> default_stream;
  std::mutex mutex;
  std::map<int, int64_t> options;  // aclSysParamOpt
};

// A device as the program counts them.
struct Device {
  std::mutex mutex;
  int physical_id = 0;
  int n_uses = 0;  // SetDevice without ResetDevice
  std::shared_ptr<Context> primary;
  std::set<int> peers;  // that this one may reach
  std::atomic<int64_t> cube_limit{-1};
  std::atomic<int64_t> vector_limit{-1};
  std::atomic<int> n_events{0};
  std::atomic<int> n_streams{0};
  std::atomic<bool> waited{false};   // the host waited since it was set
  std::atomic<bool> has_run{false};  // an operator was queued since then
};

// What belongs to the calling thread.
struct ThreadState {
  std::shared_ptr<Context> context;
  Capture::Mode capture_mode = Capture::Mode::kGlobal;
  std::weak_ptr<Stream> limits_of;  // UseStreamResInCurrentThread
};

ThreadState& ThisThread();

class Process {
 public:
  static Process& Get();

  const Settings& settings() const { return settings_; }
  const Profile& profile() const { return settings_.profile; }
  int n_devices() const { return static_cast<int>(devices_.size()); }
  // The fault script and the quirks.
  Faults& faults() { return *faults_; }
  // Null unless the mode is strict.
  Races* races() { return races_.get(); }
  // The order of a record that was just queued, and a wait that ended.
  void MarkOrder(Record& record, unsigned stream);
  void HostKnows(const Record& record);

  // --- init and finalize ---
  int Init();
  int Finalize();
  int FinalizeReference(uint64_t* n_left);

  // --- devices and contexts ---
  int CheckDevice(int id);  // 107001 when there is no such device
  Device& device(int id) { return *devices_[static_cast<size_t>(id)]; }
  int SetDevice(int id);
  int ResetDevice(int id, bool force);
  int CreateContext(int id, bool primary, std::shared_ptr<Context>* out);
  int DestroyContext(const void* handle);
  // The memory of a device; made at the first use, kept until all is reset.
  DeviceMemory* Memory(int id, std::string* error);
  // The same, or null when it was never used.
  DeviceMemory* MemoryIfAny(int id) const {
    return memories_[static_cast<size_t>(id)].load();
  }
  // The device whose memory holds an address, or -1.
  int DeviceOf(const void* address) const;
  DeviceMemory* MemoryOf(const void* address) const;

  // The calling thread's context; null after Fail(107002).
  std::shared_ptr<Context> CurrentContext();
  // The stream of a handle: null is the context's default one. Null after
  // Fail when there is none or it is another context's.
  std::shared_ptr<Stream> FindStream(aclrtStream stream);
  std::shared_ptr<Event> FindEvent(aclrtEvent event);

  int CreateStream(unsigned flags, std::shared_ptr<Stream>* out);
  void ForgetStream(const std::shared_ptr<Stream>& stream, bool force);
  int SynchronizeDevice(int id, int timeout_ms);

  // --- queueing ---
  // Queues, or records into the capture that the stream is part of. Returns
  // what Fail returned when the capture does not allow it.
  int Launch(const std::shared_ptr<Stream>& stream, Task task);
  // For calls that a capture forbids: 107030 when one is under way that
  // concerns this thread.
  int CheckUnsafe();
  // 107030 while any stream of the device records.
  int CheckNoCapture(int device);
  void CaptureStarted(const std::shared_ptr<Capture>& capture);
  void CaptureEnded(const std::shared_ptr<Capture>& capture);

  void Report(const TaskFailure& failure);

  Registry<Context> contexts;
  Registry<Stream> streams;
  Registry<Event> events;
  Registry<Graph> graphs;
  Registry<TaskGroup> groups;
  HostMemory host_memory;

  std::atomic<aclrtExceptionInfoCallback> exception_callback{nullptr};
  std::atomic<int64_t> op_wait_timeout_ms{-1};
  std::atomic<uint32_t> op_execute_timeout_s{0};
  std::atomic<int> saturation_mode{ACL_RT_OVERFLOW_MODE_INFNAN};
  std::atomic<unsigned> n_graphs{0};
  std::mutex options_mutex;
  std::map<int, int64_t> options;  // aclSysParamOpt of the process

 private:
  Process();
  int CheckUsable();
  std::shared_ptr<Stream> MakeStream(const std::shared_ptr<Context>& context,
                                     unsigned flags);
  void CloseDevice(int id, bool force);

  void ReadFaults();
  void AtExit();
  void TellLeaks(int id);
  void ArmFirst(Task* task, int device);
  int LaunchLate(const std::shared_ptr<Stream>& stream, Task& task);

  const Settings settings_;
  std::unique_ptr<Faults> faults_;
  std::unique_ptr<Races> races_;
  std::string fault_error_;  // SIM-003, or ""
  std::vector<std::unique_ptr<Device>> devices_;
  // Never shrinks and never frees while a thread may look (DeviceOf).
  std::vector<std::atomic<DeviceMemory*>> memories_;
  std::mutex memory_mutex_;

  std::mutex init_mutex_;
  uint64_t n_inits_ = 0;
  std::atomic<unsigned> next_stream_{0};

  std::mutex capture_mutex_;
  std::vector<std::weak_ptr<Capture>> captures_;
  std::atomic<int> n_captures_{0};
};

}  // namespace cannsim

// The public name of an incomplete struct of acl.h.
struct aclrtExceptionInfo {
  cannsim::TaskFailure failure;
};

#endif  // BELAY_CANNSIM_RUNTIME_PROCESS_H_
