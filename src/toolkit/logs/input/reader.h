// SPDX-License-Identifier: Apache-2.0
// Inputs to facts, on several cores.
#ifndef BELAY_TOOLKIT_LOGS_INPUT_READER_H_
#define BELAY_TOOLKIT_LOGS_INPUT_READER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "toolkit/logs/input/archive.h"
#include "toolkit/logs/input/inputs.h"
#include "toolkit/logs/judge/event.h"
#include "toolkit/logs/judge/scanner.h"

namespace belay::logs {

struct ReadProgress {
  uint64_t n_bytes = 0;    // read so far; of archives: unpacked
  uint64_t n_planned = 0;  // of the files; an archive's own size
  size_t n_files = 0;      // done
};

struct ReadOptions {
  int n_threads = 1;
  ArchiveLimits limits;
  std::function<void(const ReadProgress&)> progress;  // may be empty
  const std::atomic<bool>* stop = nullptr;            // may be null
  uint64_t chunk_bytes = uint64_t{32} << 20;  // a large file in such pieces
};

struct ReadResult {
  std::vector<FileFacts> files;  // with at least one line, sorted by name
  std::vector<Status> warnings;  // files and archives that could not be read
                                 // to their end
};

// Reads all inputs. Memory: a few hundred KiB a thread and what event.h allows
// for each file. Stops early, with what it has, when *stop becomes true.
StatusOr<ReadResult> ReadInputs(std::span<const InputFile> inputs,
                                const Knowledge& knowledge,
                                const ReadOptions& options);

// One file's facts from those of its consecutive pieces.
FileFacts JoinFacts(std::vector<FileFacts> pieces);

}  // namespace belay::logs

#endif  // BELAY_TOOLKIT_LOGS_INPUT_READER_H_
