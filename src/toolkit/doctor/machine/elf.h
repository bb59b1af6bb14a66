// SPDX-License-Identifier: Apache-2.0
// What a shared library needs and offers, read from its file: no code of it
// runs. 64 bit, little endian, which is what Ascend hosts are.
#ifndef BELAY_TOOLKIT_DOCTOR_MACHINE_ELF_H_
#define BELAY_TOOLKIT_DOCTOR_MACHINE_ELF_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace belay::doctor {

struct SharedObject {
  bool is_library = false;            // an ELF file with a dynamic section
  std::string arch;                   // "aarch64", "x86_64", "machine 8"
  std::vector<std::string> needed;    // DT_NEEDED, in order
  std::vector<std::string> run_path;  // DT_RPATH, DT_RUNPATH, split at ":"
  std::vector<std::string> lacks;     // of what was wanted, in its order
};

// Fills `to` with the bytes at `offset`; false when there are not that many.
using ReadBytes = std::function<bool(uint64_t offset, void* to, size_t bytes)>;

// Takes any bytes. What is damaged is no library, or lacks what could not be
// found in it. Symbols are looked up in the hash table, as the loader does; one
// that is only referred to does not count.
SharedObject ReadElf(const ReadBytes& read,
                     const std::vector<std::string>& wanted);

}  // namespace belay::doctor

#endif  // BELAY_TOOLKIT_DOCTOR_MACHINE_ELF_H_
