// SPDX-License-Identifier: Apache-2.0
// Memory for packed weights: large regions, so that the system can back them
// with huge pages. With 4 KiB pages a step over all weights misses the TLB at
// each page, and the hardware stops to read ahead there.
#ifndef BELAY_BACKENDS_CPU_PACKED_MEMORY_H_
#define BELAY_BACKENDS_CPU_PACKED_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/error.h"
#include "base/thread_pool.h"
#include "base/topology.h"
#include "kernels/weight.h"

namespace belay::cpu {

class PackedMemory {
 public:
  // `pool` packs in parallel; `topology`, which may be null, spreads the
  // regions over NUMA nodes. Both outlive this object.
  PackedMemory(ThreadPool* pool, const Topology* topology)
      : pool_(pool), topology_(topology) {}

  // A piece of a region, aligned to kBufferAlignment. The region lives as long
  // as any of its owners.
  struct Piece {
    std::byte* data = nullptr;
    std::shared_ptr<const void> owner;
  };
  // SYS-003 when the system has no memory.
  StatusOr<Piece> Take(size_t bytes);

  // PackWeightRows (kernels/pack.h) or a function like it.
  using PackRows = void (*)(const kernels::WeightView& plain, int64_t row_begin,
                            int64_t row_end, std::byte* packed);

  // Packs a whole weight to `packed`, which has room for it.
  void Fill(const kernels::WeightView& plain, PackRows pack_rows,
            std::byte* packed);

 private:
  ThreadPool* pool_;
  const Topology* topology_;
  std::shared_ptr<std::byte> region_;
  size_t region_bytes_ = 0;
  size_t used_ = 0;
};

}  // namespace belay::cpu

#endif  // BELAY_BACKENDS_CPU_PACKED_MEMORY_H_
