// SPDX-License-Identifier: Apache-2.0
// Capture, replay and update of task groups.
#include <chrono>
#include <fstream>
#include <utility>

#include "acl/acl_rt.h"
#include "cannsim/runtime/count/counters.h"
#include "cannsim/runtime/error.h"
#include "cannsim/runtime/process.h"

namespace {

using cannsim::Capture;
using cannsim::Fail;
using cannsim::Graph;
using cannsim::PeekLastError;
using cannsim::Process;
using cannsim::Stream;
using cannsim::Task;
using cannsim::TaskGroup;
using cannsim::TaskKind;
using cannsim::TaskRun;

int Null() { return Fail(ACL_ERROR_RT_PARAM_INVALID, "null argument"); }

bool IsMode(aclmdlRICaptureMode mode) {
  return mode >= ACL_MODEL_RI_CAPTURE_MODE_GLOBAL &&
         mode <= ACL_MODEL_RI_CAPTURE_MODE_RELAXED;
}

int Begin(aclrtStream handle, aclmdlRICaptureMode mode) {
  Process& process = Process::Get();
  if (!IsMode(mode)) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "mode {} does not exist",
                static_cast<int>(mode));
  }
  const auto stream = process.FindStream(handle);
  if (stream == nullptr) return PeekLastError();
  if (stream == process.CurrentContext()->default_stream) {
    return Fail(ACL_ERROR_RT_STREAM_CAPTURE_IMPLICIT,
                "the default stream cannot be captured");
  }
  if (stream->capture() != nullptr) {
    return Fail(ACL_ERROR_RT_STREAM_CAPTURED, "stream {} is being captured",
                stream->id());
  }
  auto graph = std::make_shared<Graph>(process.n_graphs.fetch_add(1) + 1);
  process.graphs.Add(graph);
  auto capture = std::make_shared<Capture>(stream, std::move(graph),
                                           static_cast<Capture::Mode>(mode));
  process.CaptureStarted(capture);
  stream->SetCapture(std::move(capture));
  return ACL_SUCCESS;
}

// The capture that ends on this stream in this thread.
int FindEnding(const std::shared_ptr<Stream>& stream,
               std::shared_ptr<Capture>* out) {
  auto capture = stream->capture();
  if (capture == nullptr) {
    return Fail(ACL_ERROR_RT_STREAM_NOT_CAPTURED,
                "stream {} is not being captured", stream->id());
  }
  if (capture->origin() != stream) {
    return Fail(ACL_ERROR_RT_STREAM_CAPTURE_UNMATCHED,
                "the capture began on stream {}, not on {}",
                capture->origin()->id(), stream->id());
  }
  if (capture->mode() != Capture::Mode::kRelaxed &&
      capture->thread() != std::this_thread::get_id()) {
    return Fail(ACL_ERROR_RT_STREAM_CAPTURE_WRONG_THREAD,
                "the capture began in another thread");
  }
  *out = std::move(capture);
  return ACL_SUCCESS;
}

std::shared_ptr<Graph> FindReady(aclmdlRI handle) {
  auto graph = Process::Get().graphs.Find(handle);
  if (graph == nullptr) {
    Fail(ACL_ERROR_RT_PARAM_INVALID, "{} is no live model", handle);
  } else if (!graph->ready) {
    Fail(ACL_ERROR_RT_MODEL_CAPTURED, "model {} is still being captured",
         graph->id());
    return nullptr;
  }
  return graph;
}

// Holds the graph as running until the last copy is gone.
std::shared_ptr<Graph> Running(const std::shared_ptr<Graph>& graph) {
  ++graph->n_running;
  return {graph.get(), [graph](Graph* g) { --g->n_running; }};
}

int Execute(const std::shared_ptr<Graph>& graph,
            const std::shared_ptr<Stream>& stream) {
  return Process::Get().Launch(
      stream, {.kind = TaskKind::kGraph,
               .name = "aclmdlRIExecuteAsync",
               .run = [running = Running(graph), device = stream->device(),
                       id = stream->id()](const TaskRun& run) {
                 return running->Run(run, device, id);
               }});
}

// The stream's capture, for calls that need one.
std::shared_ptr<Capture> FindCapture(const std::shared_ptr<Stream>& stream) {
  auto capture = stream->capture();
  if (capture == nullptr) {
    Fail(ACL_ERROR_RT_STREAM_NOT_CAPTURED, "stream {} is not being captured",
         stream->id());
  }
  return capture;
}

int CheckUpdate(const TaskGroup& group, const std::vector<Task>& tasks) {
  if (tasks.size() != group.nodes.size()) {
    return Fail(ACL_ERROR_RT_MODEL_UPDATE_FAILED,
                "the group has {} tasks, the update {}", group.nodes.size(),
                tasks.size());
  }
  for (size_t i = 0; i < tasks.size(); ++i) {
    if (tasks[i].kind != group.graph->kind(group.nodes[i])) {
      return Fail(ACL_ERROR_RT_FEATURE_NOT_SUPPORT_UPDATE_OP,
                  "task {} of the update ({}) is of another kind than the "
                  "group's",
                  i, tasks[i].name);
    }
  }
  return ACL_SUCCESS;
}

}  // namespace

extern "C" {

aclError aclmdlRICaptureBegin(aclrtStream stream, aclmdlRICaptureMode mode) {
  CANNSIM_CALL(aclmdlRICaptureBegin);
  return Begin(stream, mode);
}

aclError aclmdlRICaptureGetInfo(aclrtStream stream,
                                aclmdlRICaptureStatus* status,
                                aclmdlRI* modelRI) {
  CANNSIM_CALL(aclmdlRICaptureGetInfo);
  if (status == nullptr) return Null();
  const auto found = Process::Get().FindStream(stream);
  if (found == nullptr) return PeekLastError();
  const auto capture = found->capture();
  *status = capture == nullptr       ? ACL_MODEL_RI_CAPTURE_STATUS_NONE
            : capture->invalidated() ? ACL_MODEL_RI_CAPTURE_STATUS_INVALIDATED
                                     : ACL_MODEL_RI_CAPTURE_STATUS_ACTIVE;
  if (modelRI != nullptr) {
    *modelRI = capture == nullptr ? nullptr : capture->graph().get();
  }
  return ACL_SUCCESS;
}

aclError aclmdlRICaptureEnd(aclrtStream stream, aclmdlRI* modelRI) {
  CANNSIM_CALL(aclmdlRICaptureEnd);
  if (modelRI == nullptr) return Null();
  *modelRI = nullptr;
  Process& process = Process::Get();
  const auto found = process.FindStream(stream);
  if (found == nullptr) return PeekLastError();
  std::shared_ptr<Capture> capture;
  if (const int code = FindEnding(found, &capture); code != 0) return code;
  const int code = capture->End();
  process.CaptureEnded(capture);
  if (code != 0) {
    process.graphs.Remove(capture->graph().get());
    return code;
  }
  capture->graph()->ready = true;
  *modelRI = capture->graph().get();
  return ACL_SUCCESS;
}

aclError aclmdlRICaptureThreadExchangeMode(aclmdlRICaptureMode* mode) {
  CANNSIM_CALL(aclmdlRICaptureThreadExchangeMode);
  if (mode == nullptr || !IsMode(*mode)) return Null();
  Capture::Mode& mine = cannsim::ThisThread().capture_mode;
  const auto before = static_cast<aclmdlRICaptureMode>(mine);
  mine = static_cast<Capture::Mode>(*mode);
  *mode = before;
  return ACL_SUCCESS;
}

aclError aclmdlRIExecuteAsync(aclmdlRI modelRI, aclrtStream stream) {
  CANNSIM_CALL(aclmdlRIExecuteAsync);
  const auto graph = FindReady(modelRI);
  if (graph == nullptr) return PeekLastError();
  const auto found = Process::Get().FindStream(stream);
  if (found == nullptr) return PeekLastError();
  return Execute(graph, found);
}

aclError aclmdlRIExecute(aclmdlRI modelRI, int32_t timeout) {
  CANNSIM_CALL(aclmdlRIExecute);
  const auto graph = FindReady(modelRI);
  if (graph == nullptr) return PeekLastError();
  const auto stream = Process::Get().FindStream(nullptr);
  if (stream == nullptr) return PeekLastError();
  if (const int code = Execute(graph, stream); code != 0) return code;
  cannsim::Add(cannsim::Count().host_syncs);
  return stream->Synchronize(timeout, ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
}

aclError aclmdlRIDestroy(aclmdlRI modelRI) {
  CANNSIM_CALL(aclmdlRIDestroy);
  const auto graph = FindReady(modelRI);
  if (graph == nullptr) return PeekLastError();
  if (graph->n_running.load() > 0) {
    return Fail(ACL_ERROR_RT_MODEL_RUNNING, "model {} is still running",
                graph->id());
  }
  Process::Get().graphs.Remove(modelRI);
  return ACL_SUCCESS;
}

aclError aclmdlRIGetId(aclmdlRI modelRI, uint32_t* modelRIId) {
  CANNSIM_CALL(aclmdlRIGetId);
  if (modelRIId == nullptr) return Null();
  const auto graph = FindReady(modelRI);
  if (graph == nullptr) return PeekLastError();
  *modelRIId = graph->id();
  return ACL_SUCCESS;
}

aclError aclmdlRIDebugPrint(aclmdlRI modelRI) {
  CANNSIM_CALL(aclmdlRIDebugPrint);
  const auto graph = FindReady(modelRI);
  if (graph == nullptr) return PeekLastError();
  cannsim::Complain(
      fmt::format("model {}: {} tasks", graph->id(), graph->n_tasks()));
  return ACL_SUCCESS;
}

aclError aclmdlRIDebugJsonPrint(aclmdlRI modelRI, const char* path, uint32_t) {
  CANNSIM_CALL(aclmdlRIDebugJsonPrint);
  if (path == nullptr) return Null();
  const auto graph = FindReady(modelRI);
  if (graph == nullptr) return PeekLastError();
  std::ofstream out(path);
  out << fmt::format("{{\"model\": {}, \"tasks\": {}}}\n", graph->id(),
                     graph->n_tasks());
  if (out) return ACL_SUCCESS;
  return Fail(ACL_ERROR_RT_FILE_WRITE, "{}: cannot be written", path);
}

aclError aclmdlRICaptureTaskGrpBegin(aclrtStream stream) {
  CANNSIM_CALL(aclmdlRICaptureTaskGrpBegin);
  const auto found = Process::Get().FindStream(stream);
  if (found == nullptr) return PeekLastError();
  const auto capture = FindCapture(found);
  if (capture == nullptr) return PeekLastError();
  return capture->BeginGroup(found.get());
}

aclError aclmdlRICaptureTaskGrpEnd(aclrtStream stream, aclrtTaskGrp* handle) {
  CANNSIM_CALL(aclmdlRICaptureTaskGrpEnd);
  if (handle == nullptr) return Null();
  const auto found = Process::Get().FindStream(stream);
  if (found == nullptr) return PeekLastError();
  const auto capture = FindCapture(found);
  if (capture == nullptr) return PeekLastError();
  auto group = std::make_shared<TaskGroup>();
  group->graph = capture->graph();
  const int code = capture->EndGroup(found.get(), &group->nodes);
  if (code != 0) return code;
  *handle = Process::Get().groups.Add(std::move(group));
  return ACL_SUCCESS;
}

aclError aclmdlRICaptureTaskUpdateBegin(aclrtStream stream,
                                        aclrtTaskGrp handle) {
  CANNSIM_CALL(aclmdlRICaptureTaskUpdateBegin);
  Process& process = Process::Get();
  const auto found = process.FindStream(stream);
  if (found == nullptr) return PeekLastError();
  const auto group = process.groups.Find(handle);
  if (group == nullptr) {
    return Fail(ACL_ERROR_RT_PARAM_INVALID, "{} is no task group", handle);
  }
  if (found->capture() != nullptr) {
    return Fail(ACL_ERROR_RT_STREAM_CAPTURED, "stream {} is being captured",
                found->id());
  }
  if (found->collector() != nullptr) {
    return Fail(ACL_ERROR_RT_STREAM_TASK_GROUP_STATUS,
                "an update is under way on stream {}", found->id());
  }
  found->SetCollector(std::make_shared<std::vector<Task>>());
  found->SetUpdated(group);
  return ACL_SUCCESS;
}

aclError aclmdlRICaptureTaskUpdateEnd(aclrtStream stream) {
  CANNSIM_CALL(aclmdlRICaptureTaskUpdateEnd);
  const auto found = Process::Get().FindStream(stream);
  if (found == nullptr) return PeekLastError();
  const auto tasks = found->collector();
  const auto group = found->updated();
  if (tasks == nullptr || group == nullptr) {
    return Fail(ACL_ERROR_RT_STREAM_TASK_GROUP_STATUS,
                "no update is under way on stream {}", found->id());
  }
  found->SetCollector(nullptr);
  found->SetUpdated(nullptr);
  if (const int code = CheckUpdate(*group, *tasks); code != 0) return code;
  // In its place in the stream, so that events can order it against replays.
  return Process::Get().Launch(found, {.kind = TaskKind::kOther,
                                       .name = "aclmdlRICaptureTaskUpdateEnd",
                                       .run = [group, tasks](const TaskRun&) {
                                         group->graph->Replace(group->nodes,
                                                               *tasks);
                                         return ACL_SUCCESS;
                                       }});
}

}  // extern "C"
