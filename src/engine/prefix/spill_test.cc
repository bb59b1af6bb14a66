// SPDX-License-Identifier: Apache-2.0
// What comes back from disk is what went there, or nothing.
#include "engine/prefix/spill.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/scoped_fd.h"
#include "engine/testing/engine_fixture.h"

namespace belay::engine {
namespace {

using Bytes = std::vector<std::byte>;

class SpillTest : public EngineTest {
 protected:
  void SetUp() override {
    folder_ = ::testing::TempDir() + "belay_spill_" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  SpillOptions Options() const {
    return {.folder = folder_,
            .max_bytes = 1 << 20,
            .fingerprint = 7,
            .page_bytes = 1000,
            .point_bytes = 300};
  }
  static std::unique_ptr<PrefixSpill> Open(const SpillOptions& options) {
    auto spill = PrefixSpill::Open(options);
    EXPECT_TRUE(spill.ok()) << spill.status();
    return std::move(spill).value();
  }
  static void Fill(std::span<std::byte> bytes, int seed) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<std::byte>(seed * 13 + static_cast<int>(i) * 7);
    }
  }
  static void Save(PrefixSpill& spill, const Tokens& ids, int seed,
                   bool has_point = true, PrefixKey key = {}) {
    Fill(spill.page(), seed);
    Fill(spill.point(), seed + 1);
    spill.Save(key, ids, has_point);
    spill.WaitUntilIdle();
  }
  // What Load finds, its bytes checked.
  PrefixSpill::Found Load(PrefixSpill& spill, const Tokens& ids, int seed,
                          PrefixKey key = {}) {
    Bytes page(1000), point(300), want_page(1000), want_point(300);
    Fill(want_page, seed);
    Fill(want_point, seed + 1);
    const PrefixSpill::Found found = spill.Load(key, ids, page, point);
    if (found != PrefixSpill::Found::kNothing) {
      EXPECT_EQ(page, want_page);
    }
    if (found == PrefixSpill::Found::kPageAndPoint) {
      EXPECT_EQ(point, want_point);
    }
    return found;
  }

  std::string folder_;
};

TEST_F(SpillTest, SurvivesARestart) {
  {
    const auto spill = Open(Options());
    Save(*spill, Prompt(128), 1);
    Save(*spill, Prompt(256), 2, /*has_point=*/false);
    EXPECT_EQ(spill->n_writes(), 2);
  }
  const auto spill = Open(Options());
  EXPECT_EQ(Load(*spill, Prompt(128), 1), PrefixSpill::Found::kPageAndPoint);
  EXPECT_EQ(Load(*spill, Prompt(256), 2), PrefixSpill::Found::kPage);
  EXPECT_EQ(Load(*spill, Prompt(384), 2), PrefixSpill::Found::kNothing);
  EXPECT_EQ(Load(*spill, Prompt(128, 1), 1), PrefixSpill::Found::kNothing);
  EXPECT_EQ(Load(*spill, Prompt(128), 1, {.salt = 1}),
            PrefixSpill::Found::kNothing);
  EXPECT_EQ(spill->n_damaged(), 0);
  struct stat info;
  ASSERT_EQ(stat(folder_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
}

TEST_F(SpillTest, OtherModelsAndSizesAreOthers) {
  Save(*Open(Options()), Prompt(128), 1);
  SpillOptions other = Options();
  other.fingerprint = 8;
  EXPECT_EQ(Load(*Open(other), Prompt(128), 1), PrefixSpill::Found::kNothing);
}

// A file whose name says one prefix and whose content is another's: a collision
// of hashes, or somebody's hand.
TEST_F(SpillTest, TheNameIsNotBelieved) {
  const auto spill = Open(Options());
  Save(*spill, Prompt(128), 1);
  const auto moved = [&](const PrefixKey& key, const Tokens& ids) {
    Save(*spill, Prompt(128), 1);
    std::filesystem::rename(spill->PathOf({}, Prompt(128)),
                            spill->PathOf(key, ids));
    return Load(*spill, ids, 1, key);
  };
  EXPECT_EQ(moved({}, Prompt(128, 1)), PrefixSpill::Found::kNothing);
  EXPECT_EQ(moved({.salt = 3}, Prompt(128)), PrefixSpill::Found::kNothing);
  EXPECT_EQ(moved({.adapter = 0}, Prompt(128)), PrefixSpill::Found::kNothing);
  EXPECT_EQ(moved({}, Prompt(256)), PrefixSpill::Found::kNothing);
  EXPECT_EQ(spill->n_damaged(), 4);
}

// Every region: each byte of header and ids, and samples of page and point; and
// every way to be too short or too long.
TEST_F(SpillTest, DamagedFilesAreNeverTrusted) {
  const auto spill = Open(Options());
  const Tokens ids = Prompt(128);
  const std::string path = spill->PathOf({}, ids);
  Save(*spill, ids, 1);
  const std::string good = *ReadFile(path);
  ASSERT_EQ(good.size(), 64u + 4 * 128 + 1000 + 300);
  int64_t n = 0;
  const auto refused = [&](const std::string& bad) {
    EXPECT_TRUE(WriteFileAtomically(path, bad).ok());
    EXPECT_EQ(Load(*spill, ids, 1), PrefixSpill::Found::kNothing);
    EXPECT_EQ(spill->n_damaged(), ++n);
    EXPECT_FALSE(std::filesystem::exists(path)) << "not read twice";
  };
  for (size_t at = 0; at < good.size(); at += at < 128 ? 1 : 37) {
    SCOPED_TRACE(at);
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << (at % 8)));
    refused(bad);
  }
  std::string last = good;
  last.back() = static_cast<char>(last.back() ^ 0x80);
  refused(last);
  for (const size_t size : {size_t{0}, size_t{8}, size_t{63}, size_t{64},
                            size_t{500}, good.size() - 300, good.size() - 1}) {
    SCOPED_TRACE(size);
    refused(good.substr(0, size));
  }
  refused(good + "x");
  EXPECT_TRUE(WriteFileAtomically(path, good).ok());
  EXPECT_EQ(Load(*spill, ids, 1), PrefixSpill::Found::kPageAndPoint);
}

TEST_F(SpillTest, OldestFilesGoWhenTheBudgetIsFull) {
  SpillOptions options = Options();
  options.max_bytes = 3 * (64 + 512 + 1300);
  const auto spill = Open(options);
  for (int32_t i = 0; i < 3; ++i) {
    Save(*spill, Prompt(128, i), i);
    const auto time = std::filesystem::file_time_type::clock::now() -
                      std::chrono::hours(10 - i);
    std::filesystem::last_write_time(spill->PathOf({}, Prompt(128, i)), time);
  }
  EXPECT_EQ(Load(*spill, Prompt(128, 0), 0),
            PrefixSpill::Found::kPageAndPoint);  // used now
  Save(*spill, Prompt(128, 3), 3);
  EXPECT_EQ(Load(*spill, Prompt(128, 1), 1), PrefixSpill::Found::kNothing);
  EXPECT_EQ(Load(*spill, Prompt(128, 0), 0), PrefixSpill::Found::kPageAndPoint);
  EXPECT_EQ(Load(*spill, Prompt(128, 3), 3), PrefixSpill::Found::kPageAndPoint);
}

TEST_F(SpillTest, RemovesWhatAKilledWriterLeft) {
  Save(*Open(Options()), Prompt(128), 1);
  const std::string path = Open(Options())->PathOf({}, Prompt(128));
  const std::string left = path + ".tmp-123-0";
  ASSERT_TRUE(WriteFileAtomically(left, "half a file").ok());
  const std::string foreign = folder_ + "/notes.txt";
  ASSERT_TRUE(WriteFileAtomically(foreign, "mine").ok());
  Open(Options());
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_TRUE(std::filesystem::exists(path));
  EXPECT_TRUE(std::filesystem::exists(foreign));
}

TEST_F(SpillTest, AFolderThatCannotBe) {
  const std::string file = ::testing::TempDir() + "belay_spill_file";
  ASSERT_TRUE(WriteFileAtomically(file, "").ok());
  SpillOptions options = Options();
  options.folder = file + "/below";
  EXPECT_EQ(ErrorOf(PrefixSpill::Open(options).status()), "SYS-002");
  std::filesystem::remove(file);
}

// The engine: a second life reads what the first has computed, and answers the
// same; with damage it computes again.
TEST_F(SpillTest, TheEngineResumesFromDisk) {
  for (const bool speculative : {false, true}) {
    std::filesystem::remove_all(folder_);
    EngineOptions options = {.max_context = 1024,
                             .n_pages = 8,
                             .n_draft_tokens = speculative ? 1 : 0,
                             .prefix_cache_bytes = 1 << 20};
    options.spill_folder = folder_;
    options.model_fingerprint = 5;
    const Tokens prompt = Prompt(600);
    Request request = {.prompt = prompt, .max_tokens = 20};
    request.cache_salt = 9;
    Ask(*Make(options), request);
    {
      const auto engine = Make(options);
      const Answer answer = Ask(*engine, request);
      EXPECT_EQ(answer.n_cached_tokens, 512);
      EXPECT_EQ(answer.tokens, Expected(prompt, 20));
      EXPECT_EQ(engine->stats().n_spill_reads, 4);
      request.cache_salt = 8;
      EXPECT_EQ(Ask(*engine, request).n_cached_tokens, 0);
      request.cache_salt = 9;
    }
    options.model_fingerprint = 6;
    EXPECT_EQ(Ask(*Make(options), request).n_cached_tokens, 0);
    options.model_fingerprint = 5;
    for (const auto& file : std::filesystem::directory_iterator(folder_)) {
      std::filesystem::resize_file(file.path(), file.file_size() - 1);
    }
    const auto engine = Make(options);
    const Answer answer = Ask(*engine, request);
    EXPECT_EQ(answer.n_cached_tokens, 0);
    EXPECT_EQ(answer.tokens, Expected(prompt, 20));
    EXPECT_GE(engine->stats().n_spill_damaged, 1);
  }
}

// A FIFO in place of a page's file: who reads it hangs until Release().
class SlowDiskTest : public SpillTest {
 protected:
  void MakeSlow() {
    EngineOptions options = {.n_slots = 3,
                             .max_context = 512,
                             .n_pages = 12,
                             .prefix_cache_bytes = 1 << 20};
    options.spill_folder = folder_;
    ASSERT_EQ(Ask(*Make(options), Prompt(200), 3).n_cached_tokens, 0);
    for (const auto& file : std::filesystem::directory_iterator(folder_)) {
      path_ = file.path();
    }
    std::filesystem::remove(path_);
    ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
    engine_ = Make(options);
    slow_ = Submit(*engine_, Prompt(200), 3);
    Step(*engine_);
    // Both wait here for each other: were the FIFO released before the reader
    // has come to it, the reader would wait for a writer without end.
    writer_ = std::make_unique<ScopedFd>(open(path_.c_str(), O_WRONLY));
    ASSERT_GE(writer_->get(), 0);
  }
  void TearDown() override {
    Release();
    engine_.reset();  // may still be writing files
    SpillTest::TearDown();
  }
  // The disk answers, with a file of no bytes.
  void Release() { writer_.reset(); }

  std::string path_;
  std::unique_ptr<Engine> engine_;
  RequestId slow_ = 0;
  std::unique_ptr<ScopedFd> writer_;  // last: goes before the engine does
};

TEST_F(SlowDiskTest, HoldsUpNobodyElse) {
  MakeSlow();
  const RequestId other = Submit(*engine_, Prompt(50, 9), 30);
  while (answers_[other].finish == FinishReason::kNone) Step(*engine_);
  EXPECT_EQ(answers_[other].tokens, Expected(Prompt(50, 9), 30));
  EXPECT_TRUE(answers_[slow_].tokens.empty());
  EXPECT_EQ(engine_->stats().n_waiting, 1);
  Release();
  Drain(*engine_);
  EXPECT_EQ(answers_[slow_].tokens, Expected(Prompt(200), 3));
  EXPECT_EQ(answers_[slow_].n_cached_tokens, 0);
  EXPECT_EQ(engine_->stats().n_spill_damaged, 1);
}

TEST_F(SlowDiskTest, IsGivenUpWhenItHangs) {
  MakeSlow();
  const RequestId next = Submit(*engine_, Prompt(200, 3), 3);  // waits its turn
  Step(*engine_);
  EXPECT_EQ(engine_->stats().n_waiting, 2);
  environment_.now += std::chrono::seconds(3);
  Drain(*engine_);
  EXPECT_EQ(answers_[slow_].tokens, Expected(Prompt(200), 3));
  EXPECT_EQ(answers_[next].tokens, Expected(Prompt(200, 3), 3));
  Release();
}

TEST_F(SlowDiskTest, CancelledRequestsLeaveIt) {
  MakeSlow();
  engine_->Cancel(slow_);
  Step(*engine_);
  EXPECT_EQ(answers_[slow_].finish, FinishReason::kCancelled);
  EXPECT_FALSE(engine_->HasWork());
  const RequestId next = Submit(*engine_, Prompt(200, 3), 3);
  Step(*engine_);
  Release();  // what comes now is nobody's
  Drain(*engine_);
  EXPECT_EQ(answers_[next].tokens, Expected(Prompt(200, 3), 3));
  EXPECT_EQ(Ask(*engine_, Prompt(200), 3).tokens, Expected(Prompt(200), 3));
}

// kill -9 in the middle of a write, again and again: the next life finds whole
// pages or none, and no rest of what was being written.
TEST_F(SpillTest, AKilledWriterLeavesNothingHalf) {
  SpillOptions options = Options();
  options.page_bytes = 1000000;
  options.max_bytes = 32000000;
  const auto has_half = [&] {
    std::error_code error;
    for (const auto& entry :
         std::filesystem::directory_iterator(folder_, error)) {
      if (entry.path().string().find(".tmp-") != std::string::npos) return true;
    }
    return false;
  };
  constexpr int kPrompts = 5;
  int n_torn = 0;
  for (int round = 0; round < 60 && n_torn < 4; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const auto spill = PrefixSpill::Open(options);
      for (int i = round; spill.ok(); ++i) {
        Save(**spill, Prompt(128, i % kPrompts), i % kPrompts);
      }
      _exit(1);
    }
    // Some rounds at the first sight of a write, some a few writes later.
    const auto limit =
        std::chrono::steady_clock::now() + std::chrono::seconds(60);
    bool is_late = false;
    for (int n_seen = -1; n_seen < round % 3 && !is_late;) {
      if (has_half()) ++n_seen;
      is_late = std::chrono::steady_clock::now() > limit;
    }
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
    ASSERT_FALSE(is_late) << "the child did not write";
    n_torn += has_half() ? 1 : 0;

    const auto spill = Open(options);
    EXPECT_FALSE(has_half());
    Bytes page(options.page_bytes), point(300);
    Bytes want_page(page.size()), want_point(300);
    for (int i = 0; i < kPrompts; ++i) {
      if (spill->Load({}, Prompt(128, i), page, point) ==
          PrefixSpill::Found::kNothing) {
        continue;
      }
      Fill(want_page, i);
      Fill(want_point, i + 1);
      EXPECT_EQ(page, want_page);
      EXPECT_EQ(point, want_point);
    }
    EXPECT_EQ(spill->n_damaged(), 0);
  }
  // How many files were whole is a matter of the disk's speed.
  EXPECT_GT(n_torn, 0) << "no write was met";
}

// More prefixes than pages: what memory gave up comes back from disk.
TEST_F(SpillTest, DiskHoldsWhatMemoryGaveUp) {
  EngineOptions options = {
      .max_context = 512, .n_pages = 4, .prefix_cache_bytes = 1 << 20};
  options.spill_folder = folder_;
  const auto engine = Make(options);
  for (int round = 0; round < 2; ++round) {
    for (int32_t i = 0; i < 5; ++i) {
      const Answer answer = Ask(*engine, Prompt(300, i), 20);
      if (round == 0) {
        // Idle until both pages are on disk: a step never waits for it.
        while (engine->stats().n_spill_writes < 2 * (i + 1)) {
          std::this_thread::yield();
          Step(*engine);
        }
      }
      EXPECT_EQ(answer.tokens, Expected(Prompt(300, i), 20));
      if (round == 1) {
        EXPECT_GE(answer.n_cached_tokens, 128);
      }
    }
  }
  EXPECT_GT(engine->stats().n_spill_reads, 5);
}

}  // namespace
}  // namespace belay::engine
