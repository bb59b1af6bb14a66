// SPDX-License-Identifier: Apache-2.0
#include "toolkit/doctor/machine/live.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <sstream>
#include <system_error>
#include <utility>

#include "base/scoped_fd.h"

namespace belay::doctor {
namespace {

namespace fs = std::filesystem;
constexpr size_t kMaxBytes = size_t{1} << 20;

std::string ReadUpTo(int fd) {
  std::string text;
  std::array<char, 65536> buffer;
  while (text.size() < kMaxBytes) {
    const ssize_t n = read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.append(buffer.data(), static_cast<size_t>(n));
  }
  text.resize(std::min(text.size(), kMaxBytes));
  return text;
}

class LiveMachine : public Machine {
 public:
  LiveMachine(std::map<std::string, std::string> variables, int timeout_ms,
              std::string root)
      : variables_(std::move(variables)),
        timeout_ms_(timeout_ms),
        root_(std::move(root)) {}

  std::optional<std::string> Read(const std::string& below) override {
    const std::string path = root_ + below;
    // Not a pipe or device, which could block.
    const ScopedFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat info {};
    if (fd.get() < 0 || fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
      return std::nullopt;
    }
    return ReadUpTo(fd.get());
  }

  PathState Stat(const std::string& below) override {
    const std::string path = root_ + below;
    PathState state;
    struct stat info {};
    state.is_link = lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode);
    if (stat(path.c_str(), &info) != 0) return state;
    state.kind = S_ISREG(info.st_mode)   ? PathKind::kFile
                 : S_ISDIR(info.st_mode) ? PathKind::kFolder
                 : S_ISCHR(info.st_mode) ? PathKind::kDevice
                                         : PathKind::kOther;
    if (S_ISREG(info.st_mode)) {
      state.bytes = static_cast<uint64_t>(info.st_size);
    }
    state.can_read = access(path.c_str(), R_OK) == 0;
    state.can_write = access(path.c_str(), W_OK) == 0;
    return state;
  }

  std::vector<std::string> List(const std::string& folder) override {
    std::vector<std::string> names;
    std::error_code error;
    fs::directory_iterator it(root_ + folder, error);
    for (const fs::directory_iterator end; !error && it != end;
         it.increment(error)) {
      names.push_back(it->path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  CommandOutput Run(const std::string& command) override {
    std::vector<std::string> words;
    std::istringstream stream(command);
    for (std::string word; stream >> word;) words.push_back(word);
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    CommandOutput output;
    int ends[2];
    if (words.empty() || pipe2(ends, O_CLOEXEC) != 0) return output;
    const ScopedFd reader(ends[0]);
    int writer = ends[1];
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, writer, 1);
    posix_spawn_file_actions_adddup2(&actions, writer, 2);
    pid_t pid = 0;
    std::vector<std::string> settings;
    for (const auto& [name, value] : variables_) {
      settings.push_back(name + "=" + value);
    }
    std::vector<char*> envp;
    for (std::string& setting : settings) envp.push_back(setting.data());
    envp.push_back(nullptr);
    const int error = posix_spawnp(&pid, argv[0], &actions, nullptr,
                                   argv.data(), envp.data());
    posix_spawn_file_actions_destroy(&actions);
    close(writer);
    if (error != 0) return output;
    output.is_found = true;
    Collect(reader.get(), output);
    // It may have closed its output and live on.
    if (output.timed_out) kill(pid, SIGKILL);
    int status = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    output.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    // 127 of a helper that spawns us: the program is not there.
    if (output.status == 127) output.is_found = false;
    return output;
  }

  std::map<std::string, std::string> Variables() override { return variables_; }

  std::string Arch() override {
    utsname name{};
    return uname(&name) == 0 ? name.machine : "";
  }

  std::optional<uint64_t> FreeBytes(const std::string& path) override {
    struct statvfs info {};
    if (statvfs((root_ + path).c_str(), &info) != 0) return std::nullopt;
    return uint64_t{info.f_bavail} * info.f_frsize;
  }

  std::optional<uint64_t> TotalBytes(const std::string& path) override {
    struct statvfs info {};
    if (statvfs((root_ + path).c_str(), &info) != 0) return std::nullopt;
    return uint64_t{info.f_blocks} * info.f_frsize;
  }

  std::optional<SharedObject> ReadLibrary(
      const std::string& path,
      const std::vector<std::string>& wanted) override {
    const ScopedFd fd(
        open((root_ + path).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat info {};
    if (fd.get() < 0 || fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
      return std::nullopt;
    }
    return ReadElf(
        [&](uint64_t offset, void* to, size_t bytes) {
          return offset < uint64_t{1} << 62 &&
                 pread(fd.get(), to, bytes, static_cast<off_t>(offset)) ==
                     static_cast<ssize_t>(bytes);
        },
        wanted);
  }

 private:
  void Collect(int fd, CommandOutput& output) const {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + std::chrono::milliseconds(timeout_ms_);
    std::array<char, 65536> buffer;
    while (true) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
                            end - Clock::now())
                            .count();
      pollfd watched{fd, POLLIN, 0};
      const int ready =
          left > 0 ? poll(&watched, 1, static_cast<int>(left)) : 0;
      if (ready < 0 && errno == EINTR) continue;
      if (ready <= 0) {
        output.timed_out = true;
        return;
      }
      const ssize_t n = read(fd, buffer.data(), buffer.size());
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return;
      if (output.out.size() < kMaxBytes) {
        output.out.append(buffer.data(), static_cast<size_t>(n));
      }
    }
  }

  std::map<std::string, std::string> variables_;
  int timeout_ms_;
  std::string root_;
};

}  // namespace

std::unique_ptr<Machine> NewLiveMachine(
    std::map<std::string, std::string> variables, int timeout_ms,
    const std::string& root) {
  return std::make_unique<LiveMachine>(std::move(variables), timeout_ms, root);
}

}  // namespace belay::doctor
