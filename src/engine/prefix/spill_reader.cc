// SPDX-License-Identifier: Apache-2.0
#include "engine/prefix/spill_reader.h"

#include "base/error.h"

namespace belay::engine {

SpillReader::SpillReader(PrefixSpill& spill, int64_t max_tokens)
    : spill_(spill) {
  ids_.reserve(static_cast<size_t>(max_tokens));
  for (Page& page : pages_) {
    page.page.resize(spill.page().size());
    page.point.resize(spill.point().size());
  }
  reader_ = std::thread([this] { Read(); });
}

SpillReader::~SpillReader() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  reader_.join();
}

bool SpillReader::is_free() {
  const std::lock_guard lock(mutex_);
  return !has_job_ && !is_loading_;
}

void SpillReader::Start(RequestId owner, const PrefixKey& key,
                        std::span<const int32_t> ids, int32_t first) {
  {
    const std::lock_guard lock(mutex_);
    BELAY_CHECK(!has_job_ && !is_loading_);
    key_ = key;
    ids_.assign(ids.begin(), ids.end());
    first_ = static_cast<size_t>(first);
    n_read_ = 0;
    n_taken_ = 0;
    has_ended_ = (first_ + 1) * kPageTokens > ids_.size();
    has_job_ = true;
  }
  owner_ = owner;
  next_page_ = first;
  changed_.notify_all();
}

void SpillReader::Stop() {
  owner_ = 0;
  const std::lock_guard lock(mutex_);
  has_job_ = false;
  n_read_ = 0;
  n_taken_ = 0;
}

const SpillReader::Page* SpillReader::Next() {
  const std::lock_guard lock(mutex_);
  return n_read_ > n_taken_ ? &pages_[n_taken_ % kAhead] : nullptr;
}

void SpillReader::Take() {
  {
    const std::lock_guard lock(mutex_);
    BELAY_CHECK(n_read_ > n_taken_);
    ++n_taken_;
  }
  ++next_page_;
  changed_.notify_all();
}

void SpillReader::Wait(std::chrono::microseconds limit) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, limit, [this] {
    return n_read_ > n_taken_ || (!has_job_ && !is_loading_);
  });
}

void SpillReader::Read() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] {
      return stop_ || (has_job_ && !has_ended_ && n_read_ - n_taken_ < kAhead);
    });
    if (stop_) return;
    is_loading_ = true;
    Page& page = pages_[n_read_ % kAhead];
    const size_t n_ids = (first_ + n_read_ + 1) * kPageTokens;
    lock.unlock();
    const PrefixSpill::Found found =
        spill_.Load(key_, std::span(ids_).first(n_ids), page.page, page.point);
    lock.lock();
    is_loading_ = false;
    if (has_job_) {
      page.found = found;
      ++n_read_;
      has_ended_ = found == PrefixSpill::Found::kNothing ||
                   n_ids + kPageTokens > ids_.size();
    }
    changed_.notify_all();
  }
}

}  // namespace belay::engine
