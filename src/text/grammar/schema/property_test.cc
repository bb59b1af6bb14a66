// SPDX-License-Identifier: Apache-2.0
// Random schemas, random walks: whatever the mask allows must parse and be
// valid, and no walk may come to a dead end.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "text/grammar/schema/schema.h"
#include "text/grammar/schema/validator_test.h"
#include "text/grammar/token_masks.h"
#include "text/grammar/walk_test.h"
#include "text/tokenizer.h"

namespace belay::text {
namespace {

using Json = nlohmann::json;

class SchemaMaker {
 public:
  explicit SchemaMaker(Dice& dice) : dice_(dice) {}

  Json Make() {
    Json document = Schema(3);
    document["$defs"]["node"] = Object(1);
    return document;
  }

 private:
  Json Schema(int depth) {
    switch (dice_.Below(depth > 0 ? 11 : 6)) {
      case 0:
        return {{"type", dice_.Chance(50) ? "boolean" : "null"}};
      case 1:
      case 2:
        return Number();
      case 3:
      case 4:
        return String();
      case 5:
        return Json{{"enum", Json::array({"a", "ab", 1, nullptr, "\"q\\"})}};
      case 6:
        return Array(depth);
      case 7:
      case 8:
        return Object(depth);
      case 9:
        return {{"anyOf", {Schema(depth - 1), Schema(depth - 1)}}};
      default:
        return {{"$ref", "#/$defs/node"}};
    }
  }

  Json Number() {
    Json out = {{"type", dice_.Chance(50) ? "integer" : "number"}};
    const double low = static_cast<double>(dice_.Below(4000)) / 8 - 250;
    const char* lows[] = {"minimum", "exclusiveMinimum"};
    const char* highs[] = {"maximum", "exclusiveMaximum"};
    if (dice_.Chance(50)) out[lows[dice_.Below(2)]] = low;
    if (dice_.Chance(50)) {
      out[highs[dice_.Below(2)]] =
          low + 2 + static_cast<double>(dice_.Below(1000)) / 4;
    }
    return out;
  }

  Json String() {
    Json out = {{"type", "string"}};
    const char* patterns[] = {"^[a-c]{2,5}$", "^(x|yy)*$", "z", "^\\d+$",
                              "^[A-Z]?b"};
    if (dice_.Chance(30)) {
      out["pattern"] = patterns[dice_.Below(5)];
      return out;
    }
    const size_t min = dice_.Below(4);
    if (dice_.Chance(50)) out["minLength"] = min;
    if (dice_.Chance(50)) out["maxLength"] = min + dice_.Below(6);
    return out;
  }

  Json Array(int depth) {
    Json out = {{"type", "array"}};
    const size_t min = dice_.Below(3);
    if (dice_.Chance(70)) out["items"] = Schema(depth - 1);
    if (dice_.Chance(30)) out["prefixItems"] = {Schema(0), Schema(0)};
    if (dice_.Chance(50)) out["minItems"] = min;
    if (dice_.Chance(50)) out["maxItems"] = min + dice_.Below(3);
    return out;
  }

  Json Object(int depth) {
    Json out = {{"type", "object"}};
    const char* names[] = {"a", "ab", "b\"", "\xe4\xb8\xad", "\n", "abc"};
    Json required = Json::array();
    for (const char* name : names) {
      if (!dice_.Chance(50)) continue;
      out["properties"][name] = Schema(depth - 1);
      if (dice_.Chance(40)) required.push_back(name);
    }
    if (!required.empty()) out["required"] = required;
    if (dice_.Chance(70)) {
      out["additionalProperties"] = dice_.Chance(60) ? Json(false) : Schema(0);
    }
    return out;
  }

  Dice& dice_;
};

TEST(GrammarPropertyTest, EveryAllowedTextIsValid) {
  int n_complete = 0;
  int n_compiled = 0;
  for (uint64_t seed = 0; seed < 150; ++seed) {
    Dice dice(seed);
    const Json schema = SchemaMaker(dice).Make();
    const auto parsed = ParseJson(schema.dump());
    ASSERT_TRUE(parsed.ok());
    const auto grammar = CompileJsonSchema(*parsed);
    if (!grammar.ok()) {  // random bounds and recursion may contradict
      ASSERT_EQ(ErrorIdOf(grammar.status()), "GRAM-004")
          << schema << grammar.status();
      continue;
    }
    ++n_compiled;
    Automaton automaton(*grammar);
    for (int i = 0; i < 6; ++i) {
      const WalkResult walk = WalkBytes(automaton, dice, dice.Below(120));
      ASSERT_FALSE(walk.dead_end) << schema << "\n" << walk.text;
      if (!walk.complete) continue;
      ++n_complete;
      const Json value = Json::parse(walk.text, nullptr, false);
      ASSERT_FALSE(value.is_discarded()) << schema << "\n" << walk.text;
      ASSERT_TRUE(Validator(schema).IsValid(value)) << schema << "\n"
                                                    << walk.text;
    }
  }
  EXPECT_GT(n_compiled, 120);
  EXPECT_GT(n_complete, 500);
}

class TokenMaskTest : public testing::Test {
 protected:
  static std::shared_ptr<const TokenTrie> Trie() {
    static const auto trie = [] {
      const auto tokenizer = Tokenizer::Open("data/demo/tokenizer.json");
      BELAY_CHECK(tokenizer.ok());
      const MarkerToken dsml = {
          "\xef\xbd\x9c"
          "DSML"
          "\xef\xbd\x9c",
          0};
      auto made = TokenTrie::Create(**tokenizer, std::span(&dsml, 1));
      BELAY_CHECK(made.ok());
      return *made;
    }();
    return trie;
  }
};

TEST_F(TokenMaskTest, TheTreeHoldsEveryTokenOnce) {
  const auto trie = Trie();
  std::vector<int> seen(static_cast<size_t>(trie->vocab_size()));
  std::string path;
  for (const TokenTrie::Node& node : trie->nodes()) {
    path.resize(node.depth);
    path += static_cast<char>(node.byte);
    for (int32_t t = node.token; t >= 0; t = trie->NextSame(t)) {
      ++seen[static_cast<size_t>(t)];
      EXPECT_EQ(trie->BytesOf(t), path);
    }
  }
  for (int32_t t = 0; t < trie->vocab_size(); ++t) {
    EXPECT_EQ(seen[static_cast<size_t>(t)], trie->BytesOf(t).empty() ? 0 : 1);
  }
}

TEST_F(TokenMaskTest, OnlyTheMarkersTokenSpellsAMarker) {
  const auto tools = ParseJson(R"([{"name":"f"}])");
  const auto grammar = CompileToolCalls(tools->items, {});
  ASSERT_TRUE(grammar.ok());
  auto masks = std::make_shared<TokenMasks>(*grammar, Trie());
  TokenMatcher matcher(masks);
  ASSERT_TRUE(matcher.AcceptBytes("\n\n<"));
  const auto allowed = AllowedTokens(matcher, masks->n_words());
  ASSERT_EQ(allowed.size(), 1u);
  EXPECT_EQ(Trie()->BytesOf(allowed[0]), std::string_view("\xff\0", 2));
}

// The mask against the definition: each token by itself.
TEST_F(TokenMaskTest, IsExactlyTheTokensThatGoOn) {
  const auto schema = ParseJson(R"({"properties":{"name":{"type":"string",
      "maxLength":6},"n":{"type":"integer","maximum":99}},
      "required":["name"]})");
  ASSERT_TRUE(schema.ok());
  const auto grammar = CompileJsonSchema(*schema);
  ASSERT_TRUE(grammar.ok());
  const auto trie = Trie();
  auto masks = std::make_shared<TokenMasks>(*grammar, trie);
  TokenMatcher matcher(masks);
  Dice dice(7);
  for (int step = 0; step < 40 && !matcher.IsFinal(); ++step) {
    const auto allowed = AllowedTokens(matcher, masks->n_words());
    ASSERT_FALSE(allowed.empty());
    std::vector<int32_t> expected;
    for (int32_t t = 0; t < trie->vocab_size(); ++t) {
      if (trie->BytesOf(t).empty()) continue;
      Automaton automaton(*grammar);
      int32_t state = automaton.start();
      for (const char c :
           std::string(matcher.text()) + std::string(trie->BytesOf(t))) {
        if (state != Automaton::kDead) {
          state = automaton.Next(state, static_cast<uint8_t>(c));
        }
      }
      if (state != Automaton::kDead) expected.push_back(t);
      if (step > 3) break;  // each by itself is slow
    }
    if (step <= 3) {
      ASSERT_EQ(allowed, expected) << matcher.text();
    }
    ASSERT_TRUE(matcher.Accept(allowed[dice.Below(allowed.size())]));
  }
}

// Very many ways to read a text: the mask is empty rather than late.
TEST_F(TokenMaskTest, AmbiguityHasALimit) {
  std::string pattern = "^";
  for (int i = 0; i < 18; ++i) pattern += "([a-z0-9]{0,60}[a-z]{0,60})";
  const Json document = {{"pattern", pattern + "!$"}};
  const auto grammar = CompileJsonSchema(*ParseJson(document.dump()));
  ASSERT_TRUE(grammar.ok()) << grammar.status();
  auto masks = std::make_shared<TokenMasks>(*grammar, Trie());
  TokenMatcher matcher(masks);
  ASSERT_TRUE(matcher.AcceptBytes("\""));
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 3; ++i) AllowedTokens(matcher, masks->n_words());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::minutes(1));
}

TEST_F(TokenMaskTest, WalksByTokensAreValidAndSharedMasksMayBeForgotten) {
  for (uint64_t seed = 1000; seed < 1030; ++seed) {
    Dice dice(seed);
    const Json schema = SchemaMaker(dice).Make();
    const auto grammar = CompileJsonSchema(*ParseJson(schema.dump()));
    if (!grammar.ok()) continue;
    auto masks = std::make_shared<TokenMasks>(*grammar, Trie());
    TokenMatcher matcher(masks);
    for (int step = 0; step < 300 && !matcher.IsFinal(); ++step) {
      if (matcher.IsComplete() && dice.Chance(10)) break;
      const auto allowed = AllowedTokens(matcher, masks->n_words());
      ASSERT_FALSE(allowed.empty()) << schema << matcher.text();
      ASSERT_TRUE(matcher.Accept(allowed[dice.Below(allowed.size())]));
    }
    EXPECT_FALSE(matcher.Accept(-1));
    if (!matcher.IsComplete()) continue;
    const Json value = Json::parse(matcher.text(), nullptr, false);
    ASSERT_FALSE(value.is_discarded()) << matcher.text();
    EXPECT_TRUE(Validator(schema).IsValid(value)) << schema << matcher.text();
  }
}

}  // namespace
}  // namespace belay::text
