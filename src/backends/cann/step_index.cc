// SPDX-License-Identifier: Apache-2.0
#include "backends/cann/step_index.h"

#include <algorithm>

#include "base/error_ids_cann.h"

namespace belay::cann {
namespace {

enum List : int64_t {
  kPositions,
  kBlocks,
  kRing,
  kRingOfAll,
  kPages,  // entries of the page table
  kRest,   // places in their pages
  kRows,   // pages * rows_per_page + rest
  kRowStarts,
};

bool SameSpans(std::span<const ops::Span> a, std::span<const ops::Span> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const ops::Span& x, const ops::Span& y) {
                      return x.slot == y.slot &&
                             x.first_token == y.first_token &&
                             x.n_tokens == y.n_tokens &&
                             x.start_pos == y.start_pos;
                    });
}

}  // namespace

void StepIndex::Begin(const ops::BatchView& batch) {
  const Array table = ArrayOf(batch.page_table);
  if (current_ && table.data == page_table_.data &&
      SameSpans(batch.spans, spans_)) {
    return;
  }
  current_ = true;
  spans_.assign(batch.spans.begin(), batch.spans.end());
  page_table_ = table;
  for (auto& [key, slot] : slots_) slot.filled = false;
  // Old lengths fill the memory at last; starting over moves the lists.
  if (used_ > memory_.size() / 2) {
    slots_.clear();
    used_ = 0;
  }
}

StepIndex::Slot* StepIndex::Place(const Key& key, int64_t n) {
  Slot& slot = slots_[key];
  if (!slot.ints.empty()) return &slot;
  const size_t bytes =
      (4 * static_cast<size_t>(n) + kAlignment - 1) / kAlignment * kAlignment;
  if (used_ + bytes > memory_.size()) {
    c_.launcher().Fail(MakeError(
        kCannWorkspace, {.where = c_.launcher().op(),
                         .what = "index lists",
                         .expected = "<= " + std::to_string(memory_.size()),
                         .got = std::to_string(used_ + bytes)}));
    return nullptr;
  }
  slot.ints = Array(memory_.data() + used_, kI32, {n});
  used_ += bytes;
  return &slot;
}

Array StepIndex::Get(Key key, int64_t n,
                     const std::function<int32_t(int64_t)>& value) {
  key.back() = n;
  Slot* slot = Place(key, n);
  if (slot == nullptr) return Array(memory_.data(), kI32, {n});
  if (slot->filled) return slot->ints;
  host_.resize(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) host_[static_cast<size_t>(i)] = value(i);
  const Status copied =
      copies_.In(slot->ints.data, host_.data(), 4 * static_cast<size_t>(n));
  if (!copied.ok()) c_.launcher().Fail(copied);
  slot->filled = true;
  return slot->ints;
}

Array StepIndex::Positions(size_t s, int64_t first, int64_t n) {
  const int64_t start = span(s).start_pos + first;
  return Get({kPositions, static_cast<int64_t>(s), first}, n,
             [start](int64_t i) { return static_cast<int32_t>(start + i); });
}

Array StepIndex::Blocks(size_t s, int64_t ratio, int64_t first, int64_t n) {
  return Get({kBlocks, static_cast<int64_t>(s), ratio}, n, [=](int64_t i) {
    return static_cast<int32_t>((first + i) * ratio);
  });
}

Array StepIndex::Ring(size_t s, int64_t n_ring, int64_t first, int64_t n) {
  const int64_t base = span(s).slot * n_ring;
  // `first` changes with each step, the list's place does not.
  const int64_t behind = span(s).start_pos - first;
  return Get({kRing, static_cast<int64_t>(s), n_ring, behind > 0 ? 1 : 0}, n,
             [=](int64_t i) {
               return static_cast<int32_t>(base + (first + i) % n_ring);
             });
}

Array StepIndex::RingOfAll(int64_t n_ring) {
  int64_t n = 0;
  for (const ops::Span& one : spans_) n += one.n_tokens;
  size_t s = 0;
  return Get({kRingOfAll, n_ring}, n, [&, s](int64_t i) mutable {
    while (i >= spans_[s].first_token + spans_[s].n_tokens) ++s;
    const int64_t position = spans_[s].start_pos + i - spans_[s].first_token;
    return static_cast<int32_t>(spans_[s].slot * n_ring + position % n_ring);
  });
}

void StepIndex::FromPages(const ops::PagedCache& cache, const Array& pages,
                          const Array& rest) {
  const int64_t rows_per_page = cache.rows.dim(1);
  if (rows_per_page == 1) return;
  c_.Scale(pages, static_cast<double>(rows_per_page));
  c_.Plus(pages, rest);
}

Array StepIndex::NewRows(size_t s, const ops::PagedCache& cache, int64_t first,
                         int64_t n) {
  return PagedRows({0, static_cast<int64_t>(s), cache.rows.dim(1), 1}, cache, n,
                   [=](int64_t i) { return first + i; });
}

Array StepIndex::OldRows(size_t s, const ops::PagedCache& cache, int64_t n,
                         int64_t last) {
  return PagedRows({0, static_cast<int64_t>(s), cache.rows.dim(1), 0}, cache, n,
                   [=](int64_t i) { return std::min(i, last - 1); });
}

Array StepIndex::PagedRows(const Key& key, const ops::PagedCache& cache,
                           int64_t n,
                           const std::function<int64_t(int64_t)>& row) {
  const int64_t rows_per_page = cache.rows.dim(1);
  Key rows_key = key;
  rows_key.front() = kRows;
  rows_key.back() = n;
  Slot* slot = Place(rows_key, n);
  if (slot == nullptr) return Array(memory_.data(), kI32, {n});
  if (slot->filled) return slot->ints;
  const Array rows = slot->ints;
  slot->filled = true;
  const int64_t base =
      span(static_cast<size_t>(key[1])).slot * page_table_.dim(1);
  Key pages_key = key;
  pages_key.front() = kPages;
  const Array pages = Get(pages_key, n, [&](int64_t i) {
    return static_cast<int32_t>(base + row(i) / rows_per_page);
  });
  Key rest_key = key;
  rest_key.front() = kRest;
  const Array rest = Get(rest_key, n, [&](int64_t i) {
    return static_cast<int32_t>(row(i) % rows_per_page);
  });
  c_.GatherFlat(rows, page_table_, pages);
  FromPages(cache, rows, rest);
  return rows;
}

Array StepIndex::RowStarts(int64_t n, int64_t n_columns) {
  return Get({kRowStarts, n_columns}, n,
             [=](int64_t i) { return static_cast<int32_t>(i * n_columns); });
}

// id / rows_per_page is a power of two below 2^24: exact in FLOAT.
void StepIndex::PagedRowsOf(size_t s, const ops::PagedCache& cache,
                            const Array& ids, const Array& rows) {
  const int64_t rows_per_page = cache.rows.dim(1);
  const int64_t n = ids.n_elements();
  const Compute::Scope scope(c_);
  const Array flat = ids.Reshaped({n});
  const Array wide = c_.Temp(kF32, {n});
  c_.Cast(wide, flat);
  c_.Scale(wide, 1.0 / static_cast<double>(rows_per_page));
  const Array entry = c_.Temp(kI32, {n});
  c_.Cast(entry, wide);  // towards zero
  const Array rest = c_.Temp(kI32, {n});
  c_.Cast(rest, entry);
  c_.Scale(rest, -static_cast<double>(rows_per_page));
  c_.Plus(rest, flat);
  c_.Offset(entry, static_cast<double>(span(s).slot * page_table_.dim(1)));
  const Array out = rows.Reshaped({n});
  c_.GatherFlat(out, page_table_, entry);
  FromPages(cache, out, rest);
}

}  // namespace belay::cann
