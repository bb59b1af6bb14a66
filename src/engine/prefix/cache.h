// SPDX-License-Identifier: Apache-2.0
// The cache pages: free ones, those of running sequences, and those that keep
// prefixes for later; and the resume points beside the latter.
#ifndef BELAY_ENGINE_PREFIX_CACHE_H_
#define BELAY_ENGINE_PREFIX_CACHE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/page_pool.h"
#include "engine/prefix/spill.h"
#include "engine/prefix/spill_reader.h"
#include "engine/prefix/tree.h"
#include "engine/sequence.h"
#include "model/resume.h"
#include "model/state.h"
#include "ops/backend.h"
#include "ops/batch.h"
#include "spec/layout.h"
#include "tensor/buffer.h"

namespace belay::engine {

// A full page of a sequence goes to the tree as soon as its rows are complete,
// and stays there read-only when the sequence ends: who resumes behind it
// writes to pages of its own. Pages nobody uses are taken back when others need
// them, longest unused first. Without resume points in the layout nothing is
// kept and all of this is a pool of free pages.
class PrefixCache {
 public:
  // Borrows layout, caches and back end. `spill` may be null. Errors: SYS-003.
  static StatusOr<std::unique_ptr<PrefixCache>> Create(
      const spec::Layout& layout, const model::Caches& caches,
      ops::Backend& backend, std::unique_ptr<PrefixSpill> spill);
  ~PrefixCache();  // saves what is not on disk yet

  bool enabled() const { return layout_.n_resume_points > 0; }
  // False: keeps nothing new, and gives up what nobody uses; memory is short.
  void SetKeeping(bool keeping);

  // --- Pages ---
  // How many pages Take() can give.
  int64_t n_available() const { return pool_.n_free() + tree_.n_unused(); }
  int64_t n_free() const { return pool_.n_free(); }
  int64_t n_cached() const { return tree_.n_unused(); }
  int64_t n_resume_points() const {
    return layout_.n_resume_points - static_cast<int64_t>(free_points_.size());
  }
  int64_t n_spill_writes() { return spill_ ? spill_->n_writes() : 0; }
  int64_t n_spill_reads() const { return n_spill_reads_; }
  int64_t n_spill_damaged() const { return spill_ ? spill_->n_damaged() : 0; }
  // Gives `n` <= n_available() more pages to a sequence.
  void Take(int64_t n, Sequence& s);

  // --- A sequence's way ---
  // Finds the longest prefix of s.tokens that can be resumed, which leaves at
  // least one token to compute, holds it and makes it the first pages of `s`,
  // which has none yet.
  // `from_disk`: pages of the spill folder that memory does not hold are
  // wanted, too. False when they are being read, or others' are: `s` is as
  // before then, and Open is to be called again.
  bool Open(Sequence& s, bool from_disk);
  // Reads nothing more for `s`, which waits no longer.
  void Forget(const Sequence& s);
  // Waits a moment for what is being read, if anything is; for a step without
  // work.
  void WaitForDisk();
  // Admitted: puts the rings of s.slot where Open() found the prefix to end.
  void Restore(const Sequence& s);
  // Gives all pages and holds back.
  void Close(Sequence& s);

  // --- A step ---
  // What a pass must be given for resume points to be kept.
  model::Hooks& hooks() { return resume_; }
  void BeginStep();
  // The borders that `span` of `s` will cross get their resume points.
  void Capture(const Sequence& s, const ops::Span& span);
  // After the step, its device work finished: the full pages of `s` join the
  // tree.
  void Extend(Sequence& s);
  void EndStep();
  // Uses a step without work to save pages.
  void Idle() {
    if (spill_ != nullptr) SaveOne();
  }

 private:
  struct Point {
    int32_t node = -1;  // of the tree; -1 = free or pending
    uint64_t used = 0;  // n_lookups_ then
  };
  struct Pending {
    RequestId request = 0;
    int32_t border = 0;
    int32_t point = -1;  // -1 = attached
  };

  PrefixCache(const spec::Layout& layout, const model::Caches& caches,
              ops::Backend& backend, std::unique_ptr<PrefixSpill> spill,
              Buffer memory);

  std::span<const int32_t> PageIds(const Sequence& s, int32_t page) const;
  std::byte* PointData(int32_t point) const;
  int32_t TakePoint();
  int32_t LeastUsefulPoint() const;
  void FreePoint(int32_t point);
  void FreePending();
  void Attach(const Sequence& s, int32_t border, int32_t node);
  int32_t EvictOldest();
  void DropUnused();
  int32_t FromDisk(int32_t parent, Sequence& s, int32_t page, bool* wait);
  int32_t Install(int32_t parent, const Sequence& s,
                  const SpillReader::Page& read);
  bool Save(int32_t node);
  void SaveOne();

  const spec::Layout& layout_;
  ops::Backend& backend_;
  const std::unique_ptr<PrefixSpill> spill_;
  std::unique_ptr<SpillReader> reader_;  // with a spill folder only
  model::ResumePoints resume_;
  Buffer memory_;  // [n_resume_points, resume_point_bytes]
  PagePool pool_;
  PrefixTree tree_;
  std::vector<Point> points_;
  std::vector<int32_t> free_points_;
  std::vector<Pending> pending_;
  uint64_t n_lookups_ = 0;  // admissions so far
  bool keeping_ = true;
  std::vector<int32_t> saved_ids_;  // with a spill folder only
  int32_t next_to_save_ = 0;
  int64_t n_spill_reads_ = 0;
};

}  // namespace belay::engine

#endif  // BELAY_ENGINE_PREFIX_CACHE_H_
