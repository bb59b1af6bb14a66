// SPDX-License-Identifier: Apache-2.0
// The index lists of a step: which rows of which cache each span reads and
// writes. Made on the host from the spans once a step for all layers alike, and
// uploaded; rows in pages are then looked up on the device. Addresses stay from
// step to step as long as lengths do.
#ifndef BELAY_BACKENDS_CANN_STEP_INDEX_H_
#define BELAY_BACKENDS_CANN_STEP_INDEX_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "backends/cann/device/compute.h"
#include "backends/cann/device/memory.h"
#include "ops/batch.h"
#include "ops/cache.h"

namespace belay::cann {

class StepIndex {
 public:
  StepIndex(Compute& compute, Copies& copies) : c_(compute), copies_(copies) {}

  void SetMemory(std::span<std::byte> memory) { memory_ = memory; }
  // What was uploaded is not the step's any more.
  void Invalidate() { current_ = false; }
  // Before the lists of a batch are asked for.
  void Begin(const ops::BatchView& batch);

  // All lists are I32 [n]. `s` is the index of a span.

  // Positions of the span's tokens [first, first + n).
  Array Positions(size_t s, int64_t first, int64_t n);
  // First positions of the blocks [first, first + n) of `ratio` tokens.
  Array Blocks(size_t s, int64_t ratio, int64_t first, int64_t n);
  // Places in a ring [n_slots * n_ring] of the positions [first, first + n).
  Array Ring(size_t s, int64_t n_ring, int64_t first, int64_t n);
  // The same for the tokens of all spans, in flat order.
  Array RingOfAll(int64_t n_ring);
  // Rows [n_pages * rows_per_page] of the compressed rows [first, first + n).
  Array NewRows(size_t s, const ops::PagedCache& cache, int64_t first,
                int64_t n);
  // Those of the rows [0, n); from `last` on row `last - 1` again.
  Array OldRows(size_t s, const ops::PagedCache& cache, int64_t n,
                int64_t last);
  // For each of `n` rows of a matrix with `n_columns`, where it begins.
  Array RowStarts(int64_t n, int64_t n_columns);

  // Rows of ids [n, k] (none negative) of one span, looked up on the device.
  void PagedRowsOf(size_t s, const ops::PagedCache& cache, const Array& ids,
                   const Array& rows);

 private:
  using Key = std::array<int64_t, 6>;
  struct Slot {
    Array ints;
    bool filled = false;
  };

  // The list of `key` and length, filled on the host when it is not there yet.
  Array Get(Key key, int64_t n, const std::function<int32_t(int64_t)>& value);
  // Its place; null when the memory is full.
  Slot* Place(const Key& key, int64_t n);
  const ops::Span& span(size_t s) const { return spans_[s]; }
  Array PagedRows(const Key& key, const ops::PagedCache& cache, int64_t n,
                  const std::function<int64_t(int64_t)>& row);
  // page * rows_per_page + rest, in place of page.
  void FromPages(const ops::PagedCache& cache, const Array& pages,
                 const Array& rest);

  Compute& c_;
  Copies& copies_;
  std::span<std::byte> memory_;
  size_t used_ = 0;
  bool current_ = false;
  std::vector<ops::Span> spans_;
  Array page_table_;  // [n_slots, max_pages] i32
  std::map<Key, Slot> slots_;
  std::vector<int32_t> host_;
};

}  // namespace belay::cann

#endif  // BELAY_BACKENDS_CANN_STEP_INDEX_H_
