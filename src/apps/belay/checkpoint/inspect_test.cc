// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/belay/shell/cli.h"

namespace belay::apps {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

struct Result {
  int code;
  std::string out;
  std::string err;
};

Result Belay(std::vector<std::string> args) {
  std::ostringstream out, err;
  const int code = RunBelay(std::move(args), {.out = out, .err = err});
  return {code, out.str(), err.str()};
}

class ModelCommandTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ =
        (fs::path(testing::TempDir()) /
         ("belay_inspect_" + std::to_string(reinterpret_cast<uintptr_t>(this))))
            .string();
    fs::remove_all(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  Result Make(std::vector<std::string> more = {}) {
    std::vector<std::string> args = {"make-model", "--preset", "golden-base",
                                     "--seed",     "3",        "--vocab",
                                     "512",        "--out",    folder_};
    args.insert(args.end(), more.begin(), more.end());
    return Belay(args);
  }
  std::string folder_;
};

TEST(InspectTest, APresetNeedsNoFiles) {
  const Result result = Belay({"inspect", "--preset", "flash", "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  const json j = json::parse(result.out);
  EXPECT_EQ(j["tensors"]["tensors"], 69187);
  EXPECT_EQ(j["tensors"]["bytes"], 159609485896);
  EXPECT_EQ(j["tensors"]["by_dtype"]["I8"]["tensors"], 33792);
  EXPECT_EQ(j["layers"]["csa"], 21);
  EXPECT_EQ(j["layers"]["hca"], 20);
  EXPECT_EQ(j["layers"]["sliding"], 2);
  EXPECT_EQ(j["config"]["hidden_size"], 4096);
  EXPECT_EQ(j["parameters"]["total"].get<int64_t>() / 1000000000, 284);
  EXPECT_EQ(j["cache"]["kv_row_bytes"], 583);
  EXPECT_EQ(j["files"], 0);
  const std::string text = Belay({"inspect", "--preset", "flash"}).out;
  EXPECT_THAT(text, HasSubstr("284.3 B"));
  EXPECT_THAT(text, HasSubstr("159.6 GB"));
  EXPECT_THAT(Belay({"inspect", "--preset", "flash", "--lang", "zh"}).out,
              HasSubstr("参数"));
}

TEST(InspectTest, Usage) {
  EXPECT_EQ(Belay({"inspect"}).code, 2);
  EXPECT_EQ(Belay({"inspect", "x", "--preset", "flash"}).code, 2);
  const Result preset = Belay({"inspect", "--preset", "huge"});
  EXPECT_EQ(preset.code, 2);
  EXPECT_THAT(preset.err, HasSubstr("flash-slice"));
  const Result missing = Belay({"inspect", "/no/such/folder"});
  EXPECT_EQ(missing.code, 3);
  EXPECT_THAT(missing.err, StartsWith("error CKPT-014: "));
}

TEST_F(ModelCommandTest, MakesAndInspectsACheckpoint) {
  const Result made = Make({"--json"});
  ASSERT_EQ(made.code, 0) << made.err;
  const json m = json::parse(made.out);
  EXPECT_EQ(m["verified"], true);
  const Result result = Belay({"inspect", folder_, "--strict", "--json"});
  ASSERT_EQ(result.code, 0) << result.err;
  const json j = json::parse(result.out);
  EXPECT_EQ(j["tensors"]["tensors"], m["tensors"]);
  EXPECT_EQ(j["tensors"]["bytes"], m["bytes"]);
  EXPECT_EQ(j["config"]["vocab_size"], 512);
  EXPECT_EQ(j["files"], 1);
  EXPECT_EQ(j["unknown"].size(), 0u);
  // Nothing is written over.
  EXPECT_EQ(Make().code, 2);
}

TEST_F(ModelCommandTest, ErrorsCarryIds) {
  EXPECT_THAT(Make({"--threads", "0"}).err, StartsWith("error ARG-002: "));
  EXPECT_THAT(Make({"--shard-gib", "0"}).err, StartsWith("error ARG-001: "));
  EXPECT_THAT(Belay({"make-model", "--preset", "tiny", "--vocab", "1", "--out",
                     folder_})
                  .err,
              StartsWith("error CONF-003: "));
  EXPECT_THAT(
      Belay({"make-model", "--preset", "tiny", "--out", "/proc/no/such/place"})
          .err,
      StartsWith("error SYS-002: "));
  ASSERT_EQ(Make().code, 0);
  fs::resize_file(folder_ + "/model.safetensors", 100000);
  const Result truncated = Belay({"inspect", folder_});
  EXPECT_EQ(truncated.code, 3);
  EXPECT_THAT(truncated.err, StartsWith("error CKPT-001: "));
}

}  // namespace
}  // namespace belay::apps
