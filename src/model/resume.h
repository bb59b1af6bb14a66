// SPDX-License-Identifier: Apache-2.0
// Resume points: what a sequence needs, beside its cache pages, to go on at a
// page border. A point is a block of host memory, laid out by spec/layout.h.
#ifndef BELAY_MODEL_RESUME_H_
#define BELAY_MODEL_RESUME_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "model/hooks.h"
#include "model/state.h"
#include "ops/backend.h"
#include "ops/batch.h"
#include "spec/layout.h"
#include "tensor/view.h"

namespace belay::model {

// Keeps points in passing: a chunk of a prompt may cross several borders, and
// only the last rows of it stay in the rings. Rows before the span come from
// the rings before the step, the span's own rows from the step itself.
//
// The MTP block's row at position p depends on the token at p + 1. The last row
// of a point is therefore that of the sequence which made it; another one that
// resumes there may guess worse for a while, and its answer is the same.
class ResumePoints final : public Hooks {
 public:
  // Borrows all three. Reserves room for `max_captures` points a step.
  ResumePoints(const spec::Layout& layout, const Caches& caches,
               ops::Backend& backend, size_t max_captures);

  // Forgets what was asked for; before each step.
  void Clear() { captures_.clear(); }
  // In the coming step fill `point` [layout.resume_point_bytes] for `border`, a
  // multiple of kPageTokens with span.start_pos < border <= start_pos +
  // n_tokens. Complete after the step's Finish(). With draft tokens the border
  // may turn out to lie behind what was accepted: such a point is worthless.
  void Capture(const ops::Span& span, int32_t border, std::byte* point);

  // Puts the rows of `point` into the rings of `slot`, which then may go on at
  // `border` with the pages of the same prefix.
  void Restore(int32_t slot, int32_t border, const std::byte* point) const;

  // One cache page in all layers [layout.page_bytes], to and from host memory.
  void CopyPageOut(int32_t page, std::byte* to) const;
  void CopyPageIn(int32_t page, const std::byte* from) const;
  // Gives the memory of a page back to the system until it is used again.
  void DiscardPage(int32_t page) const;

  void Window(int layer, ConstTensorView fresh) override;
  void Compressed(int layer, bool index, ConstTensorView raw) override;

 private:
  struct One {
    ops::Span span;
    int32_t border = 0;
    std::byte* point = nullptr;
  };

  void CopyFresh(const spec::ResumeRows& rows, ConstTensorView fresh) const;

  const spec::Layout& layout_;
  const Caches& caches_;
  ops::Backend& backend_;
  std::vector<One> captures_;
};

}  // namespace belay::model

#endif  // BELAY_MODEL_RESUME_H_
