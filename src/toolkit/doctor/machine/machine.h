// SPDX-License-Identifier: Apache-2.0
// The one seam to the machine that is judged: files, folders, commands and
// variables. A live machine and a recorded one answer the same questions.
#ifndef BELAY_TOOLKIT_DOCTOR_MACHINE_MACHINE_H_
#define BELAY_TOOLKIT_DOCTOR_MACHINE_MACHINE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "toolkit/doctor/machine/elf.h"

namespace belay::doctor {

enum class PathKind : uint8_t { kNone, kFile, kFolder, kDevice, kOther };

struct PathState {
  PathKind kind = PathKind::kNone;  // links followed
  bool is_link = false;             // a link; with kNone one that dangles
  bool can_read = false;            // for this user
  bool can_write = false;
  uint64_t bytes = 0;  // of a file
  bool exists() const { return kind != PathKind::kNone; }
};

struct CommandOutput {
  bool is_found = false;  // the program is there and ran
  bool timed_out = false;
  int status = -1;  // exit status
  std::string out;  // both streams, at most 1 MiB
};

class Machine {
 public:
  virtual ~Machine() = default;

  // The file's text, at most 1 MiB of it; nothing when it cannot be read.
  virtual std::optional<std::string> Read(const std::string& path) = 0;
  virtual PathState Stat(const std::string& path) = 0;
  // Names in a folder, sorted; empty when there is none.
  virtual std::vector<std::string> List(const std::string& folder) = 0;
  // Program and arguments, separated by blanks; no shell.
  virtual CommandOutput Run(const std::string& command) = 0;
  // The variables of the process.
  virtual std::map<std::string, std::string> Variables() = 0;
  // "aarch64", "x86_64", ...
  virtual std::string Arch() = 0;
  // Free bytes of the file system that holds `path`; nothing if unknown.
  virtual std::optional<uint64_t> FreeBytes(const std::string& path) = 0;
  // All bytes of it.
  virtual std::optional<uint64_t> TotalBytes(const std::string& path) = 0;
  // The shared library at `path`, and which of the symbols `wanted` it does not
  // define; nothing when it cannot be read.
  virtual std::optional<SharedObject> ReadLibrary(
      const std::string& path, const std::vector<std::string>& wanted) = 0;
};

}  // namespace belay::doctor

#endif  // BELAY_TOOLKIT_DOCTOR_MACHINE_MACHINE_H_
