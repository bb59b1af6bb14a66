// SPDX-License-Identifier: Apache-2.0
// Capture and replay (aclmdlRI*). A graph is the list of captured tasks in the
// order in which they were recorded; since each task is recorded after all that
// it waits for, running them one after another is a valid replay.
#ifndef BELAY_CANNSIM_RUNTIME_QUEUE_CAPTURE_H_
#define BELAY_CANNSIM_RUNTIME_QUEUE_CAPTURE_H_

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "cannsim/runtime/queue/stream.h"
#include "cannsim/runtime/queue/task.h"

namespace cannsim {

// What aclmdlRI points to.
class Graph {
 public:
  explicit Graph(unsigned id) : id_(id) {}

  unsigned id() const { return id_; }
  size_t n_tasks() const;
  int Append(Task task);  // its index

  // Runs all tasks on a stream of a device; stops at the first that fails.
  int Run(const TaskRun& run, int device, unsigned stream);

  // Tasks [begin, begin + tasks.size()) get new work of the same kinds.
  void Replace(const std::vector<int>& nodes, std::vector<Task> tasks);
  TaskKind kind(int node) const;

  std::atomic<int> n_running{0};
  std::atomic<bool> ready{false};  // the capture has ended well

 private:
  const unsigned id_;
  mutable std::mutex mutex_;
  std::vector<Task> tasks_;
};

// A marked part of a graph (aclrtTaskGrp).
struct TaskGroup {
  std::shared_ptr<Graph> graph;
  std::vector<int> nodes;
};

class Capture : public std::enable_shared_from_this<Capture> {
 public:
  enum class Mode { kGlobal = 0, kThreadLocal = 1, kRelaxed = 2 };

  Capture(std::shared_ptr<Stream> origin, std::shared_ptr<Graph> graph,
          Mode mode);

  Mode mode() const { return mode_; }
  std::thread::id thread() const { return thread_; }
  const std::shared_ptr<Graph>& graph() const { return graph_; }
  const std::shared_ptr<Stream>& origin() const { return origin_; }
  bool invalidated() const { return invalidated_; }
  void Invalidate() { invalidated_ = true; }

  // Records a task of `stream`, which is part of the capture. Its index.
  int Append(Stream* stream, Task task);

  // `stream` goes on after the node, too; it becomes part of the capture.
  void Join(const std::shared_ptr<Stream>& stream, int node);

  // Ends it: no stream records any more. 0, or 107025 when a stream that
  // joined was not waited for at the end.
  int End();

  // Task groups: nodes recorded on the stream between Begin and End.
  int BeginGroup(Stream* stream);
  int EndGroup(Stream* stream, std::vector<int>* nodes);

 private:
  const std::shared_ptr<Stream> origin_;
  const std::shared_ptr<Graph> graph_;
  const Mode mode_;
  const std::thread::id thread_ = std::this_thread::get_id();
  std::atomic<bool> invalidated_{false};

  std::mutex mutex_;
  std::vector<std::vector<int>> waits_;  // of each node: what comes before it
  std::map<Stream*, int> tips_;          // last node; -1 before the first
  std::map<Stream*, std::vector<int>> pending_;  // waits of the next node
  std::vector<std::shared_ptr<Stream>> joined_;
  std::map<Stream*, std::vector<int>> groups_;
};

}  // namespace cannsim

#endif  // BELAY_CANNSIM_RUNTIME_QUEUE_CAPTURE_H_
