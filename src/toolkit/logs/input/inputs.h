// SPDX-License-Identifier: Apache-2.0
// Which files a command line names.
#ifndef BELAY_TOOLKIT_LOGS_INPUT_INPUTS_H_
#define BELAY_TOOLKIT_LOGS_INPUT_INPUTS_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace belay::logs {

struct InputFile {
  std::string path;
  uint64_t n_bytes = 0;
  bool is_archive = false;
};

// The regular files of `paths` (files, and folders with all that is below
// them; links to folders are not followed), sorted, each once. What cannot be
// read inside a folder is left out; SYS-001 for a path that was named.
StatusOr<std::vector<InputFile>> ListInputs(std::span<const std::string> paths);

}  // namespace belay::logs

#endif  // BELAY_TOOLKIT_LOGS_INPUT_INPUTS_H_
