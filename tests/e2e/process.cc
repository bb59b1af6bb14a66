// SPDX-License-Identifier: Apache-2.0
#include "e2e/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <thread>

namespace belay::e2e {
namespace {

std::string Read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

[[noreturn]] void Become(const std::vector<std::string>& args,
                         const ProcessOptions& options, const char* out,
                         const char* err) {
  const int out_fd = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const int err_fd = open(err, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (out_fd < 0 || err_fd < 0) _exit(126);
  dup2(out_fd, STDOUT_FILENO);
  dup2(err_fd, STDERR_FILENO);
  std::vector<char*> argv = {const_cast<char*>(BELAY_PROGRAM)};
  for (const std::string& arg : args) {
    argv.push_back(const_cast<char*>(arg.c_str()));
  }
  argv.push_back(nullptr);
  std::vector<char*> environment;
  for (const std::string& entry : options.environment) {
    environment.push_back(const_cast<char*>(entry.c_str()));
  }
  environment.push_back(nullptr);
  execve(BELAY_PROGRAM, argv.data(), environment.data());
  _exit(127);
}

}  // namespace

ProcessResult RunProgram(const std::vector<std::string>& args,
                         const ProcessOptions& options) {
  const std::string base = (std::filesystem::temp_directory_path() /
                            ("belay_e2e_" + std::to_string(getpid())))
                               .string();
  const std::string out = base + ".out";
  const std::string err = base + ".err";
  const char* out_path =
      options.out_path.empty() ? out.c_str() : options.out_path.c_str();
  const pid_t child = fork();
  if (child == 0) Become(args, options, out_path, err.c_str());
  if (options.interrupt_after_ms > 0) {
    std::this_thread::sleep_for(
        std::chrono::milliseconds(options.interrupt_after_ms));
    kill(child, SIGINT);
  }
  int status = 0;
  waitpid(child, &status, 0);
  ProcessResult result;
  result.code =
      WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  if (options.out_path.empty()) result.out = Read(out);
  result.err = Read(err);
  std::filesystem::remove(out);
  std::filesystem::remove(err);
  return result;
}

}  // namespace belay::e2e
