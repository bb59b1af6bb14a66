// SPDX-License-Identifier: Apache-2.0
// Any bytes as text: decoding gives them back with what is not UTF-8 replaced,
// at once and streamed; and the scanner cuts as DeepSeek's patterns say.
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/detokenizer.h"
#include "text/split/pretokenizer.h"
#include "text/split/unicode.h"
#include "text/tokenizer.h"

namespace {

namespace text = belay::text;

struct Fixture {
  std::shared_ptr<const text::Tokenizer> tokenizer;
  std::unique_ptr<const text::PreTokenizer> fast;
  std::unique_ptr<const text::PreTokenizer> regex;
};

const Fixture& Shared() {
  static const auto* const fixture = [] {
    auto tokenizer = text::Tokenizer::Open("tests/data/tokenizer/demo.json");
    auto regex = text::MakeRegexPreTokenizer(text::DeepSeekPatterns(), "fuzz");
    BELAY_CHECK(tokenizer.ok());
    BELAY_CHECK(regex.ok());
    return new Fixture{*std::move(tokenizer), text::MakeDeepSeekPreTokenizer(),
                       *std::move(regex)};
  }();
  return *fixture;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t n_bytes) {
  const Fixture& fixture = Shared();
  const std::string_view bytes(reinterpret_cast<const char*>(data), n_bytes);
  const std::string valid = text::ReplaceInvalidUtf8(bytes);
  BELAY_CHECK(text::IsValidUtf8(valid));
  for (const bool parse_special : {true, false}) {
    const auto ids =
        fixture.tokenizer->Encode(bytes, {.parse_special = parse_special});
    BELAY_CHECK(ids.ok());
    BELAY_CHECK(fixture.tokenizer->Decode(*ids) == valid);
    text::StreamDecoder decoder(fixture.tokenizer);
    std::string streamed;
    for (const int32_t id : *ids) streamed += decoder.Append(id);
    streamed += decoder.Finish();
    BELAY_CHECK(streamed == valid);
  }
  std::vector<size_t> fast;
  std::vector<size_t> regex;
  BELAY_CHECK(fixture.fast->Split(valid, &fast).ok());
  BELAY_CHECK(fixture.regex->Split(valid, &regex).ok());
  BELAY_CHECK(fast == regex);
  return 0;
}
