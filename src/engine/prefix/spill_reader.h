// SPDX-License-Identifier: Apache-2.0
// Prefix pages from disk, read by a thread of their own: no step waits until
// the disk has answered.
#ifndef BELAY_ENGINE_PREFIX_SPILL_READER_H_
#define BELAY_ENGINE_PREFIX_SPILL_READER_H_

#include <array>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "engine/prefix/spill.h"
#include "engine/prefix/tree.h"
#include "engine/request.h"

namespace belay::engine {

// Reads the pages of one prompt at a time, a few ahead of who takes them. All
// functions are for one thread, that of the engine.
class SpillReader {
 public:
  struct Page {
    PrefixSpill::Found found = PrefixSpill::Found::kNothing;
    std::vector<std::byte> page;   // [page_bytes] of the spill
    std::vector<std::byte> point;  // [point_bytes], with kPageAndPoint
  };

  // Borrows `spill`. No prompt has more than `max_tokens` tokens.
  SpillReader(PrefixSpill& spill, int64_t max_tokens);
  ~SpillReader();  // waits for the page that is being read
  SpillReader(const SpillReader&) = delete;
  SpillReader& operator=(const SpillReader&) = delete;

  // Whose pages are read; 0 = nobody's.
  RequestId owner() const { return owner_; }
  // True when Start() may be called: nobody's are, and the thread has let go of
  // what was stopped.
  bool is_free();
  // Reads the pages of `ids` (a multiple of kPageTokens) from number `first`
  // on, up to the first one that is not there.
  void Start(RequestId owner, const PrefixKey& key,
             std::span<const int32_t> ids, int32_t first);
  // Forgets the pages of the owner.
  void Stop();

  // The number of the page that Next() gives.
  int32_t next_page() const { return next_page_; }
  // The next page once it is read, null before. One that was not there is the
  // last, and stays. Valid until Take() or Stop().
  const Page* Next();
  void Take();

  // Waits until Next() or is_free() has news, or for `limit`.
  void Wait(std::chrono::microseconds limit);

 private:
  static constexpr size_t kAhead = 4;

  void Read();  // the thread

  PrefixSpill& spill_;
  RequestId owner_ = 0;    // the engine's thread only
  int32_t next_page_ = 0;  // the engine's thread only

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_. While is_loading_ is set, key, ids and the page behind
  // the last one read are the thread's own.
  bool is_loading_ = false;
  bool has_job_ = false;
  bool has_ended_ = false;  // nothing more of the job will be read
  bool stop_ = false;
  PrefixKey key_;
  std::vector<int32_t> ids_;
  size_t first_ = 0;    // of the job, in pages
  size_t n_read_ = 0;   // of the job
  size_t n_taken_ = 0;  // of those
  std::array<Page, kAhead> pages_;
  std::thread reader_;  // last: starts when all else is there
};

}  // namespace belay::engine

#endif  // BELAY_ENGINE_PREFIX_SPILL_READER_H_
