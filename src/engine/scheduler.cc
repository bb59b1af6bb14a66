// SPDX-License-Identifier: Apache-2.0
#include "engine/scheduler.h"

#include <algorithm>
#include <span>
#include <utility>

namespace belay::engine {
namespace {

// How long a request waits for its prefix on disk, others' turns included. A
// disk that takes longer than computing is of no use, and one that hangs must
// not hang the request.
constexpr auto kDiskPatience = std::chrono::seconds(2);

int64_t PagesOf(int64_t n_tokens) {
  return (n_tokens + kPageTokens - 1) / kPageTokens;
}

void InsertSorted(std::vector<std::unique_ptr<Sequence>>& list,
                  std::unique_ptr<Sequence> s) {
  const auto place = std::upper_bound(
      list.begin(), list.end(), s,
      [](const auto& a, const auto& b) { return a->before(*b); });
  list.insert(place, std::move(s));
}

}  // namespace

Scheduler::Scheduler(const spec::Layout& layout, PrefixCache& cache,
                     StepInputs& inputs)
    : layout_(layout), cache_(cache), inputs_(inputs) {
  const auto n_slots = static_cast<size_t>(layout.options.n_slots);
  running_.reserve(n_slots);
  prompts_.reserve(n_slots);
  work_.reserve(n_slots);
  for (auto slot = static_cast<int32_t>(n_slots); slot > 0; --slot) {
    free_slots_.push_back(slot - 1);
  }
}

int64_t Scheduler::PagesFor(const Sequence& s) const {
  return PagesOf(s.n_limit + layout_.options.draft_len);
}

void Scheduler::Queue(std::unique_ptr<Sequence> sequence) {
  // Room for all that run, too: preemption does not allocate.
  waiting_.reserve(waiting_.size() + 1 +
                   static_cast<size_t>(layout_.options.n_slots));
  InsertSorted(waiting_, std::move(sequence));
}

void Scheduler::Cancel(RequestId id) {
  for (auto* list : {&waiting_, &running_}) {
    for (SequencePtr& s : *list) {
      if (s->id == id) s->cancelled = true;
    }
  }
}

// --- Ends ---

bool Scheduler::EndEarly(Sequence& s, Clock::time_point now,
                         std::vector<Event>& events) const {
  if (s.finish != FinishReason::kNone) return false;
  if (s.cancelled) {
    s.finish = FinishReason::kCancelled;
  } else if (s.deadline != Clock::time_point{} && now >= s.deadline) {
    s.finish = FinishReason::kDeadline;
  } else {
    return false;
  }
  Event event{.request = s.id, .finish = s.finish};
  if (!s.has_event) event.n_cached_tokens = std::max(s.n_reused, 0);
  events.push_back(event);
  return true;
}

void Scheduler::Sweep(Clock::time_point now, std::vector<Event>& events) {
  std::erase_if(waiting_, [&](const SequencePtr& s) {
    const bool ended = EndEarly(*s, now, events);
    if (!ended) return false;
    ++n_finished_;
    cache_.Forget(*s);
    return true;
  });
  std::erase_if(running_, [&](const SequencePtr& s) {
    EndEarly(*s, now, events);
    if (s->finish == FinishReason::kNone) return false;
    const std::chrono::duration<double> elapsed = now - s->admitted;
    mean_seconds_ += (elapsed.count() - mean_seconds_) /
                     static_cast<double>(std::min<int64_t>(++n_finished_, 16));
    Vacate(*s);
    return true;
  });
}

void Scheduler::Vacate(Sequence& s) {
  cache_.Close(s);
  free_slots_.push_back(s.slot);
  s.slot = -1;
}

// --- Room ---

// Pages that the next step of a decoding sequence writes to.
int64_t Scheduler::PagesNow(const Sequence& s) const {
  return PagesOf(s.n_tokens() + static_cast<int64_t>(s.drafts.size()));
}

// A running sequence waits again. What it has computed stays in the prefix
// cache as long as nobody needs the pages; the rest is computed again.
void Scheduler::Preempt(size_t running) {
  SequencePtr s = std::move(running_[running]);
  running_.erase(running_.begin() + static_cast<int64_t>(running));
  Vacate(*s);
  s->drafts.clear();
  s->disk_tried = false;
  s->disk_deadline = {};
  ++n_preemptions_;
  InsertSorted(waiting_, std::move(s));
}

// False when the sequence itself had to go.
bool Scheduler::MakeRoom(Sequence& s) {
  const auto missing = [&] {
    return PagesNow(s) - static_cast<int64_t>(s.pages.size());
  };
  while (missing() > cache_.n_available()) {
    if (!s.drafts.empty()) {
      s.drafts.clear();  // may do with fewer
      continue;
    }
    const bool itself = running_.back().get() == &s;
    Preempt(running_.size() - 1);
    if (itself) return false;
  }
  if (missing() > 0) {
    cache_.Take(missing(), s);
    inputs_.SetPages(s.slot, s.pages);
  }
  return true;
}

void Scheduler::Grow() {
  for (size_t i = 0; i < running_.size(); ++i) {
    if (!running_[i]->prefilling() && !MakeRoom(*running_[i])) return;
  }
}

// Opens the sequence's prefix if there is a slot and pages for it; otherwise
// leaves it as it was. Who runs keeps a page to grow into, or the newcomer
// would soon be preempted for it.
Scheduler::Fit Scheduler::Fits(Sequence& s, Clock::time_point now,
                               int32_t batch_limit) {
  if (free_slots_.empty() || n_running() >= batch_limit) return Fit::kNo;
  int64_t spare = 0;
  for (const SequencePtr& other : running_) {
    if (PagesFor(*other) > static_cast<int64_t>(other->pages.size())) ++spare;
  }
  const int64_t n_pages = PagesOf(s.n_tokens());
  if (spare > 0 && PagesFor(s) > n_pages) ++spare;
  // While it would have to wait anyway, the disk is left alone: what is read
  // now might be gone when its turn comes.
  const bool is_patient =
      s.disk_deadline == Clock::time_point{} || now < s.disk_deadline;
  if (!cache_.Open(s, is_patient && n_pages + spare <= cache_.n_available())) {
    if (s.disk_deadline == Clock::time_point{}) {
      s.disk_deadline = now + kDiskPatience;
    }
    return Fit::kReading;
  }
  const int64_t missing = n_pages - static_cast<int64_t>(s.pages.size());
  if (missing + spare <= cache_.n_available()) {
    cache_.Take(missing, s);
    return Fit::kYes;
  }
  cache_.Close(s);
  return Fit::kNo;
}

void Scheduler::CountReuse(Sequence& s) {
  if (s.n_reused >= 0) return;  // it comes back after preemption
  s.n_reused = std::min(s.n_cached, s.n_prompt);
  n_prefix_tokens_ += s.n_reused;
  if (cache_.enabled()) ++(s.n_reused > 0 ? n_prefix_hits_ : n_prefix_misses_);
}

// Admits one of the waiting, which Fits().
void Scheduler::Start(size_t waiting, Clock::time_point now) {
  SequencePtr s = std::move(waiting_[waiting]);
  waiting_.erase(waiting_.begin() + static_cast<int64_t>(waiting));
  s->slot = free_slots_.back();
  free_slots_.pop_back();
  if (s->n_reused < 0) s->admitted = now;
  s->n_prefill = s->n_tokens();
  CountReuse(*s);
  cache_.Restore(*s);
  inputs_.SetPages(s->slot, s->pages);
  InsertSorted(running_, std::move(s));
}

// The running sequence that must go for `s`: of lower priority and behind it in
// order, the last of these; n_running() = none.
size_t Scheduler::VictimFor(const Sequence& s) const {
  for (size_t i = running_.size(); i > 0; --i) {
    const Sequence& other = *running_[i - 1];
    if (other.priority < s.priority && s.before(other)) return i - 1;
  }
  return running_.size();
}

void Scheduler::Admit(Clock::time_point now, int32_t batch_limit) {
  while (n_running() > batch_limit) Preempt(running_.size() - 1);
  Grow();
  for (size_t i = 0; i < waiting_.size();) {
    Sequence& s = *waiting_[i];
    const Fit fit = Fits(s, now, batch_limit);
    if (fit == Fit::kYes) {
      Start(i, now);
    } else if (fit == Fit::kReading) {
      ++i;  // holds up nobody behind it
    } else {
      const size_t victim = VictimFor(s);
      if (victim == running_.size()) return;
      Preempt(victim);
    }
  }
}

// --- The batch ---

void Scheduler::AddWork(Sequence& s, int32_t n_tokens) {
  Work work;
  work.sequence = &s;
  work.n_tokens = n_tokens;
  work.prefill = s.prefilling();
  const std::span<const int32_t> tokens(s.tokens);
  const auto start = static_cast<size_t>(s.n_cached);
  const bool reaches_end = n_tokens == s.n_pending();
  if (reaches_end && !work.prefill && !s.drafts.empty()) {
    int32_t guessed[1 + kMaxDraftTokens] = {s.tokens.back()};
    std::copy(s.drafts.begin(), s.drafts.end(), guessed + 1);
    work.n_drafts = static_cast<int32_t>(s.drafts.size());
    work.n_tokens = 1 + work.n_drafts;
    work.first =
        inputs_.AddSpan(s.slot, s.n_cached,
                        std::span(guessed, static_cast<size_t>(work.n_tokens)));
  } else {
    work.first =
        inputs_.AddSpan(s.slot, s.n_cached,
                        tokens.subspan(start, static_cast<size_t>(n_tokens)));
  }
  if (reaches_end) {
    work.row = inputs_.AddLogitRow(work.first + n_tokens - 1);
    for (int32_t i = 1; i <= work.n_drafts; ++i) {
      inputs_.AddLogitRow(work.first + i);
    }
  }
  work_.push_back(work);
}

void Scheduler::Plan(int32_t prefill_tokens) {
  inputs_.Clear();
  work_.clear();
  prompts_.clear();
  for (SequencePtr& s : running_) {
    if (s->prefilling()) {
      prompts_.push_back(s.get());
    } else {
      AddWork(*s, 1);
    }
  }
  auto budget = static_cast<int32_t>(inputs_.max_tokens() - inputs_.n_tokens());
  if (!work_.empty() && prefill_tokens > 0) {
    budget = std::min(budget, prefill_tokens);
  }
  // Each gets an even share of what is left; the short ones first, so that what
  // they do not need goes to the long ones.
  std::sort(prompts_.begin(), prompts_.end(),
            [](const Sequence* a, const Sequence* b) {
              return a->n_pending() < b->n_pending() ||
                     (a->n_pending() == b->n_pending() && a->before(*b));
            });
  auto n_left = static_cast<int32_t>(prompts_.size());
  for (Sequence* s : prompts_) {
    if (budget == 0) return;
    const int32_t share = std::max(budget / n_left, 1);
    const int32_t n = std::min(s->n_pending(), share);
    AddWork(*s, n);
    budget -= n;
    --n_left;
  }
}

}  // namespace belay::engine
