// SPDX-License-Identifier: Apache-2.0
#include "engine/prefix/cache.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/error.h"

namespace belay::engine {
namespace {

// The most that a step waits for the disk, once a request.
constexpr auto kGlance = std::chrono::microseconds(200);

// Borders that one step can cross.
size_t MaxCaptures(const spec::Layout& layout) {
  return static_cast<size_t>(layout.options.max_tokens / kPageTokens +
                             layout.options.n_slots);
}

}  // namespace

StatusOr<std::unique_ptr<PrefixCache>> PrefixCache::Create(
    const spec::Layout& layout, const model::Caches& caches,
    ops::Backend& backend, std::unique_ptr<PrefixSpill> spill) {
  BELAY_ASSIGN_OR_RETURN(
      Buffer memory,
      Buffer::Create(static_cast<size_t>(layout.n_resume_points) *
                     layout.resume_point_bytes));
  return std::unique_ptr<PrefixCache>(new PrefixCache(
      layout, caches, backend, std::move(spill), std::move(memory)));
}

PrefixCache::PrefixCache(const spec::Layout& layout,
                         const model::Caches& caches, ops::Backend& backend,
                         std::unique_ptr<PrefixSpill> spill, Buffer memory)
    : layout_(layout),
      backend_(backend),
      spill_(std::move(spill)),
      resume_(layout, caches, backend, MaxCaptures(layout)),
      memory_(std::move(memory)),
      pool_(layout.options.n_pages),
      tree_(layout.n_resume_points > 0 ? layout.options.n_pages : 0),
      points_(static_cast<size_t>(layout.n_resume_points)) {
  free_points_.reserve(points_.size());
  for (auto i = static_cast<int32_t>(points_.size()); i > 0; --i) {
    free_points_.push_back(i - 1);
  }
  pending_.reserve(MaxCaptures(layout));
  if (spill_ == nullptr) return;
  reader_ = std::make_unique<SpillReader>(*spill_, layout.options.max_context);
  saved_ids_.reserve(static_cast<size_t>(layout.options.max_context));
}

PrefixCache::~PrefixCache() {
  if (spill_ == nullptr) return;
  for (int32_t node = 0; node < tree_.capacity(); ++node) {
    if (!tree_.node(node).exists || !tree_.node(node).unsaved) continue;
    spill_->WaitUntilIdle();
    Save(node);
  }
}

void PrefixCache::SetKeeping(bool keeping) {
  keeping_ = keeping;
  if (keeping) return;
  DropUnused();
  for (const int32_t point : free_points_) {
    DiscardMemory(PointData(point), layout_.resume_point_bytes);
  }
}

void PrefixCache::DropUnused() {
  while (tree_.n_unused() > 0) resume_.DiscardPage(EvictOldest());
}

std::span<const int32_t> PrefixCache::PageIds(const Sequence& s,
                                              int32_t page) const {
  return std::span(s.tokens).subspan(static_cast<size_t>(page) * kPageTokens,
                                     kPageTokens);
}

std::byte* PrefixCache::PointData(int32_t point) const {
  return static_cast<std::byte*>(memory_.data()) +
         static_cast<size_t>(point) * layout_.resume_point_bytes;
}

// --- Pages ---

// Returns the page that became free.
int32_t PrefixCache::EvictOldest() {
  const int32_t node = tree_.Oldest();
  BELAY_CHECK(node >= 0);
  if (tree_.node(node).unsaved) Save(node);
  const int32_t page = tree_.node(node).page;
  const int32_t point = tree_.node(node).resume;
  if (point >= 0) FreePoint(point);
  tree_.Remove(node);
  pool_.Return(page);
  return page;
}

void PrefixCache::Take(int64_t n, Sequence& s) {
  while (pool_.n_free() < n) EvictOldest();
  for (int64_t i = 0; i < n; ++i) {
    s.pages.push_back(pool_.Take());
    s.in_tree.push_back(0);
  }
}

// --- Resume points ---

void PrefixCache::FreePoint(int32_t point) {
  points_[static_cast<size_t>(point)].node = -1;
  free_points_.push_back(point);
}

// The point whose loss costs least: the pages to compute again from the point
// above it, worth less the more requests have come since it was used. Equal
// ones go from the top of their prompt down, so that a long prompt under a
// small budget keeps points at even distances.
int32_t PrefixCache::LeastUsefulPoint() const {
  int32_t best = -1;
  uint64_t best_gap = 0, best_age = 1;
  int32_t best_depth = 0;
  for (size_t i = 0; i < points_.size(); ++i) {
    const int32_t node = points_[i].node;
    if (node < 0) continue;
    const int32_t depth = tree_.node(node).depth;
    int32_t above = tree_.node(node).parent;
    while (above >= 0 && tree_.node(above).resume < 0) {
      above = tree_.node(above).parent;
    }
    const auto gap = static_cast<uint64_t>(
        depth - (above >= 0 ? tree_.node(above).depth : 0));
    const uint64_t age = n_lookups_ - points_[i].used + 1;
    // gap / age < best_gap / best_age
    const uint64_t mine = gap * best_age;
    const uint64_t other = best_gap * age;
    if (best >= 0 && (mine > other || (mine == other && depth >= best_depth))) {
      continue;
    }
    best = static_cast<int32_t>(i);
    best_gap = gap;
    best_age = age;
    best_depth = depth;
  }
  return best;
}

// -1 when all of them are being filled.
int32_t PrefixCache::TakePoint() {
  if (free_points_.empty()) {
    const int32_t victim = LeastUsefulPoint();
    if (victim < 0) return -1;
    tree_.node(points_[static_cast<size_t>(victim)].node).resume = -1;
    FreePoint(victim);
  }
  const int32_t point = free_points_.back();
  free_points_.pop_back();
  return point;
}

// --- A sequence's way ---

bool PrefixCache::Open(Sequence& s, bool from_disk) {
  BELAY_CHECK(s.pages.empty() && s.node < 0);
  s.n_linked = 0;
  s.n_cached = 0;
  if (!enabled()) return true;
  const int32_t n_full = (s.n_tokens() - 1) / kPageTokens;
  int32_t node = -1;
  int32_t best = -1;
  for (int32_t page = 0; page < n_full; ++page) {
    int32_t child = tree_.Find(node, s.key, PageIds(s, page));
    bool wait = false;
    if (child < 0 && from_disk) child = FromDisk(node, s, page, &wait);
    if (wait) {
      tree_.Release(node);
      return false;
    }
    if (child < 0) break;
    tree_.HoldChild(child);  // or it would make room for what is read next
    node = child;
    if (tree_.node(node).resume >= 0) best = node;
  }
  Forget(s);
  tree_.Hold(best);
  tree_.Release(node);
  if (best < 0) return true;
  s.node = best;
  s.n_linked = tree_.node(best).depth;
  s.n_cached = s.n_linked * kPageTokens;
  s.pages.resize(static_cast<size_t>(s.n_linked));
  s.in_tree.assign(s.pages.size(), 1);
  for (int32_t i = best; i >= 0; i = tree_.node(i).parent) {
    s.pages[static_cast<size_t>(tree_.node(i).depth - 1)] = tree_.node(i).page;
  }
  return true;
}

void PrefixCache::Forget(const Sequence& s) {
  if (reader_ != nullptr && reader_->owner() == s.id) reader_->Stop();
}

void PrefixCache::WaitForDisk() {
  // Short: the engine's thread must see new requests and cancellations.
  constexpr auto kMoment = std::chrono::milliseconds(2);
  if (reader_ != nullptr) reader_->Wait(kMoment);
}

void PrefixCache::Restore(const Sequence& s) {
  ++n_lookups_;
  if (s.node < 0) return;
  const int32_t point = tree_.node(s.node).resume;
  points_[static_cast<size_t>(point)].used = n_lookups_;
  resume_.Restore(s.slot, s.n_cached, PointData(point));
}

void PrefixCache::Close(Sequence& s) {
  for (size_t i = 0; i < s.pages.size(); ++i) {
    if (s.in_tree[i] != 0) continue;
    pool_.Return(s.pages[i]);
    if (!keeping_) resume_.DiscardPage(s.pages[i]);
  }
  s.pages.clear();
  s.in_tree.clear();
  tree_.Release(s.node);
  s.node = -1;
  s.n_linked = 0;
  s.n_cached = 0;
  if (!keeping_) DropUnused();
}

// --- A step ---

void PrefixCache::BeginStep() {
  resume_.Clear();
  FreePending();  // of a step that failed
}

void PrefixCache::Capture(const Sequence& s, const ops::Span& span) {
  if (!enabled() || !keeping_) return;
  const int32_t end = span.start_pos + span.n_tokens;
  int32_t node = s.node;
  bool known = true;  // the tree has all pages so far
  for (int32_t border = (span.start_pos / kPageTokens + 1) * kPageTokens;
       border <= end; border += kPageTokens) {
    // A draft is not among the tokens yet.
    known =
        known && border <= s.n_tokens() &&
        s.n_linked * kPageTokens == span.start_pos / kPageTokens * kPageTokens;
    if (known) {
      node = tree_.Find(node, s.key, PageIds(s, border / kPageTokens - 1));
      known = node >= 0;
      if (known && tree_.node(node).resume >= 0) continue;
    }
    const int32_t point = TakePoint();
    if (point < 0) return;
    pending_.push_back({s.id, border, point});
    resume_.Capture(span, border, PointData(point));
  }
}

void PrefixCache::Attach(const Sequence& s, int32_t border, int32_t node) {
  for (Pending& pending : pending_) {
    if (pending.request != s.id || pending.border != border) continue;
    if (tree_.node(node).resume >= 0) return;  // another one was faster
    tree_.node(node).resume = pending.point;
    points_[static_cast<size_t>(pending.point)] = {node, n_lookups_};
    tree_.node(node).unsaved = spill_ != nullptr;
    pending.point = -1;
    return;
  }
}

void PrefixCache::Extend(Sequence& s) {
  if (!enabled() || !keeping_) return;
  while ((s.n_linked + 1) * kPageTokens <= s.n_cached) {
    const std::span<const int32_t> ids = PageIds(s, s.n_linked);
    const auto page = static_cast<size_t>(s.n_linked);
    int32_t child = tree_.Find(s.node, s.key, ids);
    if (child < 0) {
      child = tree_.Insert(s.node, s.key, ids, s.pages[page]);
      s.in_tree[page] = 1;
      tree_.node(child).unsaved = spill_ != nullptr;
    }
    tree_.HoldChild(child);
    s.node = child;
    ++s.n_linked;
    Attach(s, s.n_linked * kPageTokens, child);
  }
}

void PrefixCache::FreePending() {
  for (Pending& pending : pending_) {
    if (pending.point >= 0) FreePoint(pending.point);
  }
  pending_.clear();
}

void PrefixCache::EndStep() {
  FreePending();
  Idle();
}

// --- Disk ---

// The page from disk as a new node, -1 when it is not there, or not yet: then
// `wait` is set. A request reads once, from the first page that memory does not
// hold to the first one that the disk does not.
int32_t PrefixCache::FromDisk(int32_t parent, Sequence& s, int32_t page,
                              bool* wait) {
  if (reader_ == nullptr || !keeping_ || n_available() == 0) return -1;
  if (reader_->owner() != s.id) {
    if (s.disk_tried) return -1;
    *wait = !reader_->is_free();
    if (*wait) return -1;  // another's turn
    const int32_t n_full = (s.n_tokens() - 1) / kPageTokens;
    s.disk_tried = true;
    reader_->Start(
        s.id, s.key,
        std::span(s.tokens).first(static_cast<size_t>(n_full) * kPageTokens),
        page);
    // A page that is not there is known at once, and then nothing is put off.
    reader_->Wait(kGlance);
  }
  while (reader_->next_page() <= page) {
    const SpillReader::Page* read = reader_->Next();
    *wait = read == nullptr;
    if (*wait || read->found == PrefixSpill::Found::kNothing) return -1;
    // Others may have computed the pages before this one in the meantime.
    const bool is_it = reader_->next_page() == page;
    const int32_t node = is_it ? Install(parent, s, *read) : -1;
    reader_->Take();
    if (is_it) return node;
  }
  return -1;  // what was read has been given up again
}

// What was read becomes the child of `parent`; -1 when the device failed.
int32_t PrefixCache::Install(int32_t parent, const Sequence& s,
                             const SpillReader::Page& read) {
  if (pool_.n_free() == 0) EvictOldest();
  const int32_t id = pool_.Take();
  resume_.CopyPageIn(id, read.page.data());
  // The buffer is used again.
  if (!backend_.Finish().ok()) {
    pool_.Return(id);
    return -1;
  }
  ++n_spill_reads_;
  const int32_t page = parent < 0 ? 0 : tree_.node(parent).depth;
  const int32_t node = tree_.Insert(parent, s.key, PageIds(s, page), id);
  if (read.found != PrefixSpill::Found::kPageAndPoint) return node;
  const int32_t point = TakePoint();
  if (point < 0) return node;
  std::copy(read.point.begin(), read.point.end(), PointData(point));
  tree_.node(node).resume = point;
  points_[static_cast<size_t>(point)] = {node, n_lookups_};
  return node;
}

// False while the writer is busy.
bool PrefixCache::Save(int32_t node) {
  if (spill_->busy()) return false;
  const PrefixNode& saved = tree_.node(node);
  resume_.CopyPageOut(saved.page, spill_->page().data());
  if (!backend_.Finish().ok()) return false;
  if (saved.resume >= 0) {
    std::copy_n(PointData(saved.resume), layout_.resume_point_bytes,
                spill_->point().data());
  }
  saved_ids_.resize(static_cast<size_t>(saved.depth) * kPageTokens);
  for (int32_t i = node; i >= 0; i = tree_.node(i).parent) {
    std::ranges::copy(
        tree_.ids(i),
        saved_ids_.begin() + int64_t{tree_.node(i).depth - 1} * kPageTokens);
  }
  spill_->Save(saved.key, saved_ids_, saved.resume >= 0);
  tree_.node(node).unsaved = false;
  return true;
}

// At most one page a step, so that no step waits for the disk.
void PrefixCache::SaveOne() {
  constexpr int32_t kLooks = 256;
  const auto n = static_cast<int32_t>(tree_.capacity());
  for (int32_t i = 0; i < std::min(n, kLooks); ++i) {
    const int32_t node = next_to_save_;
    if (tree_.node(node).exists && tree_.node(node).unsaved && !Save(node)) {
      return;
    }
    next_to_save_ = (node + 1) % n;
  }
}

}  // namespace belay::engine
