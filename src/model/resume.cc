// SPDX-License-Identifier: Apache-2.0
#include "model/resume.h"

#include <algorithm>

namespace belay::model {
namespace {

// The first position whose row a point at `border` holds.
int32_t FirstPosition(const spec::ResumeRows& rows, int32_t border) {
  return std::max(0, border - static_cast<int32_t>(rows.n_rows));
}

// Calls fn(view of consecutive ring rows, their place in the point) for
// positions [begin, end) of a slot.
template <typename Fn>
void ForRing(const TensorView& ring, const spec::ResumeRows& rows, int32_t slot,
             int32_t begin, int32_t end, const Fn& fn) {
  const auto n_ring = static_cast<int32_t>(ring.dim(1));
  const auto row_bytes = static_cast<int64_t>(rows.row_bytes);
  for (int32_t p = begin; p < end;) {
    const int32_t at = p % n_ring;
    const int32_t n = std::min(n_ring - at, end - p);
    const TensorView view(ring.row<std::byte>(slot) + at * row_bytes,
                          DType::kU8, {n, row_bytes});
    fn(view, rows.offset + static_cast<size_t>((p - begin) * row_bytes));
    p += n;
  }
}

// Calls fn(ring, its rows) for the rings of one layer that a point keeps.
template <typename Fn>
void ForRings(const LayerCaches& caches, const spec::LayerRegions& regions,
              const Fn& fn) {
  fn(caches.window.rows, regions.resume_window);
  if (regions.resume_state.n_rows == 0) return;
  fn(caches.state.raw, regions.resume_state);
  fn(caches.index_state.raw, regions.resume_index);
}

// Calls fn(view of the page, its place among all layers').
template <typename Fn>
void ForPage(const Caches& caches, int32_t page, const Fn& fn) {
  size_t offset = 0;
  for (const LayerCaches& layer : caches.layers) {
    for (const TensorView* rows :
         {&layer.compressed.rows, &layer.index_keys.rows}) {
      if (rows->empty()) continue;
      const TensorView view = rows->rows(page, 1);
      fn(view, offset);
      offset += view.bytes();
    }
  }
}

}  // namespace

ResumePoints::ResumePoints(const spec::Layout& layout, const Caches& caches,
                           ops::Backend& backend, size_t max_captures)
    : layout_(layout), caches_(caches), backend_(backend) {
  captures_.reserve(max_captures);
}

void ResumePoints::Capture(const ops::Span& span, int32_t border,
                           std::byte* point) {
  captures_.push_back({span, border, point});
  for (size_t i = 0; i < caches_.layers.size(); ++i) {
    ForRings(caches_.layers[i], layout_.layers[i],
             [&](const TensorView& ring, const spec::ResumeRows& rows) {
               ForRing(ring, rows, span.slot, FirstPosition(rows, border),
                       std::min(border, span.start_pos),
                       [&](const TensorView& view, size_t offset) {
                         backend_.CopyOut(point + offset, view);
                       });
             });
  }
}

void ResumePoints::Restore(int32_t slot, int32_t border,
                           const std::byte* point) const {
  for (size_t i = 0; i < caches_.layers.size(); ++i) {
    ForRings(caches_.layers[i], layout_.layers[i],
             [&](const TensorView& ring, const spec::ResumeRows& rows) {
               ForRing(ring, rows, slot, FirstPosition(rows, border), border,
                       [&](const TensorView& view, size_t offset) {
                         backend_.CopyIn(view, point + offset);
                       });
             });
  }
}

void ResumePoints::CopyPageOut(int32_t page, std::byte* to) const {
  ForPage(caches_, page, [&](const TensorView& view, size_t offset) {
    backend_.CopyOut(to + offset, view);
  });
}

void ResumePoints::CopyPageIn(int32_t page, const std::byte* from) const {
  ForPage(caches_, page, [&](const TensorView& view, size_t offset) {
    backend_.CopyIn(view, from + offset);
  });
}

void ResumePoints::DiscardPage(int32_t page) const {
  ForPage(caches_, page,
          [&](const TensorView& view, size_t) { backend_.Discard(view); });
}

// The rows of the span that lie before the border: one run of flat tokens.
void ResumePoints::CopyFresh(const spec::ResumeRows& rows,
                             ConstTensorView fresh) const {
  if (rows.n_rows == 0) return;
  for (const One& one : captures_) {
    const int32_t first = FirstPosition(rows, one.border);
    const int32_t begin = std::max(first, one.span.start_pos);
    if (begin >= one.border) continue;
    const size_t offset =
        rows.offset + static_cast<size_t>(begin - first) * rows.row_bytes;
    backend_.CopyOut(
        one.point + offset,
        fresh.rows(one.span.first_token + begin - one.span.start_pos,
                   one.border - begin));
  }
}

void ResumePoints::Window(int layer, ConstTensorView fresh) {
  CopyFresh(layout_.layers[static_cast<size_t>(layer)].resume_window, fresh);
}

void ResumePoints::Compressed(int layer, bool index, ConstTensorView raw) {
  const spec::LayerRegions& regions =
      layout_.layers[static_cast<size_t>(layer)];
  CopyFresh(index ? regions.resume_index : regions.resume_state, raw);
}

}  // namespace belay::model
