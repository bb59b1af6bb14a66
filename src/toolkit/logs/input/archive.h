// SPDX-License-Identifier: Apache-2.0
// Files inside archives and compressed files, as a stream.
#ifndef BELAY_TOOLKIT_LOGS_INPUT_ARCHIVE_H_
#define BELAY_TOOLKIT_LOGS_INPUT_ARCHIVE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/error.h"

namespace belay::logs {

// What an archive may cost. A hostile one is stopped, and what was read of it
// until then counts.
struct ArchiveLimits {
  uint64_t max_bytes = uint64_t{64} << 30;    // unpacked, over all its files
  uint64_t free_bytes = uint64_t{256} << 20;  // unpacked, before ...
  uint64_t max_ratio = 200;                   // ... this many times its size
  uint64_t max_files = 200000;
  int max_depth = 3;  // archives in archives
};

// Called with each piece of each file, in order; an empty piece ends a file.
using PieceFn =
    std::function<void(const std::string& name, std::string_view piece)>;

// Whether the first bytes are those of a tar, zip, 7z, gzip, zstd, xz, bzip2 or
// lz4 file.
bool LooksLikeArchive(std::string_view first_bytes);

// Unpacks `path`: tar, zip, 7z, cpio and plain files, compressed or not,
// archives inside it too. Names are "path/inner". Nothing is written to disk.
// Errors, with what was read before them delivered: LOGS-001 (damaged or not an
// archive), LOGS-002 (a limit), SYS-001.
Status ReadArchive(const std::string& path, const ArchiveLimits& limits,
                   const PieceFn& piece);

}  // namespace belay::logs

#endif  // BELAY_TOOLKIT_LOGS_INPUT_ARCHIVE_H_
