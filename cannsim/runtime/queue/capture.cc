// SPDX-License-Identifier: Apache-2.0
#include "cannsim/runtime/queue/capture.h"

#include <algorithm>
#include <utility>

#include "acl/error_codes.h"
#include "cannsim/runtime/count/clock.h"
#include "cannsim/runtime/error.h"
#include "cannsim/runtime/process.h"

namespace cannsim {

size_t Graph::n_tasks() const {
  const std::lock_guard lock(mutex_);
  return tasks_.size();
}

int Graph::Append(Task task) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  return static_cast<int>(tasks_.size()) - 1;
}

int Graph::Run(const TaskRun& run, int device, unsigned stream) {
  for (size_t i = 0;; ++i) {
    Task task;
    {
      const std::lock_guard lock(mutex_);
      if (i >= tasks_.size()) return ACL_SUCCESS;
      task = tasks_[i];
    }
    if (run.abandoned.load()) return ACL_SUCCESS;
    if (Process::Get().faults().has_rules()) {
      Process::Get().faults().Arm(&task, device, stream);
    }
    const int code = RunTimed(task, run);
    if (code != 0) {
      return Fail(code, "{} (task {} of graph {}): {}", task.name, i, id_,
                  TakeMessage());
    }
  }
}

void Graph::Replace(const std::vector<int>& nodes, std::vector<Task> tasks) {
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < nodes.size(); ++i) {
    tasks_[static_cast<size_t>(nodes[i])] = std::move(tasks[i]);
  }
}

TaskKind Graph::kind(int node) const {
  const std::lock_guard lock(mutex_);
  return tasks_[static_cast<size_t>(node)].kind;
}

Capture::Capture(std::shared_ptr<Stream> origin, std::shared_ptr<Graph> graph,
                 Mode mode)
    : origin_(std::move(origin)), graph_(std::move(graph)), mode_(mode) {
  tips_[origin_.get()] = -1;
}

int Capture::Append(Stream* stream, Task task) {
  const std::lock_guard lock(mutex_);
  std::vector<int> before = std::move(pending_[stream]);
  pending_.erase(stream);
  if (tips_[stream] >= 0) before.push_back(tips_[stream]);
  const int node = graph_->Append(std::move(task));
  waits_.resize(static_cast<size_t>(node) + 1);
  waits_[static_cast<size_t>(node)] = std::move(before);
  tips_[stream] = node;
  const auto group = groups_.find(stream);
  if (group != groups_.end()) group->second.push_back(node);
  return node;
}

void Capture::Join(const std::shared_ptr<Stream>& stream, int node) {
  const std::lock_guard lock(mutex_);
  if (tips_.emplace(stream.get(), -1).second) joined_.push_back(stream);
  if (node >= 0) pending_[stream.get()].push_back(node);
  stream->SetCapture(shared_from_this());
}

int Capture::End() {
  const std::lock_guard lock(mutex_);
  origin_->SetCapture(nullptr);
  for (const auto& stream : joined_) stream->SetCapture(nullptr);
  // What the origin's end comes after, by any way.
  std::vector<bool> reached(waits_.size(), false);
  std::vector<int> open = pending_[origin_.get()];
  if (tips_[origin_.get()] >= 0) open.push_back(tips_[origin_.get()]);
  while (!open.empty()) {
    const auto node = static_cast<size_t>(open.back());
    open.pop_back();
    if (reached[node]) continue;
    reached[node] = true;
    open.insert(open.end(), waits_[node].begin(), waits_[node].end());
  }
  for (const auto& stream : joined_) {
    const int tip = tips_[stream.get()];
    if (tip >= 0 && !reached[static_cast<size_t>(tip)]) {
      return Fail(ACL_ERROR_RT_STREAM_UNJOINED,
                  "stream {} joined the capture and was not waited for before "
                  "its end",
                  stream->id());
    }
  }
  if (invalidated_) {
    return Fail(ACL_ERROR_RT_STREAM_CAPTURE_INVALIDATED,
                "a call during the capture was not allowed");
  }
  return ACL_SUCCESS;
}

int Capture::BeginGroup(Stream* stream) {
  const std::lock_guard lock(mutex_);
  if (!groups_.emplace(stream, std::vector<int>()).second) {
    return Fail(ACL_ERROR_RT_STREAM_TASK_GROUP_STATUS,
                "stream {} is in a task group already", stream->id());
  }
  return ACL_SUCCESS;
}

int Capture::EndGroup(Stream* stream, std::vector<int>* nodes) {
  const std::lock_guard lock(mutex_);
  const auto it = groups_.find(stream);
  if (it == groups_.end()) {
    return Fail(ACL_ERROR_RT_STREAM_TASK_GROUP_STATUS,
                "stream {} is in no task group", stream->id());
  }
  *nodes = std::move(it->second);
  groups_.erase(it);
  return ACL_SUCCESS;
}

}  // namespace cannsim
