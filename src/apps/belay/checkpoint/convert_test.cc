// SPDX-License-Identifier: Apache-2.0
// The demo checkpoint as a GGUF file, through the command line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "apps/belay/model/gguf_tokenizer.h"
#include "apps/belay/shell/cli.h"
#include "checkpoint/gguf/writer.h"
#include "text/tokenizer.h"

namespace belay::apps {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using testing::HasSubstr;

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

class ConvertTest : public testing::Test {
 protected:
  void SetUp() override {
    file_ = (fs::path(testing::TempDir()) /
             ("belay_convert_" +
              std::to_string(reinterpret_cast<uintptr_t>(this)) + ".gguf"))
                .string();
  }
  void TearDown() override { fs::remove(file_); }

  std::string file_;
};

TEST_F(ConvertTest, TheDemoBecomesAFileWithItsTokenizer) {
  const Result made =
      Belay({"convert", "data/demo", "--to", "gguf", "--out", file_, "--json"});
  ASSERT_EQ(made.code, 0) << made.err;
  EXPECT_EQ(json::parse(made.out)["verified"], true);

  const Result seen = Belay({"inspect", file_, "--json"});
  ASSERT_EQ(seen.code, 0) << seen.err;
  const json inspected = json::parse(seen.out);
  EXPECT_EQ(inspected["tokenizer"], "joyai-llm");
  EXPECT_TRUE(inspected["unknown"].empty());
  EXPECT_TRUE(inspected["tensors"]["by_type"].contains("MXFP4"));

  const auto from_file = OpenGgufTokenizer(file_);
  ASSERT_TRUE(from_file.ok()) << from_file.status();
  const auto original = text::Tokenizer::Open("data/demo");
  ASSERT_TRUE(original.ok());
  for (const char* text :
       {"The sea rises; 1234567 waves, don't they?", "你好，世界 — ñandú\n\n x",
        "<｜User｜>hi<｜Assistant｜></think>"}) {
    EXPECT_EQ(*(*from_file)->Encode(text), *(*original)->Encode(text)) << text;
  }
}

TEST_F(ConvertTest, WhatIsNoGgufFileIsRefused) {
  std::ofstream(file_) << "version https://git-lfs.github.com/spec/v1\n";
  const Result seen = Belay({"inspect", file_});
  EXPECT_EQ(seen.code, 3);
  EXPECT_THAT(seen.err, HasSubstr("GGUF-001"));
}

TEST_F(ConvertTest, OtherTokenizersAreRefusedWithTheReason) {
  const auto error = [&](const char* model, const char* pre, int32_t type) {
    checkpoint::gguf::HeaderBuilder h;
    h.AddText("tokenizer.ggml.model", model);
    h.AddText("tokenizer.ggml.pre", pre);
    h.AddTexts("tokenizer.ggml.tokens",
               std::vector<std::string>{"a", "b", "ab"});
    h.AddI32s("tokenizer.ggml.token_type", std::vector<int32_t>{1, 1, type});
    h.AddTexts("tokenizer.ggml.merges", std::vector<std::string>{"a b"});
    std::ofstream(file_, std::ios::binary) << h.Text();
    const auto tokenizer = OpenGgufTokenizer(file_);
    return tokenizer.ok() ? "" : ErrorIdOf(tokenizer.status());
  };
  // The right kinds get as far as the vocabulary, which lacks most bytes.
  EXPECT_EQ(error("gpt2", "joyai-llm", 1), "TOK-004");
  EXPECT_EQ(error("gpt2", "deepseek-v3", 1), "TOK-004");
  EXPECT_EQ(error("llama", "joyai-llm", 1), "GGUF-005");
  EXPECT_EQ(error("gpt2", "qwen2", 1), "GGUF-005");
  EXPECT_EQ(error("gpt2", "joyai-llm", 6), "GGUF-005");
}

}  // namespace
}  // namespace belay::apps
