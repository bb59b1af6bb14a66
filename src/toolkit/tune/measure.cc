// SPDX-License-Identifier: Apache-2.0
#include "toolkit/tune/measure.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <new>
#include <thread>

#include "base/error_ids.h"
#include "base/error_ids_toolkit.h"

namespace belay::tune {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Status Failed(const std::vector<std::string>& command, std::string what) {
  return MakeError(kTuneMeasure, {.where = command.empty() ? "" : command[0],
                                  .what = std::move(what),
                                  .expected = "",
                                  .got = ""});
}

Status RunOnce(const std::vector<std::string>& command) {
  std::vector<std::string> words = command;
  std::vector<char*> argv;
  argv.reserve(words.size() + 1);
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  pid_t pid = 0;
  const int error =
      posix_spawnp(&pid, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return Failed(command, std::strerror(error));
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  return Failed(command,
                WIFEXITED(status)
                    ? fmt::format("exit status {}", WEXITSTATUS(status))
                    : fmt::format("signal {}", WTERMSIG(status)));
}

}  // namespace

StatusOr<std::vector<double>> MeasureBandwidth(int n_runs, int n_threads,
                                               size_t bytes) {
  const auto n = static_cast<size_t>(n_threads);
  // Each thread touches its own first, so that it lies at the thread's node.
  std::vector<std::unique_ptr<char[]>> from(n), to(n);
  for (size_t i = 0; i < n; ++i) {
    from[i].reset(new (std::nothrow) char[bytes]);
    to[i].reset(new (std::nothrow) char[bytes]);
    if (from[i] == nullptr || to[i] == nullptr) {
      return MakeError(
          kSysOutOfMemory,
          {.where = "belay tune", .what = "", .expected = "", .got = ""});
    }
  }
  std::vector<double> runs;
  for (int run = -1; run < n_runs; ++run) {  // the first warms up
    const auto start = Clock::now();
    std::vector<std::thread> threads;
    for (size_t i = 0; i < n; ++i) {
      threads.emplace_back([&, i] {
        if (run < 0) std::memset(from[i].get(), 1, bytes);
        for (int pass = 0; pass < 4; ++pass) {
          std::memcpy(to[i].get(), from[i].get(), bytes);
          from[i][static_cast<size_t>(pass)] = to[i][bytes - 1];
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    if (run >= 0) {
      runs.push_back(8e-9 * static_cast<double>(bytes) *
                     static_cast<double>(n) / SecondsSince(start));
    }
  }
  return runs;
}

StatusOr<std::vector<double>> MeasureCommand(
    const std::vector<std::string>& command, int n_runs) {
  if (command.empty()) return Failed(command, "no command");
  std::vector<double> runs;
  for (int run = 0; run < n_runs; ++run) {
    const auto start = Clock::now();
    BELAY_RETURN_IF_ERROR(RunOnce(command));
    runs.push_back(1 / SecondsSince(start));
  }
  return runs;
}

}  // namespace belay::tune
