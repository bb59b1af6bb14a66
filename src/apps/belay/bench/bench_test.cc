// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "apps/belay/bench/chart.h"
#include "apps/belay/bench/measure.h"
#include "apps/belay/bench/report.h"
#include "apps/belay/shell/cli.h"
#include "base/file.h"

namespace belay::apps {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(BenchSpread, IsMedianAndRange) {
  const Spread odd = SpreadOf({3, 1, 10});
  EXPECT_EQ(odd.median, 3);
  EXPECT_EQ(odd.min, 1);
  EXPECT_EQ(odd.max, 10);
  EXPECT_EQ(SpreadOf({4, 1, 2, 100}).median, 3);
  EXPECT_EQ(SpreadOf({7}).median, 7);
}

BenchSubject Subject() {
  return {.model = "a,\"b\" & <c>",
          .dtype = "fp8+fp4",
          .backend = "cpu",
          .numerics = "official",
          .simd_target = "AVX2",
          .threads = 2,
          .weight_bytes = 3 << 20,
          .load_seconds = 0.5};
}

BenchResult Result(BenchCase what, double rate) {
  BenchResult r;
  r.what = what;
  r.tokens_per_second = {rate, rate - 1, rate + 2};
  r.bandwidth = {30, 29, 31};
  r.share = {0.5, 0.4, 0.6};
  r.bytes_per_step = 1000;
  r.flops_per_token = 2e9;
  return r;
}

std::vector<BenchResult> Results() {
  return {Result({.prefill = true, .n_tokens = 512}, 400),
          Result({.context = 0, .batch = 1}, 40),
          Result({.context = 4096, .batch = 1}, 36),
          Result({.context = 0, .batch = 8}, 120)};
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(BenchReport, TableHasARowForEachResult) {
  EXPECT_EQ(Lines(TableHead(Subject(), "threads")).size(), 2u);
  const std::string row = TableRow(Results()[2]);
  for (const char* part :
       {"decode", "4096", "36.0", "35.0 - 38.0", "30.0", "50.0 %", "72.0"}) {
    EXPECT_THAT(row, HasSubstr(part));
  }
  EXPECT_THAT(TableRow(Results()[0]), StartsWith("prefill "));
}

TEST(BenchReport, CsvQuotesWhatNeedsIt) {
  const auto lines = Lines(ToCsv(Subject(), Results()));
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_THAT(lines[0], StartsWith("model,dtype,simd_target,threads,test,"));
  EXPECT_THAT(
      lines[3],
      StartsWith("\"a,\"\"b\"\" & <c>\",fp8+fp4,AVX2,2,decode,4096,1,32,"
                 "5,36.000,35.000,38.000,30.000,0.5000,1000,"));
}

TEST(BenchReport, JsonHoldsTheSame) {
  const auto json = ToJson(Subject(), Results());
  EXPECT_EQ(json["threads"], 2);
  EXPECT_EQ(json["simd_target"], "AVX2");
  ASSERT_EQ(json["results"].size(), 4u);
  EXPECT_EQ(json["results"][0]["test"], "prefill");
  EXPECT_EQ(json["results"][3]["tokens_per_second"]["max"], 122);
}

TEST(BenchReport, HtmlIsAPageOfItsOwn) {
  const std::string html = ToHtml(Subject(), Results());
  EXPECT_THAT(html, HasSubstr("a,&quot;b&quot; &amp; &lt;c&gt;"));
  EXPECT_THAT(html, HasSubstr("Decode over context"));
  EXPECT_THAT(html, HasSubstr("Decode over batch"));
  // One length of prompt is no curve.
  EXPECT_THAT(html, Not(HasSubstr("<h2>Prefill")));
  for (const char* outside : {"http:", "https:", "src=", "@import", "url("}) {
    EXPECT_THAT(html, Not(HasSubstr(outside)));
  }
}

TEST(BenchChart, PutsPointsWhereTheyBelong) {
  EXPECT_EQ(ToSvg({"t", "x", "y", {{"one", {{1, 2, 2, 2}}}}}), "");
  const std::string svg =
      ToSvg({"t", "x", "y", {{"", {{0, 50, 40, 60}, {4, 100, 100, 100}}}}});
  // 100 is the highest tick (y = 12), 50 half way down to 256; 0 and 4 are the
  // left and right ends.
  EXPECT_THAT(svg, HasSubstr("d=\"M64.0 134.0 L590.0 12.0\""));
  EXPECT_THAT(svg, HasSubstr("<title>0: 50.0 (40.0 - 60.0)</title>"));
}

TEST(BenchChart, TicksAreRoundAndReachTheTop) {
  for (const double most : {0.3, 1.0, 7.0, 99.0, 100.0, 101.0, 12345.0}) {
    const std::vector<double> ticks = TicksTo(most);
    EXPECT_LE(ticks.size(), 7u) << most;
    EXPECT_GE(ticks.back(), most);
    EXPECT_LE(ticks.back(), 2.5 * most);
    const double digits =
        ticks[1] / std::pow(10, std::floor(std::log10(ticks[1]) + 1e-9));
    EXPECT_THAT(std::round(digits * 10) / 10, ::testing::AnyOf(1.0, 2.0, 5.0))
        << most;
  }
}

struct Ran {
  int code;
  std::string out;
  std::string err;
};

Ran Bench(std::vector<std::string> args) {
  args.insert(args.begin(), "bench");
  std::ostringstream out;
  std::ostringstream err;
  const int code = RunBelay(args, {.out = out, .err = err});
  return {code, out.str(), err.str()};
}

TEST(BenchCommand, RefusesCountsThatAreNone) {
  for (const std::vector<std::string>& options :
       std::vector<std::vector<std::string>>{{"--prefill", "-1"},
                                             {"--context", "-1"},
                                             {"--batch", "0"},
                                             {"--steps", "0"},
                                             {"--repetitions", "0"},
                                             {"--prefill", "8,2000000"}}) {
    std::vector<std::string> args = {"--model", "data/demo"};
    args.insert(args.end(), options.begin(), options.end());
    const Ran ran = Bench(args);
    EXPECT_EQ(ran.code, 2) << options[0];
    EXPECT_THAT(ran.err, HasSubstr("ARG-001")) << options[0];
    EXPECT_THAT(ran.err, HasSubstr(options[0]));
  }
  const Ran target = Bench({"--model", "data/demo", "--simd-target", "sse9"});
  EXPECT_EQ(target.code, 2);
  EXPECT_THAT(target.err, HasSubstr("ARG-009"));
}

TEST(BenchCommand, MeasuresTheDemo) {
  const std::string folder = ::testing::TempDir();
  const std::string csv = folder + "/bench.csv";
  const std::string html = folder + "/bench.html";
  const std::string tokens = folder + "/bench_tokens.json";
  ASSERT_TRUE(WriteFileAtomically(tokens, "[5, 6, 7]").ok());
  const Ran ran = Bench({"--model",   "data/demo", "--prefill",     "8",
                         "--context", "0,9",       "--batch",       "1,2",
                         "--steps",   "2",         "--repetitions", "2",
                         "--threads", "1",         "--tokens-file", tokens,
                         "--csv",     csv,         "--out",         html,
                         "--json"});
  ASSERT_EQ(ran.code, 0) << ran.err;
  const auto json = nlohmann::json::parse(ran.out);
  ASSERT_EQ(json["results"].size(), 5u);
  for (const auto& result : json["results"]) {
    EXPECT_GT(result["tokens_per_second"]["min"], 0);
    EXPECT_LE(result["tokens_per_second"]["min"],
              result["tokens_per_second"]["median"]);
    EXPECT_GT(result["bandwidth_gb_per_second"]["median"], 0);
  }
  EXPECT_EQ(Lines(ReadFile(csv).value()).size(), 6u);
  EXPECT_THAT(ReadFile(html).value(), HasSubstr("<svg"));
  for (const std::string& file : {csv, html, tokens}) {
    std::filesystem::remove(file);
  }
}

TEST(BenchCommand, RefusesTokensOfAnotherModel) {
  const std::string tokens = ::testing::TempDir() + "/bench_bad_tokens.json";
  ASSERT_TRUE(WriteFileAtomically(tokens, "[5, 99999999]").ok());
  const Ran ran = Bench({"--model", "data/demo", "--tokens-file", tokens});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("ARG-003"));
  std::filesystem::remove(tokens);
}

}  // namespace
}  // namespace belay::apps
