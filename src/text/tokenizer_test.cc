// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <thread>

#include "nlohmann/json.hpp"
#include "text/bpe/byte_level.h"

namespace belay::text {
namespace {

using Json = nlohmann::json;
using Ids = std::vector<int32_t>;

constexpr char kData[] = "tests/data/tokenizer/";

std::shared_ptr<const Tokenizer> MustOpen(const std::string& name) {
  auto tokenizer = Tokenizer::Open(kData + name);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return tokenizer.ok() ? *std::move(tokenizer) : nullptr;
}

const Tokenizer& DeepSeek() {
  static const auto* const tokenizer =
      new std::shared_ptr<const Tokenizer>(MustOpen("deepseek_v3.json"));
  return **tokenizer;
}

// A list, or one JSON value a line.
std::vector<Json> ReadCases(const std::string& name) {
  std::ifstream file(kData + name);
  EXPECT_TRUE(file.good()) << name;
  std::vector<Json> cases;
  if (name.ends_with(".jsonl")) {
    for (std::string line; std::getline(file, line);) {
      cases.push_back(Json::parse(line));
    }
  } else {
    for (Json& one : Json::parse(file)) cases.push_back(std::move(one));
  }
  EXPECT_FALSE(cases.empty());
  return cases;
}

Ids MustEncode(const Tokenizer& tokenizer, std::string_view text,
               EncodeOptions options = {}) {
  auto ids = tokenizer.Encode(text, options);
  EXPECT_TRUE(ids.ok()) << ids.status();
  return ids.ok() ? *std::move(ids) : Ids{};
}

// A tokenizer of 256 bytes (id = byte), "he" 256, "hel" 257 and two added.
Json Small() {
  Json vocab = Json::object();
  for (int byte = 0; byte < 256; ++byte) {
    vocab[PieceOfBytes(std::string(1, static_cast<char>(byte)))] = byte;
  }
  vocab["he"] = 256;
  vocab["hel"] = 257;
  const auto added = [](int id, const char* content, bool special) {
    return Json{{"id", id},           {"content", content},
                {"special", special}, {"lstrip", false},
                {"rstrip", false},    {"single_word", false},
                {"normalized", false}};
  };
  return Json{
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", {added(300, "<s>", true), added(301, "<sep>", false)}},
      {"normalizer", nullptr},
      {"pre_tokenizer",
       {{"type", "ByteLevel"},
        {"add_prefix_space", false},
        {"use_regex", false}}},
      {"decoder", {{"type", "ByteLevel"}}},
      {"model",
       {{"type", "BPE"}, {"vocab", vocab}, {"merges", {"h e", "he l"}}}}};
}

StatusOr<std::shared_ptr<const Tokenizer>> Load(const Json& json) {
  return Tokenizer::FromJson(json.dump(), "small.json");
}

std::shared_ptr<const Tokenizer> MustLoad(const Json& json) {
  auto tokenizer = Load(json);
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status();
  return tokenizer.ok() ? *std::move(tokenizer) : nullptr;
}

TEST(TokenizerTest, GivesTheIdsOfTheRustTokenizer) {
  for (const char* name : {"cases.jsonl", "base_vocab_cases.json"}) {
    for (const Json& one : ReadCases(name)) {
      const auto text = one["text"].get<std::string>();
      const Ids ids = MustEncode(DeepSeek(), text);
      EXPECT_EQ(ids, one["ids"].get<Ids>()) << text;
      EXPECT_EQ(DeepSeek().Decode(ids), text);
    }
  }
}

TEST(TokenizerTest, GivesTheIdsOfTheDemoPrompts) {
  const auto tokenizer = MustOpen("demo.json");
  ASSERT_NE(tokenizer, nullptr);
  for (const Json& one : ReadCases("demo_prompts.json")) {
    const auto text = one["prompt_text"].get<std::string>();
    const Ids ids = MustEncode(*tokenizer, text);
    EXPECT_EQ(ids, one["prompt_ids"].get<Ids>()) << text;
    EXPECT_EQ(tokenizer->Decode(ids), text);
  }
}

TEST(TokenizerTest, KnowsPiecesAndIds) {
  const Tokenizer& tokenizer = DeepSeek();
  EXPECT_EQ(tokenizer.vocab_size(), 128815);
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    ASSERT_TRUE(tokenizer.Contains(id));
    ASSERT_EQ(tokenizer.IdOf(*tokenizer.PieceOf(id)), id);
  }
  EXPECT_EQ(tokenizer.IdOf("\u0120the"), 270);
  EXPECT_EQ(tokenizer.BytesOf(270), " the");
  EXPECT_EQ(tokenizer.IdOf("<\uFF5CUser\uFF5C>"), 128803);
  EXPECT_EQ(tokenizer.IdOf("no such piece"), std::nullopt);
  EXPECT_EQ(tokenizer.PieceOf(128815), std::nullopt);
  EXPECT_EQ(tokenizer.PieceOf(-1), std::nullopt);
  EXPECT_TRUE(tokenizer.IsSpecial(0));
  EXPECT_FALSE(tokenizer.IsSpecial(128803));
  EXPECT_FALSE(tokenizer.IsSpecial(1 << 30));
}

TEST(TokenizerTest, SpecialTokensAreFoundOrNot) {
  const auto tokenizer = MustLoad(Small());
  const std::string text = "h<s><sep>";
  EXPECT_EQ(MustEncode(*tokenizer, text), (Ids{'h', 300, 301}));
  EXPECT_EQ(MustEncode(*tokenizer, text, {.parse_special = false}),
            (Ids{'h', '<', 's', '>', 301}));
  EXPECT_EQ(tokenizer->Decode(Ids{'h', 300, 301}), text);
  EXPECT_EQ(tokenizer->Decode(Ids{'h', 300, 301}, {.skip_special = true}),
            "h<sep>");
  // Ids that nobody knows give nothing.
  EXPECT_EQ(tokenizer->Decode(Ids{'h', 299, -5, 1 << 30, 'i'}), "hi");
}

TEST(TokenizerTest, FlagsOfAddedTokens) {
  Json json = Small();
  json["added_tokens"][0]["lstrip"] = true;
  json["added_tokens"][0]["rstrip"] = true;
  json["added_tokens"][1]["single_word"] = true;
  const auto tokenizer = MustLoad(json);
  EXPECT_EQ(MustEncode(*tokenizer, "a \u3000<s>\n b"), (Ids{'a', 300, 'b'}));
  EXPECT_EQ(MustEncode(*tokenizer, ".<sep>."), (Ids{'.', 301, '.'}));
  EXPECT_EQ(MustEncode(*tokenizer, "a<sep>."),
            (Ids{'a', '<', 's', 'e', 'p', '>', '.'}));
  EXPECT_EQ(MustEncode(*tokenizer, ".<sep>_"),
            (Ids{'.', '<', 's', 'e', 'p', '>', '_'}));
}

TEST(TokenizerTest, NormalizedTokensAreFoundAfterTheOthers) {
  Json json = Small();
  json["added_tokens"][0]["content"] = "ab";
  json["added_tokens"][0]["normalized"] = true;
  json["added_tokens"][1]["content"] = "bc";
  const auto tokenizer = MustLoad(json);
  EXPECT_EQ(MustEncode(*tokenizer, "abcab"), (Ids{'a', 301, 300}));
  json["added_tokens"][1]["content"] = "abc";  // the longest wins
  json["added_tokens"][1]["normalized"] = true;
  EXPECT_EQ(MustEncode(*MustLoad(json), "abcab"), (Ids{301, 300}));
}

TEST(TokenizerTest, BothSpellingsOfMerges) {
  Json json = Small();
  EXPECT_EQ(MustEncode(*MustLoad(json), "hell"), (Ids{257, 'l'}));
  json["model"]["merges"] = Json::parse(R"([["h", "e"], ["he", "l"]])");
  EXPECT_EQ(MustEncode(*MustLoad(json), "hell"), (Ids{257, 'l'}));
  json["model"]["merges"] = Json::array();
  EXPECT_EQ(MustEncode(*MustLoad(json), "hel"), (Ids{'h', 'e', 'l'}));
  json["model"]["ignore_merges"] = true;
  EXPECT_EQ(MustEncode(*MustLoad(json), "hel"), (Ids{257}));
}

TEST(TokenizerTest, InvalidUtf8IsReadAsReplacementCharacters) {
  for (const std::string_view text : {"\xFF", "a\xE4\xB8", "\xED\xA0\x80z",
                                      "\xF0\x9F\x98", "\x80 \xC0\xAF"}) {
    const Ids ids = MustEncode(DeepSeek(), text);
    const std::string decoded = DeepSeek().Decode(ids);
    EXPECT_EQ(MustEncode(DeepSeek(), decoded), ids);
    EXPECT_NE(decoded.find("\uFFFD"), std::string::npos);
  }
  EXPECT_EQ(DeepSeek().Decode(MustEncode(DeepSeek(), "a\xE4\xB8z")),
            "a\uFFFDz");
}

TEST(TokenizerTest, NothingGivesNothing) {
  EXPECT_EQ(MustEncode(DeepSeek(), ""), Ids{});
  EXPECT_EQ(DeepSeek().Decode(Ids{}), "");
}

TEST(TokenizerTest, ManyThreadsUseOneTokenizer) {
  const std::string text = "Thread \u7EBF\u7A0B 12345 <\uFF5CUser\uFF5C>!";
  const Ids expected = MustEncode(DeepSeek(), text);
  std::vector<std::thread> threads;
  std::vector<int> n_equal(4);
  for (int& n : n_equal) {
    threads.emplace_back([&n, &text, &expected] {
      for (int i = 0; i < 200; ++i) {
        const auto ids = DeepSeek().Encode(text);
        n += ids.ok() && *ids == expected && DeepSeek().Decode(*ids) == text;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(n_equal, std::vector<int>(4, 200));
}

struct Refusal {
  const char* name;
  const char* pointer;  // RFC 6901
  Json value;
  const char* id;
};

TEST(TokenizerTest, RefusesWithTheReason) {
  const Json unigram = {{"type", "Sequence"},
                        {"normalizers", {{"type", "NFC"}}}};
  const Json split = {{"type", "Split"},
                      {"pattern", {{"Regex", "a"}}},
                      {"behavior", "Removed"},
                      {"invert", false}};
  const Json byte_level = Small()["pre_tokenizer"];
  Json isolated = split;
  isolated["behavior"] = "Isolated";
  Json inverted = isolated;
  inverted["invert"] = true;
  Json literal = isolated;
  literal["pattern"] = {{"String", "a"}};
  Json word = isolated;
  word["pattern"] = {{"Regex", R"(\w+)"}};
  const auto sequence = [&](const Json& first, const Json& second) {
    return Json{{"type", "Sequence"}, {"pretokenizers", {first, second}}};
  };
  Json twice = Small()["added_tokens"];
  twice[1]["id"] = 300;
  const Refusal refusals[] = {
      {"truncation", "/truncation", {{"max_length", 5}}, "TOK-003"},
      {"padding", "/padding", {{"strategy", "BatchLongest"}}, "TOK-003"},
      {"normalizer", "/normalizer", unigram, "TOK-003"},
      {"decoder", "/decoder/type", "Metaspace", "TOK-003"},
      {"no decoder", "/decoder", nullptr, "TOK-003"},
      {"prefix space", "/pre_tokenizer/add_prefix_space", true, "TOK-003"},
      {"GPT-2's regex", "/pre_tokenizer/use_regex", true, "TOK-003"},
      {"no pre-tokenizer", "/pre_tokenizer", nullptr, "TOK-003"},
      {"removed", "/pre_tokenizer", sequence(split, byte_level), "TOK-003"},
      {"inverted", "/pre_tokenizer", sequence(inverted, byte_level), "TOK-003"},
      {"literal", "/pre_tokenizer", sequence(literal, byte_level), "TOK-003"},
      {"order", "/pre_tokenizer", sequence(byte_level, isolated), "TOK-003"},
      {"pattern", "/pre_tokenizer", sequence(word, byte_level), "TOK-005"},
      {"model", "/model/type", "Unigram", "TOK-003"},
      {"dropout", "/model/dropout", 0.1, "TOK-003"},
      {"unknown token", "/model/unk_token", "<unk>", "TOK-003"},
      {"suffix", "/model/end_of_word_suffix", "</w>", "TOK-003"},
      {"byte fallback", "/model/byte_fallback", true, "TOK-003"},
      {"flag", "/model/ignore_merges", 1, "TOK-002"},
      {"vocabulary", "/model/vocab", "x", "TOK-002"},
      {"id", "/model/vocab/a", "x", "TOK-002"},
      {"negative id", "/model/vocab/a", -1, "TOK-002"},
      {"same id", "/model/vocab/a", 98, "TOK-004"},
      {"huge id", "/model/vocab/a", 1u << 31, "TOK-004"},
      {"merges", "/model/merges", 5, "TOK-002"},
      {"merge of three", "/model/merges/0", "h e l", "TOK-002"},
      {"list of three", "/model/merges/0", {"h", "e", "l"}, "TOK-002"},
      {"number as merge", "/model/merges/0", 7, "TOK-002"},
      {"merge of nothing", "/model/merges/0", "q q", "TOK-004"},
      {"unknown part", "/model/merges/0", "qq q", "TOK-004"},
      {"added tokens", "/added_tokens", 5, "TOK-002"},
      {"added id", "/added_tokens/0/id", -3, "TOK-002"},
      {"added text", "/added_tokens/0/content", 3, "TOK-002"},
      {"taken id", "/added_tokens/0/id", 5, "TOK-004"},
      {"id twice", "/added_tokens", twice, "TOK-004"},
      {"text twice", "/added_tokens/0/content", "<sep>", "TOK-004"},
      {"other id", "/added_tokens/0/content", "hel", "TOK-004"},
  };
  ASSERT_TRUE(Load(Small()).ok());
  for (const Refusal& refusal : refusals) {
    Json json = Small();
    json[Json::json_pointer(refusal.pointer)] = refusal.value;
    const auto tokenizer = Load(json);
    ASSERT_FALSE(tokenizer.ok()) << refusal.name;
    EXPECT_EQ(ErrorIdOf(tokenizer.status()), refusal.id)
        << refusal.name << ": " << tokenizer.status();
    EXPECT_NE(ErrorFactsOf(tokenizer.status()).where.find("small.json"),
              std::string::npos);
  }
}

TEST(TokenizerTest, RefusesWhatIsNotJson) {
  for (const std::string_view json :
       {"", "{", "[1,2", "{\"model\":}", "{} {}", "{\"a\":1e999}", "\xFF"}) {
    const auto tokenizer = Tokenizer::FromJson(json, "x");
    EXPECT_EQ(ErrorIdOf(tokenizer.status()), "TOK-001") << json;
  }
  const std::string deep(1000, '[');
  EXPECT_EQ(ErrorIdOf(Tokenizer::FromJson(deep, "x").status()), "TOK-002");
  EXPECT_EQ(ErrorIdOf(Tokenizer::FromJson("[]", "x").status()), "TOK-002");
  EXPECT_EQ(ErrorIdOf(Tokenizer::Open("no/such/file").status()), "SYS-001");
}

// Of this process: the wall clock says little on a machine that is busy.
double CpuSecondsToEncode(const std::string& text) {
  const std::clock_t start = std::clock();
  EXPECT_TRUE(DeepSeek().Encode(text).ok());
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

// Ten times the text may not take thirty times as long (time that grows with
// the square would take a hundred times), however the text is made. A busy
// machine takes CPU time too, by its caches, so the best run of each length
// counts, and only a text that is slow in all runs fails. More kinds of text
// are in tests/e2e/tokenizer_diff.
TEST(TokenizerTest, TimeGrowsWithTheText) {
  constexpr double kLimit = 30;
  constexpr int kMaxRuns = 10;
  for (const std::string unit : {" ", "a", "\u4E2D", "<\uFF5C"}) {
    const auto text = [&unit](size_t n_bytes) {
      std::string repeated;
      while (repeated.size() < n_bytes) repeated += unit;
      return repeated + "x";
    };
    const std::string small = text(50'000);
    const std::string large = text(500'000);
    double small_s = 1e9;
    double large_s = 1e9;
    for (int run = 0; run < kMaxRuns; ++run) {
      small_s = std::min(small_s, CpuSecondsToEncode(small));
      large_s = std::min(large_s, CpuSecondsToEncode(large));
      if (run > 0 && large_s < kLimit * small_s) break;
    }
    EXPECT_LT(large_s, kLimit * small_s) << "of: " << unit;
  }
}

}  // namespace
}  // namespace belay::text
