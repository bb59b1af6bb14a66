// SPDX-License-Identifier: Apache-2.0
// The trained demo checkpoint: every sample of data/demo/samples.json, token
// for token, whatever else runs beside it.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "nlohmann/json.hpp"
#include "support/sanitized.h"
#include "support/test_model.h"
#include "support/value.h"

namespace belay::test {
namespace {

constexpr const char* kDemo = "data/demo";

struct Sample {
  std::vector<int32_t> prompt;
  std::vector<int32_t> answer;  // ends with eos
};

constexpr size_t kSamplesSanitized = 5;

struct Samples {
  size_t n_in_file = 0;
  std::vector<Sample> all;    // that are answered
  double mtp_acceptance = 0;  // of the oracle
};

const Samples& DemoSamples() {
  static const Samples samples = [] {
    std::ifstream file(std::string(kDemo) + "/samples.json");
    const auto json = nlohmann::json::parse(file);
    Samples read;
    read.mtp_acceptance = json.at("mtp_acceptance");
    read.n_in_file = json.at("samples").size();
    for (const auto& sample : json.at("samples")) {
      if (kSanitized && read.all.size() == kSamplesSanitized) break;
      read.all.push_back({sample.at("prompt_ids"), sample.at("token_ids")});
    }
    return read;
  }();
  return samples;
}

class DemoTest : public ::testing::TestWithParam<std::string> {
 protected:
  DemoTest() : model_(kDemo, {.backend = GetParam()}) {}

  // Answers all samples and holds them; returns what the engine counted.
  engine::EngineStats Answer(const engine::EngineOptions& options) {
    auto engine = Value(
        engine::Engine::Create(model_.parts<engine::EngineParts>(), options));
    std::map<engine::RequestId, size_t> sample_of;
    std::vector<std::vector<int32_t>> got(DemoSamples().all.size());
    for (size_t i = 0; i < got.size(); ++i) {
      engine::Request request;
      request.prompt = DemoSamples().all[i].prompt;
      request.max_tokens = 512;
      request.stop_ids = {model_.config().eos_id};
      sample_of[Value(engine->Submit(std::move(request)))] = i;
    }
    while (engine->HasWork()) {
      for (const engine::Event& event : Value(engine->Step())) {
        got[sample_of.at(event.request)].push_back(event.token);
      }
    }
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i], DemoSamples().all[i].answer) << "sample " << i;
    }
    const engine::EngineStats stats = engine->stats();
    std::printf(
        "  prefill %.0f tokens/s, decode %.0f tokens/s\n",
        static_cast<double>(stats.n_prefill_tokens) / stats.prefill_seconds,
        static_cast<double>(stats.n_decode_tokens) /
            std::max(stats.decode_seconds, 1e-9));
    return stats;
  }

  TestModel model_;
};

TEST_P(DemoTest, OneAtATime) {
  ASSERT_EQ(DemoSamples().n_in_file, 54u);
  Answer({.n_slots = 1, .max_tokens_per_step = 512, .max_context = 1024});
}

// A step has room for 48 tokens, so that prompts come in chunks beside the
// decoding of others; there are fewer pages than all slots could use.
TEST_P(DemoTest, MixedBatches) {
  const engine::EngineStats stats = Answer({.n_slots = 6,
                                            .max_tokens_per_step = 48,
                                            .max_context = 1024,
                                            .n_pages = 24});
  EXPECT_GT(stats.n_steps, 0);
}

TEST_P(DemoTest, Speculative) {
  const engine::EngineStats stats = Answer({.n_slots = 4,
                                            .max_tokens_per_step = 64,
                                            .max_context = 1024,
                                            .n_draft_tokens = 1});
  ASSERT_GT(stats.n_drafts, 0);
  const double acceptance = static_cast<double>(stats.n_accepted) /
                            static_cast<double>(stats.n_drafts);
  std::printf("  %lld of %lld drafts right: %.4f (oracle %.4f)\n",
              static_cast<long long>(stats.n_accepted),
              static_cast<long long>(stats.n_drafts), acceptance,
              DemoSamples().mtp_acceptance);
  EXPECT_GE(acceptance, 0.99);
}

INSTANTIATE_TEST_SUITE_P(All, DemoTest, ::testing::ValuesIn(BackendNames()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace belay::test
