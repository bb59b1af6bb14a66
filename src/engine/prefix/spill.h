// SPDX-License-Identifier: Apache-2.0
// Prefix pages on disk: one file a page, written in the background, read only
// when every byte is what was written for exactly these tokens.
#ifndef BELAY_ENGINE_PREFIX_SPILL_H_
#define BELAY_ENGINE_PREFIX_SPILL_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"
#include "engine/prefix/tree.h"

namespace belay::engine {

struct SpillOptions {
  std::string folder;        // made when missing, for this user alone
  size_t max_bytes = 0;      // of all files; the longest unused go
  uint64_t fingerprint = 0;  // of model, formats and sizes
  size_t page_bytes = 0;     // of one page in all layers
  size_t point_bytes = 0;    // of a resume point
};

// A file holds a header, ALL token ids from the prompt's start to the page's
// end, the page's rows, and the resume point if there is one; a checksum covers
// everything. Its name is a hash of fingerprint, key and ids, which only says
// where to look: what is inside is compared. A file that is too short, too
// long, of another version or damaged anywhere is removed and not used. Files
// appear by rename after fsync, so that a killed process leaves none half
// written; what it leaves under temporary names is removed at the next start.
class PrefixSpill {
 public:
  enum class Found : uint8_t { kNothing, kPage, kPageAndPoint };

  // Errors: SYS-002 (the folder cannot be made or written to).
  static StatusOr<std::unique_ptr<PrefixSpill>> Open(
      const SpillOptions& options);
  ~PrefixSpill();  // writes what was given to it
  PrefixSpill(const PrefixSpill&) = delete;
  PrefixSpill& operator=(const PrefixSpill&) = delete;

  // True while the writer has a page in its hands. Then the buffers below are
  // its own, and Save() must not be called.
  bool busy();
  void WaitUntilIdle();
  // To be filled for Save().
  std::span<std::byte> page() { return page_; }
  std::span<std::byte> point() { return point_; }
  // Writes the two buffers as the last page of `ids` (a multiple of
  // kPageTokens). A failure is counted, no more: a cache may lose things.
  void Save(const PrefixKey& key, std::span<const int32_t> ids, bool has_point);

  // Reads the last page of `ids` to the two spans, which hold anything when
  // there is none. Waits for the disk; may be called from any one thread.
  Found Load(const PrefixKey& key, std::span<const int32_t> ids,
             std::span<std::byte> page, std::span<std::byte> point);

  int64_t n_writes();
  int64_t n_damaged() const { return n_damaged_; }

  // Where Load() looks; for tests.
  std::string PathOf(const PrefixKey& key, std::span<const int32_t> ids) const;

 private:
  explicit PrefixSpill(const SpillOptions& options);

  void Write();  // the thread
  bool WriteOne() const;
  void Trim() const;

  const SpillOptions options_;
  std::atomic<int64_t> n_damaged_{0};

  std::mutex mutex_;
  std::condition_variable changed_;
  bool has_job_ = false;  // guarded by mutex_, as all below; while it is set
                          // the job is the writer's own
  bool stop_ = false;
  int64_t n_writes_ = 0;
  PrefixKey key_;
  std::vector<int32_t> ids_;
  bool has_point_ = false;
  std::vector<std::byte> page_;
  std::vector<std::byte> point_;
  std::thread writer_;  // last: starts when all else is there
};

}  // namespace belay::engine

#endif  // BELAY_ENGINE_PREFIX_SPILL_H_
