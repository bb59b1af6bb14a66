// SPDX-License-Identifier: Apache-2.0
#include "cannsim/runtime/memory/arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace cannsim {
namespace {

constexpr int kReserve = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

// Addresses without memory behind them.
char* ReserveAddresses(size_t bytes) {
  void* at = mmap(nullptr, bytes, PROT_NONE, kReserve, -1, 0);
  return at == MAP_FAILED ? nullptr : static_cast<char*>(at);
}

bool MapFile(char* at, size_t bytes, int protection, int fd, size_t offset) {
  void* got = mmap(at, bytes, protection, MAP_SHARED | MAP_FIXED, fd,
                   static_cast<off_t>(offset));
  if (got == MAP_FAILED) return false;
  madvise(at, bytes, MADV_DONTDUMP);  // a core file of 64 GiB helps nobody
  return true;
}

bool MapNothing(char* at, size_t bytes) {
  return mmap(at, bytes, PROT_NONE, kReserve | MAP_FIXED, -1, 0) != MAP_FAILED;
}

}  // namespace

Arena::Arena(int fd, char* device, char* worker, size_t heap_bytes,
             size_t reserve_bytes)
    : fd_(fd),
      device_(reinterpret_cast<uintptr_t>(device)),
      worker_(worker),
      heap_bytes_(heap_bytes),
      reserve_bytes_(reserve_bytes) {}

std::unique_ptr<Arena> Arena::Create(size_t heap_bytes, size_t reserve_bytes,
                                     std::string* error) {
  const int fd = memfd_create("cannsim-hbm", MFD_CLOEXEC);
  // Sparse: only touched pages take memory. The second half is for Map.
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(2 * heap_bytes)) != 0) {
    *error = std::string("no memory file: ") + std::strerror(errno);
    if (fd >= 0) close(fd);
    return nullptr;
  }
  const size_t total = heap_bytes + reserve_bytes;
  char* device = ReserveAddresses(total);
  char* worker = device == nullptr ? nullptr : ReserveAddresses(total);
  if (worker == nullptr || !MapFile(device, heap_bytes, PROT_NONE, fd, 0) ||
      !MapFile(worker, heap_bytes, PROT_READ | PROT_WRITE, fd, 0)) {
    *error = std::string("no address space: ") + std::strerror(errno);
    if (device != nullptr) munmap(device, total);
    if (worker != nullptr) munmap(worker, total);
    close(fd);
    return nullptr;
  }
  return std::unique_ptr<Arena>(
      new Arena(fd, device, worker, heap_bytes, reserve_bytes));
}

Arena::~Arena() {
  munmap(reinterpret_cast<void*>(device_), total_bytes());
  munmap(worker_, total_bytes());
  close(fd_);
}

bool Arena::Map(uintptr_t address, size_t bytes, size_t file_offset) {
  char* device = reinterpret_cast<char*>(address);
  return MapFile(device, bytes, PROT_NONE, fd_, file_offset) &&
         MapFile(Worker(address), bytes, PROT_READ | PROT_WRITE, fd_,
                 file_offset);
}

bool Arena::Unmap(uintptr_t address, size_t bytes) {
  return MapNothing(reinterpret_cast<char*>(address), bytes) &&
         MapNothing(Worker(address), bytes);
}

void Arena::Discard(size_t file_offset, size_t bytes) {
  fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
            static_cast<off_t>(file_offset), static_cast<off_t>(bytes));
}

}  // namespace cannsim
