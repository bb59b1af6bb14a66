// SPDX-License-Identifier: Apache-2.0
// Events: record, wait, ask, measure.
#include <algorithm>
#include <utility>

#include "acl/acl_rt.h"
#include "cannsim/runtime/count/clock.h"
#include "cannsim/runtime/count/counters.h"
#include "cannsim/runtime/error.h"
#include "cannsim/runtime/process.h"

namespace {

using cannsim::Event;
using cannsim::EventMaker;
using cannsim::Fail;
using cannsim::PeekLastError;
using cannsim::Process;
using cannsim::Record;
using cannsim::Stream;
using cannsim::Task;
using cannsim::TaskKind;
using cannsim::TaskRun;

constexpr uint32_t kKnownFlags =
    ACL_EVENT_SYNC | ACL_EVENT_CAPTURE_STREAM_PROGRESS | ACL_EVENT_TIME_LINE |
    ACL_EVENT_DEVICE_USE_ONLY | ACL_EVENT_EXTERNAL | ACL_EVENT_IPC;

int Null() { return Fail(ACL_ERROR_RT_PARAM_INVALID, "null argument"); }

int Create(aclrtEvent* out, EventMaker maker, uint32_t flags) {
  if (out == nullptr) return Null();
  if ((flags & ~kKnownFlags) != 0) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "flag {:#x} does not exist", flags);
  }
  Process& process = Process::Get();
  const auto context = process.CurrentContext();
  if (context == nullptr) return ACL_ERROR_RT_CONTEXT_NULL;
  // Only the Ex kind is not limited by what the device has.
  cannsim::Device& device = process.device(context->device);
  if (maker != EventMaker::kExWithFlag &&
      device.n_events.load() >= process.profile().n_events) {
    return Fail(ACL_ERROR_RT_NO_EVENT_RESOURCE,
                "device {} has {} events, and no more", context->device,
                process.profile().n_events);
  }
  ++device.n_events;
  *out = process.events.Add(
      std::make_shared<Event>(maker, flags, context->device));
  return ACL_SUCCESS;
}

// The event of a handle that may be asked or waited for now.
std::shared_ptr<Event> Askable(aclrtEvent handle) {
  auto event = Process::Get().FindEvent(handle);
  if (event == nullptr) return nullptr;
  const auto record = event->latest();
  if (record != nullptr && record->captured()) {
    if (const auto capture = record->capture()) capture->Invalidate();
    Fail(ACL_ERROR_RT_EVENT_CAPTURED,
         "the event was recorded in a capture and has no state of its own");
    return nullptr;
  }
  return event;
}

int MarkInGraph(const std::shared_ptr<Event>& event, const TaskRun& run) {
  auto record = std::make_shared<Record>();
  event->SetLatest(record);
  record->Complete(*run.now_ns);
  return ACL_SUCCESS;
}

int RecordCaptured(const std::shared_ptr<Event>& event,
                   const std::shared_ptr<Stream>& stream,
                   const std::shared_ptr<cannsim::Capture>& capture) {
  Task task{.kind = TaskKind::kRecord,
            .name = "aclrtRecordEvent",
            .run = [](const TaskRun&) { return ACL_SUCCESS; }};
  if (event->Has(ACL_EVENT_EXTERNAL)) {
    // A mark for others than the graph: made anew by each replay.
    task.run = [event](const TaskRun& run) { return MarkInGraph(event, run); };
    capture->Append(stream.get(), std::move(task));
    return ACL_SUCCESS;
  }
  const int node = capture->Append(stream.get(), std::move(task));
  event->SetLatest(std::make_shared<Record>(capture, node));
  return ACL_SUCCESS;
}

int RecordOn(const std::shared_ptr<Event>& event,
             const std::shared_ptr<Stream>& stream) {
  if (const auto capture = stream->capture()) {
    return RecordCaptured(event, stream, capture);
  }
  auto record = std::make_shared<Record>();
  event->SetLatest(record);
  const int code =
      Process::Get().Launch(stream, {.kind = TaskKind::kRecord,
                                     .name = "aclrtRecordEvent",
                                     .run = [record](const TaskRun& run) {
                                       record->Complete(*run.now_ns);
                                       return ACL_SUCCESS;
                                     }});
  Process::Get().MarkOrder(*record, stream->id());
  return code;
}

// Counts a wait of the event until its last copy is gone.
class PendingWait {
 public:
  explicit PendingWait(std::shared_ptr<Event> event)
      : event_(std::move(event)) {
    ++event_->n_waits;
  }
  ~PendingWait() { --event_->n_waits; }
  PendingWait(const PendingWait&) = delete;
  PendingWait& operator=(const PendingWait&) = delete;

 private:
  std::shared_ptr<Event> event_;
};

int WaitInTask(const Record& record, const TaskRun& run) {
  const int64_t timeout_ms = Process::Get().op_wait_timeout_ms.load();
  if (record.Wait(timeout_ms, &run.abandoned)) {
    *run.now_ns = std::max(*run.now_ns, record.time_ns());
    return ACL_SUCCESS;
  }
  if (run.abandoned.load()) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_TASK_TIMEOUT,
              "the event did not come within the {} ms of "
              "aclrtSetOpWaitTimeout",
              timeout_ms);
}

int WaitFor(const std::shared_ptr<Event>& event,
            const std::shared_ptr<Record>& record,
            const std::shared_ptr<Stream>& stream) {
  auto pending = std::make_shared<PendingWait>(event);
  if (const auto order = record->order()) {
    Process::Get().races()->StreamWaits(stream->id(), *order);
  }
  return Process::Get().Launch(stream,
                               {.kind = TaskKind::kWait,
                                .name = "aclrtStreamWaitEvent",
                                .run = [record, pending](const TaskRun& run) {
                                  return WaitInTask(*record, run);
                                }});
}

// A wait recorded into a graph for an event outside it: it looks for the
// latest record when it runs.
int WaitExternal(const std::shared_ptr<Event>& event,
                 const std::shared_ptr<Stream>& stream) {
  return Process::Get().Launch(stream, {.kind = TaskKind::kWait,
                                        .name = "aclrtStreamWaitEvent",
                                        .run = [event](const TaskRun& run) {
                                          const auto record = event->latest();
                                          return record == nullptr
                                                     ? ACL_SUCCESS
                                                     : WaitInTask(*record, run);
                                        }});
}

// One side at least is being captured.
int WaitCaptured(const std::shared_ptr<Event>& event,
                 const std::shared_ptr<Record>& record,
                 const std::shared_ptr<Stream>& stream,
                 const std::shared_ptr<cannsim::Capture>& mine) {
  if (record == nullptr || !record->captured()) {
    if (event->Has(ACL_EVENT_EXTERNAL)) return WaitExternal(event, stream);
    if (record == nullptr) return ACL_SUCCESS;
    mine->Invalidate();
    return Fail(ACL_ERROR_RT_CAPTURE_DEPENDENCY,
                "stream {} is being captured and cannot wait for work outside "
                "the capture",
                stream->id());
  }
  const auto theirs = record->capture();
  if (theirs == nullptr) {
    return Fail(ACL_ERROR_RT_EVENT_CAPTURED,
                "the event was recorded in a capture that has ended");
  }
  if (mine == nullptr) {
    if (stream == Process::Get().CurrentContext()->default_stream) {
      theirs->Invalidate();
      return Fail(ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT,
                  "the default stream cannot join a capture");
    }
    theirs->Join(stream, record->node());
    return ACL_SUCCESS;
  }
  if (mine != theirs) {
    mine->Invalidate();
    theirs->Invalidate();
    return Fail(ACL_ERROR_RT_STREAM_CAPTURE_CONFLICT,
                "stream {} and the event are parts of two captures",
                stream->id());
  }
  mine->Join(stream, record->node());
  return ACL_SUCCESS;
}

}  // namespace

extern "C" {

aclError aclrtCreateEvent(aclrtEvent* event) {
  CANNSIM_CALL(aclrtCreateEvent);
  return Create(event, EventMaker::kPlain,
                ACL_EVENT_SYNC | ACL_EVENT_TIME_LINE);
}

aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t flag) {
  CANNSIM_CALL(aclrtCreateEventWithFlag);
  return Create(event, EventMaker::kWithFlag, flag);
}

aclError aclrtCreateEventExWithFlag(aclrtEvent* event, uint32_t flag) {
  CANNSIM_CALL(aclrtCreateEventExWithFlag);
  return Create(event, EventMaker::kExWithFlag, flag);
}

aclError aclrtDestroyEvent(aclrtEvent event) {
  CANNSIM_CALL(aclrtDestroyEvent);
  Process& process = Process::Get();
  const auto found = process.FindEvent(event);
  if (found == nullptr) return ACL_ERROR_RT_PARAM_INVALID;
  if (process.events.Remove(event) != nullptr) {
    --process.device(found->device()).n_events;
  }
  return ACL_SUCCESS;
}

aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream) {
  CANNSIM_CALL(aclrtRecordEvent);
  const auto found = Process::Get().FindEvent(event);
  if (found == nullptr) return ACL_ERROR_RT_PARAM_INVALID;
  const auto on = Process::Get().FindStream(stream);
  if (on == nullptr) return PeekLastError();
  return RecordOn(found, on);
}

aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event) {
  CANNSIM_CALL(aclrtStreamWaitEvent);
  const auto found = Process::Get().FindEvent(event);
  if (found == nullptr) return ACL_ERROR_RT_PARAM_INVALID;
  const auto on = Process::Get().FindStream(stream);
  if (on == nullptr) return PeekLastError();
  if (found->maker() == EventMaker::kWithFlag && !found->Has(ACL_EVENT_SYNC)) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "the event was created without ACL_EVENT_SYNC");
  }
  const auto record = found->latest();
  const auto capture = on->capture();
  if (capture != nullptr || (record != nullptr && record->captured())) {
    return WaitCaptured(found, record, on, capture);
  }
  // Never recorded: there is nothing to wait for.
  return record == nullptr ? ACL_SUCCESS : WaitFor(found, record, on);
}

aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream) {
  CANNSIM_CALL(aclrtResetEvent);
  const auto found = Askable(event);
  if (found == nullptr) return PeekLastError();
  const auto on = Process::Get().FindStream(stream);
  if (on == nullptr) return PeekLastError();
  if (found->maker() != EventMaker::kWithFlag || !found->Has(ACL_EVENT_SYNC)) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID,
                "only events of aclrtCreateEventWithFlag with ACL_EVENT_SYNC "
                "can be reset");
  }
  const auto record = found->latest();
  return Process::Get().Launch(on, {.kind = TaskKind::kReset,
                                    .name = "aclrtResetEvent",
                                    .run = [found, record](const TaskRun&) {
                                      found->ResetIf(record);
                                      return ACL_SUCCESS;
                                    }});
}

aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus* status) {
  CANNSIM_CALL(aclrtQueryEvent);
  if (status == nullptr) return Null();
  const auto found = Askable(event);
  if (found == nullptr) return PeekLastError();
  if (found->maker() == EventMaker::kExWithFlag) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "events of aclrtCreateEventExWithFlag: use "
                "aclrtQueryEventStatus");
  }
  const auto record = found->latest();
  if (record != nullptr && record->done()) Process::Get().HostKnows(*record);
  *status = record != nullptr && record->done() ? ACL_EVENT_STATUS_COMPLETE
                                                : ACL_EVENT_STATUS_NOT_READY;
  return ACL_SUCCESS;
}

aclError aclrtQueryEventStatus(aclrtEvent event,
                               aclrtEventRecordedStatus* status) {
  CANNSIM_CALL(aclrtQueryEventStatus);
  if (status == nullptr) return Null();
  const auto found = Askable(event);
  if (found == nullptr) return PeekLastError();
  const auto record = found->latest();
  const bool done = record == nullptr
                        ? found->maker() == EventMaker::kExWithFlag
                        : record->done();
  if (record != nullptr && done) Process::Get().HostKnows(*record);
  *status = done ? ACL_EVENT_RECORDED_STATUS_COMPLETE
                 : ACL_EVENT_RECORDED_STATUS_NOT_READY;
  return ACL_SUCCESS;
}

aclError aclrtQueryEventWaitStatus(aclrtEvent event,
                                   aclrtEventWaitStatus* status) {
  CANNSIM_CALL(aclrtQueryEventWaitStatus);
  if (status == nullptr) return Null();
  const auto found = Askable(event);
  if (found == nullptr) return PeekLastError();
  if (found->maker() == EventMaker::kExWithFlag) {
    return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
                "events of aclrtCreateEventExWithFlag have no wait status");
  }
  *status = found->n_waits.load() == 0 ? ACL_EVENT_WAIT_STATUS_COMPLETE
                                       : ACL_EVENT_WAIT_STATUS_NOT_READY;
  return ACL_SUCCESS;
}

aclError aclrtSynchronizeEvent(aclrtEvent event) {
  return aclrtSynchronizeEventWithTimeout(event, -1);
}

aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout) {
  CANNSIM_CALL(aclrtSynchronizeEvent);
  if (timeout < -1) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "timeout {} is below -1", timeout);
  }
  const auto found = Askable(event);
  if (found == nullptr) return PeekLastError();
  cannsim::Add(cannsim::Count().host_syncs);
  const auto record = found->latest();
  if (record == nullptr) return ACL_SUCCESS;
  if (record->Wait(timeout, nullptr)) {
    cannsim::HostReach(record->time_ns());
    Process::Get().HostKnows(*record);
    return ACL_SUCCESS;
  }
  return Fail(ACL_ERROR_RT_EVENT_SYNC_TIMEOUT,
              "the event has not come after {} ms", timeout);
}

aclError aclrtEventElapsedTime(float* ms, aclrtEvent startEvent,
                               aclrtEvent endEvent) {
  CANNSIM_CALL(aclrtEventElapsedTime);
  if (ms == nullptr) return Null();
  double times[2] = {};
  for (int i = 0; i < 2; ++i) {
    const auto event = Askable(i == 0 ? startEvent : endEvent);
    if (event == nullptr) return PeekLastError();
    const auto record = event->latest();
    if (!event->Has(ACL_EVENT_TIME_LINE) || record == nullptr ||
        !record->done()) {
      return Fail(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID,
                  "the {} event has no time: {}", i == 0 ? "first" : "second",
                  event->Has(ACL_EVENT_TIME_LINE)
                      ? "it is not recorded and synchronized"
                      : "it was created without ACL_EVENT_TIME_LINE");
    }
    times[i] = record->time_ns();
  }
  if (times[1] < times[0]) {
    return Fail(ACL_ERROR_RT_EVENT_TIMESTAMP_REVERSAL,
                "the second event came before the first");
  }
  *ms = static_cast<float>((times[1] - times[0]) * 1e-6);
  return ACL_SUCCESS;
}

aclError aclrtEventGetTimestamp(aclrtEvent event, uint64_t* timestamp) {
  CANNSIM_CALL(aclrtEventGetTimestamp);
  if (timestamp == nullptr) return Null();
  const auto found = Askable(event);
  if (found == nullptr) return PeekLastError();
  const auto record = found->latest();
  if (!found->Has(ACL_EVENT_TIME_LINE) || record == nullptr ||
      !record->done()) {
    return Fail(ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID, "the event has no time");
  }
  *timestamp = static_cast<uint64_t>(record->time_ns() * 1e-3);
  return ACL_SUCCESS;
}

}  // extern "C"
