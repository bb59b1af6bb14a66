// SPDX-License-Identifier: Apache-2.0
// A fixed team of threads for fork-join work. The caller is a member of the
// team and workers spin for a short while between jobs, since a decode step has
// hundreds of them. Nothing is allocated after Create().
#ifndef BELAY_BASE_THREAD_POOL_H_
#define BELAY_BASE_THREAD_POOL_H_

#include <cstddef>
#include <memory>
#include <span>

#include "base/error.h"

namespace belay {

class ThreadPool {
 public:
  // `n_threads` members, the caller included; 1 starts no thread. ARG-002 when
  // n_threads < 1 or beyond 1024, or when the system refuses.
  // With `cpus` (Topology::CpusFor) worker i stays on cpus[i], as far as the
  // system allows it; the caller is bound to nothing, being no thread of ours.
  static StatusOr<std::unique_ptr<ThreadPool>> Create(
      int n_threads, std::span<const int> cpus = {});
  virtual ~ThreadPool() = default;

  virtual int n_threads() const = 0;

  // Calls fn(task, thread) for every task in [0, n_tasks), thread in
  // [0, n_threads()); returns when all are done. Tasks are handed out in order,
  // one at a time, to whoever is free. Not reentrant; one caller at a time.
  template <typename Fn>  // void(size_t task, int thread)
  void ParallelFor(size_t n_tasks, const Fn& fn) {
    Run(n_tasks, &fn, [](const void* f, size_t task, int thread) {
      (*static_cast<const Fn*>(f))(task, thread);
    });
  }

 protected:
  using TaskFn = void (*)(const void* fn, size_t task, int thread);
  virtual void Run(size_t n_tasks, const void* fn, TaskFn call) = 0;
};

// The thread count to use when the user names none: the physical cores that
// this process may use, by affinity and control-group quota
// (base/cpu_count.h); at least 1.
int DefaultThreads();

}  // namespace belay

#endif  // BELAY_BASE_THREAD_POOL_H_
