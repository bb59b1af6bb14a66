// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "toolkit/top/metrics.h"
#include "toolkit/top/view.h"

namespace belay::top {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(MetricsTest, LinesOfPrometheus) {
  const auto samples = ParseMetrics(
      "# HELP a text\n"
      "a 1.5\n"
      "b{x=\"}\\\" 9\",y=\"\"} 2 1700000000\n"
      "c{x=\"open 3\n"
      "d nan\n"
      "e\n"
      " 7\n"
      "f\t4\n");
  EXPECT_THAT(samples, SizeIs(3));
  EXPECT_EQ(samples.at("a"), 1.5);
  EXPECT_EQ(samples.at("b{x=\"}\\\" 9\",y=\"\"}"), 2);
  EXPECT_EQ(samples.at("f"), 4);
  EXPECT_THAT(ParseMetrics(std::string(2000, 'x') + " 1\n"), IsEmpty());
  std::string many;
  for (int i = 0; i < 20000; ++i) many += "m" + std::to_string(i) + " 1\n";
  EXPECT_THAT(ParseMetrics(many), SizeIs(10000));
}

TEST(MetricsTest, Engines) {
  const auto belay = EngineFrom(
      ParseMetrics("belay_requests_running 3\nbelay_requests_waiting 1\n"
                   "belay_cache_pages{state=\"used\"} 60\n"
                   "belay_cache_pages{state=\"cached\"} 30\n"
                   "belay_cache_pages{state=\"free\"} 10\n"
                   "belay_memory_guard{state=\"normal\"} 0\n"
                   "belay_memory_guard{state=\"small batch\"} 1\n"));
  ASSERT_TRUE(belay.has_value());
  EXPECT_EQ(belay->cache_use, 0.6);
  EXPECT_EQ(belay->cached, 0.3);
  EXPECT_TRUE(belay->guard_is_active);
  EXPECT_FALSE(belay->generated_tokens.has_value());
  const auto vllm =
      EngineFrom(ParseMetrics("vllm:num_requests_running{engine=\"0\"} 3.0\n"
                              "vllm:num_requests_running{engine=\"1\"} 4.0\n"
                              "vllm:num_requests_running_max 100\n"
                              "vllm:gpu_cache_usage_perc{engine=\"0\"} 0.2\n"
                              "vllm:gpu_cache_usage_perc{engine=\"1\"} 0.9\n"));
  ASSERT_TRUE(vllm.has_value());
  EXPECT_EQ(vllm->running, 7);
  EXPECT_EQ(vllm->cache_use, 0.9);
  const auto sglang = EngineFrom(
      ParseMetrics("sglang:num_running_reqs 2\nsglang:token_usage 0.5\n"));
  ASSERT_TRUE(sglang.has_value());
  EXPECT_EQ(sglang->cache_use, 0.5);
  EXPECT_FALSE(EngineFrom(ParseMetrics("process_cpu_seconds 1\n")));
}

Sample WithDevice(int64_t core, int64_t used) {
  Sample sample;
  doctor::SmiDevice device;
  device.npu = 3;
  device.name = "910B3";
  device.health = "OK";
  device.ai_core_percent = core;
  device.used_mb = used;
  device.total_mb = 65536;
  sample.smi.devices = {device};
  return sample;
}

TEST(ViewTest, TheRuleOfTheArticle) {
  const View limited = Look(nullptr, WithDevice(40, 64000));
  ASSERT_THAT(limited.notes, SizeIs(1));
  EXPECT_EQ(limited.notes[0].id, "HBM-006");
  EXPECT_EQ(limited.notes[0].npu, 3);
  EXPECT_THAT(Look(nullptr, WithDevice(60, 64000)).notes, IsEmpty());
  EXPECT_THAT(Look(nullptr, WithDevice(40, 62000)).notes, IsEmpty());  // 94 %
  EXPECT_THAT(Look(nullptr, WithDevice(-1, 64000)).notes, IsEmpty());
  // An engine takes its memory at the start; it knows better what is used.
  Sample busy = WithDevice(40, 64000);
  busy.engine = EngineState{};
  busy.engine->cache_use = 0.3;
  EXPECT_THAT(Look(nullptr, busy).notes, IsEmpty());
  busy.engine->cache_use = 0.97;
  EXPECT_THAT(Look(nullptr, busy).notes, IsEmpty());  // nobody waits
  busy.engine->waiting = 4;
  const View full = Look(nullptr, busy);
  ASSERT_THAT(full.notes, SizeIs(1));
  EXPECT_EQ(full.notes[0].npu, -1);
}

TEST(ViewTest, RatesAndHealth) {
  Sample before = WithDevice(90, 1000);
  before.time_s = 10;
  before.engine = EngineState{};
  before.engine->generated_tokens = 1000;
  Sample now = before;
  now.time_s = 12;
  now.engine->generated_tokens = 1500;
  EXPECT_EQ(Look(&before, now).generated_per_s, 250);
  EXPECT_FALSE(Look(nullptr, now).generated_per_s.has_value());
  now.engine->generated_tokens = 10;  // started anew
  EXPECT_FALSE(Look(&before, now).generated_per_s.has_value());
  now.smi.devices[0].health = "Alarm";
  ASSERT_THAT(Look(&before, now).notes, SizeIs(1));
  EXPECT_EQ(Look(&before, now).notes[0].id, "DOCT-014");
}

TEST(ViewTest, TextAndJson) {
  Sample sample = WithDevice(40, 64000);
  sample.smi.devices[0].name = "\x1b[2J\xff";
  sample.engine = EngineState{};
  sample.engine->kind = "belay";
  sample.engine->running = 3;
  const View view = Look(nullptr, sample);
  const std::string text = ViewToText(view, false, 100);
  EXPECT_THAT(text, HasSubstr("?[2J?"));
  EXPECT_THAT(text, HasSubstr("batch 3"));
  const std::string narrow = ViewToText(view, true, 20);
  for (size_t at = 0; at < narrow.size();) {
    const size_t end = narrow.find('\n', at);
    EXPECT_LE(end - at, 30u);  // 20 columns; 10 Chinese characters
    at = end + 1;
  }
  const auto json = ViewToJson(view);
  EXPECT_EQ(json["devices"][0]["memory_percent"], 97);
  EXPECT_TRUE(json["devices"][0]["power_w"].is_null());
  EXPECT_EQ(json["engine"]["running"], 3);
  EXPECT_TRUE(json["engine"]["tokens_per_s"].is_null());
  Sample none;
  none.trouble = "npu-smi: not found";
  EXPECT_THAT(ViewToText(Look(nullptr, none), false, 80),
              HasSubstr("no devices: npu-smi: not found"));
}

}  // namespace
}  // namespace belay::top
