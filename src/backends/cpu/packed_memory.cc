// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/packed_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <string>

#include "base/error_ids.h"
#include "kernels/pack.h"
#include "tensor/buffer.h"

namespace belay::cpu {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
// A region holds many weights, since most are no multiple of a huge page.
// Memory is the system's until it is written, so a last region that stays
// half empty costs nothing.
constexpr size_t kRegionBytes = size_t{256} << 20;
// Rows that one thread packs at a time.
constexpr int64_t kRowsPerTask = 16 * kernels::kPackRows;

StatusOr<std::shared_ptr<std::byte>> MapRegion(size_t bytes) {
  // One page more, to start at the border of a huge one.
  const size_t mapped = bytes + kHugePage;
  void* start = mmap(nullptr, mapped, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) {
    return MakeError(kSysOutOfMemory, {.where = "packed weights",
                                       .what = "",
                                       .expected = std::to_string(mapped),
                                       .got = ""});
  }
  const auto address = reinterpret_cast<uintptr_t>(start);
  auto* data =
      static_cast<std::byte*>(start) + (AlignUp(address, kHugePage) - address);
  // A wish: without huge pages everything works, slower.
  (void)madvise(data, bytes, MADV_HUGEPAGE);
  return std::shared_ptr<std::byte>(
      data, [start, mapped](std::byte*) { munmap(start, mapped); });
}

}  // namespace

StatusOr<PackedMemory::Piece> PackedMemory::Take(size_t bytes) {
  bytes = AlignUp(bytes, kBufferAlignment);
  if (region_ == nullptr || bytes > region_bytes_ - used_) {
    const size_t wanted = AlignUp(std::max(bytes, kRegionBytes), kHugePage);
    BELAY_ASSIGN_OR_RETURN(region_, MapRegion(wanted));
    if (topology_ != nullptr) topology_->Interleave(region_.get(), wanted);
    region_bytes_ = wanted;
    used_ = 0;
  }
  const Piece piece = {region_.get() + used_, region_};
  used_ += bytes;
  return piece;
}

void PackedMemory::Fill(const kernels::WeightView& plain, PackRows pack_rows,
                        std::byte* packed) {
  const int64_t n_tasks = (plain.n_rows + kRowsPerTask - 1) / kRowsPerTask;
  pool_->ParallelFor(static_cast<size_t>(n_tasks), [&](size_t task, int) {
    const int64_t begin = static_cast<int64_t>(task) * kRowsPerTask;
    pack_rows(plain, begin, std::min(begin + kRowsPerTask, plain.n_rows),
              packed);
  });
}

}  // namespace belay::cpu
