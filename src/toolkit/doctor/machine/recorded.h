// SPDX-License-Identifier: Apache-2.0
// Machines on paper: what one was asked and what it said, as JSON.
#ifndef BELAY_TOOLKIT_DOCTOR_MACHINE_RECORDED_H_
#define BELAY_TOOLKIT_DOCTOR_MACHINE_RECORDED_H_

#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "toolkit/doctor/machine/machine.h"

namespace belay::doctor {

// {"format": 1, "arch": "aarch64",
//  "variables": {"HOME": "/root"},
//  "paths": {"/dev/davinci0": {"kind": "device", "access": "rw"},
//            "/etc/hccn.conf": {"text": "..."},
//            "/usr/local/x": {"kind": "folder"}},
//  "lists": {"/dev": ["davinci0", ...]},
//  "commands": {"npu-smi info": {"status": 0, "out": "..."}},
//  "disks": {"/dev/shm": {"free": 1, "total": 2}},
//  "libraries": {"/x/libhccl.so": {"arch": "aarch64", "needed": ["libc.so.6"],
//                                  "run_path": [], "lacks": ["HcclSend"]}}}
// A file has its "bytes" if they are known. A library without an "arch" is no
// library. A path that is not there does not exist; folders follow from the
// paths below them; access is "r" if it is not said.
StatusOr<std::unique_ptr<Machine>> ParseMachine(std::string_view json,
                                                const std::string& where);

// From a folder or an archive with machine.json in it, or that file itself.
// DOCT-001 or SYS-001.
StatusOr<std::unique_ptr<Machine>> OpenMachine(const std::string& path);

// Asks another machine and writes down question and answer. Secrets stay out:
// only variables whose names belong to Ascend, HCCL, PyTorch, CUDA and the
// loader are kept, and values that look like keys are replaced.
class Recorder : public Machine {
 public:
  explicit Recorder(Machine& machine);
  ~Recorder() override;

  std::optional<std::string> Read(const std::string& path) override;
  PathState Stat(const std::string& path) override;
  std::vector<std::string> List(const std::string& folder) override;
  CommandOutput Run(const std::string& command) override;
  std::map<std::string, std::string> Variables() override;
  std::string Arch() override;
  std::optional<uint64_t> FreeBytes(const std::string& path) override;
  std::optional<uint64_t> TotalBytes(const std::string& path) override;
  std::optional<SharedObject> ReadLibrary(
      const std::string& path, const std::vector<std::string>& wanted) override;

  // The JSON of ParseMachine.
  std::string ToJson() const;
  // As a tar archive with machine.json: zstd or gzip by the end of the name
  // (.zst, .gz), else plain. SYS-002.
  Status Write(const std::string& path) const;

 private:
  struct Notes;
  Machine& machine_;
  std::unique_ptr<Notes> notes_;
};

}  // namespace belay::doctor

#endif  // BELAY_TOOLKIT_DOCTOR_MACHINE_RECORDED_H_
