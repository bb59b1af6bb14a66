// SPDX-License-Identifier: Apache-2.0
#include "cannsim/runtime/log/log.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <string_view>

#include "cannsim/config/log_settings.h"

namespace cannsim {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxFileBytes = size_t{20} << 20;
constexpr size_t kMaxText = 900;

struct Now {
  std::tm tm{};
  int64_t us = 0;
};

Now TakeTime() {
  const auto now = std::chrono::system_clock::now();
  Now result;
  result.us = std::chrono::duration_cast<std::chrono::microseconds>(
                  now.time_since_epoch())
                  .count() %
              1000000;
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  localtime_r(&seconds, &result.tm);
  return result;
}

// The program's name as plog lines show it.
std::string ProgramName() {
  std::ifstream in("/proc/self/comm");
  std::string name;
  std::getline(in, name);
  for (char& c : name) {
    if (c <= ' ' || c >= 0x7F || c == ')' || c == ',') c = '_';
  }
  return name;
}

const char* NameOf(LogLevel level) {
  static constexpr const char* kNames[] = {"DEBUG", "INFO", "WARNING", "ERROR"};
  return kNames[static_cast<size_t>(level)];
}

// One kind of file of this process, and its predecessors.
struct Series {
  int fd = -1;
  size_t bytes = 0;
  std::deque<std::string> paths;
};

class Logger {
 public:
  static Logger& Get() {
    static auto* const logger = new Logger;
    return *logger;
  }

  bool Wants(LogLevel level, const char* module) const {
    return static_cast<int>(level) >= settings_.LevelOf(module);
  }

  // `folder` below the root, `kind` at the begin of the file's name.
  void Write(const std::string& folder, const char* kind,
             const std::string& line) {
    const std::lock_guard lock(mutex_);
    if (settings_.to_stdout) {
      WriteAll(STDOUT_FILENO, line);
      return;
    }
    if (settings_.root.empty()) return;
    if (pid_ != getpid()) Forget();  // a forked child has files of its own
    Series& series = series_[folder];
    if (series.fd < 0 || series.bytes > kMaxFileBytes) {
      Open(folder, kind, series);
    }
    if (series.fd < 0) return;
    WriteAll(series.fd, line);
    series.bytes += line.size();
  }

  const std::string& program() const { return program_; }

 private:
  static void WriteAll(int fd, const std::string& line) {
    // One call: lines of several threads and processes stay whole.
    [[maybe_unused]] const ssize_t n = write(fd, line.data(), line.size());
  }

  void Forget() {
    for (auto& [folder, series] : series_) {
      if (series.fd >= 0) close(series.fd);
    }
    series_.clear();
    pid_ = getpid();
  }

  void Open(const std::string& folder, const char* kind, Series& series) {
    if (series.fd >= 0) close(series.fd);
    series.fd = -1;
    series.bytes = 0;
    const fs::path path = fs::path(settings_.root) / folder;
    std::error_code ignored;
    fs::create_directories(path, ignored);
    const Now now = TakeTime();
    const std::string file =
        (path / fmt::format("{}-{}_{:04}{:02}{:02}{:02}{:02}{:02}{:03}.log",
                            kind, pid_, now.tm.tm_year + 1900,
                            now.tm.tm_mon + 1, now.tm.tm_mday, now.tm.tm_hour,
                            now.tm.tm_min, now.tm.tm_sec, now.us / 1000))
            .string();
    series.fd = open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
                     S_IRUSR | S_IWUSR | S_IRGRP);
    if (series.fd < 0) return;
    series.paths.push_back(file);
    while (series.paths.size() > static_cast<size_t>(settings_.n_files)) {
      unlink(series.paths.front().c_str());
      series.paths.pop_front();
    }
  }

  const LogSettings settings_ = LogSettingsFromEnvironment();
  const std::string program_ = ProgramName();
  std::mutex mutex_;
  pid_t pid_ = getpid();
  std::map<std::string, Series> series_;  // by folder
};

std::string Line(LogLevel level, const char* module, const char* function,
                 const std::string& text, LogPlace place) {
  const std::string_view path = place.file;
  const std::string_view file = path.substr(path.rfind('/') + 1);
  const std::string_view first =
      std::string_view(text).substr(0, std::min(text.find('\n'), kMaxText));
  return fmt::format("[{}] {}({},{}):{} [{}:{}]{} {}:{}\n", NameOf(level),
                     module, getpid(), Logger::Get().program(), LogTime(), file,
                     place.line, syscall(SYS_gettid), function, first);
}

}  // namespace

bool Logs(LogLevel level, const char* module) {
  return Logger::Get().Wants(level, module);
}

void Log(LogLevel level, const char* module, const char* function,
         const std::string& text, LogPlace place) {
  if (!Logs(level, module)) return;
  Logger::Get().Write("debug/plog", "plog",
                      Line(level, module, function, text, place));
}

void LogRun(const char* module, const char* function, const std::string& text,
            LogPlace place) {
  Logger::Get().Write("run/plog", "plog",
                      Line(LogLevel::kInfo, module, function, text, place));
}

void LogDevice(int device, const char* module, const char* function,
               const std::string& text, LogPlace place) {
  if (!Logs(LogLevel::kError, module)) return;
  Logger::Get().Write(fmt::format("debug/device-{}", device), "device",
                      Line(LogLevel::kError, module, function, text, place));
}

std::string LogTime() {
  const Now now = TakeTime();
  return fmt::format("{:04}-{:02}-{:02}-{:02}:{:02}:{:02}.{:03}.{:03}",
                     now.tm.tm_year + 1900, now.tm.tm_mon + 1, now.tm.tm_mday,
                     now.tm.tm_hour, now.tm.tm_min, now.tm.tm_sec,
                     now.us / 1000, now.us % 1000);
}

}  // namespace cannsim
