// SPDX-License-Identifier: Apache-2.0
// Runs the program as users do.
#ifndef BELAY_TESTS_E2E_PROCESS_H_
#define BELAY_TESTS_E2E_PROCESS_H_

#include <string>
#include <vector>

namespace belay::e2e {

struct ProcessResult {
  int code = -1;  // exit code; 128 + signal when a signal ended it
  std::string out;
  std::string err;
};

struct ProcessOptions {
  std::vector<std::string> environment = {"LC_ALL=C.UTF-8"};
  // A file or device in place of the captured output.
  std::string out_path = {};
  int interrupt_after_ms = 0;  // > 0: sends SIGINT then
};

// Runs the built `belay` with `args`, no shell between.
ProcessResult RunProgram(const std::vector<std::string>& args,
                         const ProcessOptions& options = {});

}  // namespace belay::e2e

#endif  // BELAY_TESTS_E2E_PROCESS_H_
