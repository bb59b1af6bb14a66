// SPDX-License-Identifier: Apache-2.0
// Random batches: sequences of random lengths come in at random steps, are cut
// into random chunks and stand in random order and slots, on 1, 2 and 3
// threads. Every logit must be, bit for bit, that of the sequence alone, in one
// step, on one thread. Seeded, so that a failure can be repeated.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/checkpoint.h"
#include "checkpoint/gguf/convert.h"
#include "support/golden_set.h"
#include "support/sanitized.h"
#include "support/stepper.h"
#include "support/value.h"

namespace belay::test {
namespace {

using Tokens = std::vector<int32_t>;

constexpr int64_t kSlots = 4;
constexpr int64_t kSequences = 6;  // more than slots: slots are used again
constexpr int64_t kMaxTokens = 160;

// A checkpoint with the types of a GGUF file, made from a golden one.
std::string ConvertedGguf() {
  static const std::string path = [] {
    const std::string out = (std::filesystem::path(::testing::TempDir()) /
                             "belay_batch_invariance.gguf")
                                .string();
    const auto checkpoint =
        Value(checkpoint::Checkpoint::Open(GoldenFolder() + "/tiny_fp4"));
    Value(checkpoint::gguf::ConvertToGguf(
        *checkpoint, {.out = out,
                      .experts = checkpoint::gguf::ExpertType::kMxfp4,
                      .mtp = true,
                      .add_metadata = {},
                      .progress = {}}));
    return out;
  }();
  return path;
}

std::string PathOf(const std::string& model) {
  if (model == "demo") return "data/demo";
  if (model == "gguf") return ConvertedGguf();
  return GoldenFolder() + "/" + model;
}

int64_t Between(std::mt19937& rng, int64_t least, int64_t most) {
  return least +
         static_cast<int64_t>(rng() % static_cast<uint32_t>(most - least + 1));
}

struct Sequence {
  Tokens tokens;  // one more than positions: the last one is for MTP
  Logits main;    // alone
  Logits mtp;
  int64_t n() const { return static_cast<int64_t>(tokens.size()) - 1; }
  Tokens Slice(int64_t begin, int64_t count) const {
    return {tokens.begin() + begin, tokens.begin() + begin + count};
  }
};

// A sequence on its way through a slot.
struct Running {
  size_t sequence = 0;
  int32_t slot = 0;
  int64_t done = 0;
};

// Half of the chunks are decode steps; the others reach from a few tokens to
// the size of a tile and beyond.
int64_t RandomChunk(std::mt19937& rng, int64_t left) {
  constexpr int64_t kMost[] = {1, 1, 1, 3, 9, 70};
  const int64_t most = kMost[rng() % std::size(kMost)];
  return std::min(left, Between(rng, 1, most));
}

// {checkpoint, back end}; "cpu_int8" is cpu with int8 activations
using Case = std::pair<std::string, std::string>;

class BatchInvarianceTest : public ::testing::TestWithParam<Case> {
 protected:
  TestModel Open(int n_threads) const {
    ModelOptions options;
    options.backend = GetParam().second;
    if (options.backend == "cpu_int8") {
      options.backend = "cpu";
      options.int8_activations = true;
    }
    options.n_threads = n_threads;
    return TestModel(PathOf(GetParam().first), options);
  }

  static bool HasMtp(const TestModel& model) {
    return model.config().n_mtp_layers > 0;
  }

  static std::vector<Sequence> MakeSequences(TestModel& model) {
    std::mt19937 rng(7);
    std::vector<Sequence> sequences(kSequences);
    for (size_t i = 0; i < sequences.size(); ++i) {
      Sequence& s = sequences[i];
      const int64_t n = i == 0 ? kMaxTokens : Between(rng, 2, kMaxTokens);
      s.tokens = RandomTokens(n + 1, model.config().vocab_size, 100 + i);
      Stepper alone(model, {.max_tokens = kMaxTokens});
      s.main = alone.Run({{0, 0, s.Slice(0, n)}});
      if (HasMtp(model)) s.mtp = alone.RunMtp({{0, 0, s.Slice(1, n)}});
    }
    return sequences;
  }

  static void Compare(const Logits& got, const std::vector<Part>& parts,
                      const std::vector<const Logits*>& expected) {
    size_t row = 0;
    for (size_t p = 0; p < parts.size(); ++p) {
      for (size_t i = 0; i < parts[p].tokens.size(); ++i, ++row) {
        const size_t at = static_cast<size_t>(parts[p].start_pos) + i;
        ASSERT_EQ(got[row], (*expected[p])[at])
            << "position " << at << ", in a batch of " << got.size()
            << " tokens of " << parts.size() << " sequences";
      }
    }
  }

  // One random schedule of all sequences.
  static void RunSchedule(TestModel& model,
                          const std::vector<Sequence>& sequences,
                          uint32_t seed) {
    SCOPED_TRACE("schedule seed " + std::to_string(seed));
    std::mt19937 rng(seed);
    Stepper stepper(model, {.n_slots = kSlots});
    std::vector<int32_t> free_slots = {2, 0, 3, 1};
    std::vector<Running> running;
    std::vector<size_t> waiting = {0, 1, 2, 3, 4, 5};
    std::shuffle(waiting.begin(), waiting.end(), rng);
    while (!waiting.empty() || !running.empty()) {
      while (!waiting.empty() && !free_slots.empty() &&
             (running.empty() || rng() % 3 == 0)) {
        running.push_back({waiting.back(), free_slots.back(), 0});
        waiting.pop_back();
        free_slots.pop_back();
      }
      std::shuffle(running.begin(), running.end(), rng);
      std::vector<Part> parts;
      std::vector<Part> shifted;  // the same for MTP
      std::vector<const Logits*> main;
      std::vector<const Logits*> mtp;
      for (Running& r : running) {
        if (!parts.empty() && rng() % 4 == 0) continue;  // sits this step out
        const Sequence& s = sequences[r.sequence];
        const int64_t n = RandomChunk(rng, s.n() - r.done);
        const auto start = static_cast<int32_t>(r.done);
        parts.push_back({r.slot, start, s.Slice(r.done, n)});
        shifted.push_back({r.slot, start, s.Slice(r.done + 1, n)});
        main.push_back(&s.main);
        mtp.push_back(&s.mtp);
        r.done += n;
      }
      Compare(stepper.Run(parts), parts, main);
      if (HasMtp(model)) Compare(stepper.RunMtp(shifted), shifted, mtp);
      if (HasFatalFailure()) return;
      std::erase_if(running, [&](const Running& r) {
        const bool over = r.done == sequences[r.sequence].n();
        if (over) free_slots.push_back(r.slot);
        return over;
      });
    }
  }
};

TEST_P(BatchInvarianceTest, LogitsDoNotDependOnCompanyChunksOrThreads) {
  std::vector<Sequence> sequences;
  {
    TestModel one = Open(/*n_threads=*/1);
    sequences = MakeSequences(one);
  }
  uint32_t seed = 1;
  for (const int n_threads : {1, 2, 3}) {
    if (kSanitized && n_threads != 2) continue;
    SCOPED_TRACE(std::to_string(n_threads) + " threads");
    TestModel model = Open(n_threads);
    for (int i = 0; i < 2; ++i) {
      RunSchedule(model, sequences, seed++);
      if (HasFatalFailure()) return;
    }
  }
}

// All checkpoints on the kernels that run here; one on those that a lesser CPU
// would use.
std::vector<Case> Cases() {
  std::vector<Case> cases;
  const std::string best = BackendNames().back();
  for (const char* model : {"tiny_fp4", "tiny_base_fp8", "gguf", "demo"}) {
    cases.emplace_back(model, best);
  }
  if (HasInt8Activations()) cases.emplace_back("tiny_fp4", "cpu_int8");
  const std::vector<std::string> all = BackendAndTargetNames();
  for (size_t i = BackendNames().size(); i < all.size(); ++i) {
    cases.emplace_back("tiny_fp4", all[i]);
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(All, BatchInvarianceTest, ::testing::ValuesIn(Cases()),
                         [](const auto& test) {
                           return test.param.first + "_" + test.param.second;
                         });

}  // namespace
}  // namespace belay::test
