// SPDX-License-Identifier: Apache-2.0
// Belay's side of `run`: reads what the Rust tokenizer said from standard
// input, one JSON object a line, and compares.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "text/detokenizer.h"
#include "text/split/pretokenizer.h"
#include "text/split/unicode.h"
#include "text/tokenizer.h"

namespace {

using belay::text::Tokenizer;
using Ids = std::vector<int32_t>;
using Json = nlohmann::json;
using Shared = std::shared_ptr<const Tokenizer>;

constexpr int kMaxShown = 10;

// Of this process' own time: the machine may have other work.
double CpuSeconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

std::string FromHex(const std::string& hex) {
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  }
  return bytes;
}

std::string Streamed(const Shared& tokenizer, const Ids& ids, bool skip) {
  belay::text::StreamDecoder decoder(tokenizer, {.skip_special = skip});
  std::string text;
  for (const int32_t id : ids) text += decoder.Append(id);
  return text + decoder.Finish();
}

// Also holds DeepSeek's scanner to the patterns on the same texts.
class Cases {
 public:
  explicit Cases(Shared tokenizer)
      : tokenizer_(std::move(tokenizer)),
        fast_(belay::text::MakeDeepSeekPreTokenizer()),
        regex_(*belay::text::MakeRegexPreTokenizer(
            belay::text::DeepSeekPatterns(), "patterns")) {}

  int Run() {
    size_t n_cases = 0;
    size_t n_wrong = 0;
    for (std::string line; std::getline(std::cin, line); ++n_cases) {
      const Json one = Json::parse(line);
      const std::string wrong =
          one.contains("decoded") ? CheckDecode(one) : CheckEncode(one);
      if (wrong.empty()) continue;
      if (n_wrong++ < kMaxShown) {
        std::printf("  %s: %s\n", wrong.c_str(), line.c_str());
      }
    }
    std::printf("  %zu cases, %zu wrong\n", n_cases, n_wrong);
    return n_cases > 0 && n_wrong == 0 ? 0 : 1;
  }

 private:
  std::string CheckEncode(const Json& one) const {
    const bool is_bytes = one.contains("hex");
    const std::string given = is_bytes ? FromHex(one["hex"].get<std::string>())
                                       : one["text"].get<std::string>();
    const auto ids = tokenizer_->Encode(given);
    if (!ids.ok()) return "error";
    if (*ids != one["ids"].get<Ids>()) return "ids " + Json(*ids).dump();
    const std::string text =
        is_bytes ? belay::text::ReplaceInvalidUtf8(given) : given;
    // White space that a token with lstrip or rstrip swallows is gone.
    if (!strips()) {
      if (tokenizer_->Decode(*ids) != text) return "decode";
      if (Streamed(tokenizer_, *ids, false) != text) return "streamed decode";
    }
    std::vector<size_t> fast;
    std::vector<size_t> regex;
    if (!fast_->Split(text, &fast).ok() || !regex_->Split(text, &regex).ok() ||
        fast != regex) {
      return "the scanner differs from the patterns";
    }
    return "";
  }

  std::string CheckDecode(const Json& one) const {
    const Ids ids = one["ids"].get<Ids>();
    const bool skip = one["skip_special"].get<bool>();
    const std::string text = one["decoded"].get<std::string>();
    const std::string decoded = tokenizer_->Decode(ids, {.skip_special = skip});
    if (decoded != text) return "decode " + Json(decoded).dump();
    if (Streamed(tokenizer_, ids, skip) != text) return "streamed decode";
    return "";
  }

  bool strips() const {
    const auto tokens = tokenizer_->added_tokens();
    return std::any_of(tokens.begin(), tokens.end(), [](const auto& token) {
      return token.lstrip || token.rstrip;
    });
  }

  Shared tokenizer_;
  std::unique_ptr<const belay::text::PreTokenizer> fast_;
  std::unique_ptr<const belay::text::PreTokenizer> regex_;
};

// The best of `n_runs`.
double SecondsToEncode(const Tokenizer& tokenizer,
                       const std::vector<std::string>& texts, int n_runs) {
  double best = 1e9;
  for (int run = 0; run < n_runs; ++run) {
    const double start = CpuSeconds();
    for (const std::string& text : texts) {
      if (!tokenizer.Encode(text).ok()) return 1e9;
    }
    best = std::min(best, CpuSeconds() - start);
  }
  return best;
}

// 1 MB may take 20 times as long as 100 kB.
int Growth(const Tokenizer& tokenizer) {
  const char* const units[] = {" ",       "1",
                               "a",       ".",
                               "\u4E2D",  "\n",
                               "\t",      "\u00E9",
                               "ab",      "!a",
                               " a",      "0a",
                               "    \n",  "\u7684\u4E00\u662F",
                               "<",       "\u0301",
                               "<\uFF5C", "\x01",
                               "\xFF",    "\U0001F600"};
  int n_wrong = 0;
  for (const std::string unit : units) {
    const auto text = [&unit](size_t n_bytes) {
      std::string repeated;
      while (repeated.size() < n_bytes) repeated += unit;
      return std::vector<std::string>{repeated + "x"};
    };
    const double small = SecondsToEncode(tokenizer, text(100'000), 3);
    const double large = SecondsToEncode(tokenizer, text(1'000'000), 3);
    const bool ok = large <= 20 * small;
    n_wrong += !ok;
    std::printf(
        "  1 MB of %-12s %6.1f ms, %4.1f times 100 kB%s\n",
        Json(unit).dump(-1, ' ', true, Json::error_handler_t::replace).c_str(),
        large * 1e3, large / small, ok ? "" : "  TOO SLOW");
  }
  return n_wrong == 0 ? 0 : 1;
}

int Speed(const Tokenizer& tokenizer, const char* cases) {
  std::vector<std::string> texts;
  std::string joined;
  std::ifstream file(cases);
  for (std::string line; std::getline(file, line);) {
    texts.push_back(Json::parse(line)["text"].get<std::string>());
    joined += texts.back();
  }
  int n_wrong = 0;
  for (std::string line; std::getline(std::cin, line);) {
    const Json rust = Json::parse(line);
    const auto name = rust["name"].get<std::string>();
    const bool one_text = name == "the cases as one text";
    const double seconds = SecondsToEncode(
        tokenizer, one_text ? std::vector<std::string>{joined} : texts, 20);
    const double ours = static_cast<double>(joined.size()) / 1e6 / seconds;
    const double theirs = rust["mb_per_s"].get<double>();
    std::printf("  %s: %.1f MB/s, Rust %.1f MB/s, ratio %.1f\n", name.c_str(),
                ours, theirs, ours / theirs);
    n_wrong += ours <= theirs || ours < 5;
  }
  return n_wrong == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc >= 3 ? argv[2] : "";
  if (argc < 3) {
    std::fprintf(stderr,
                 "usage: tokenizer_diff TOKENIZER --cases|--growth|"
                 "--speed CASES\n");
    return 2;
  }
  const double start = CpuSeconds();
  const auto tokenizer = Tokenizer::Open(argv[1]);
  const double loaded = CpuSeconds() - start;
  if (!tokenizer.ok()) {
    std::cerr << tokenizer.status() << "\n";
    return 1;
  }
  if (mode == "--cases") return Cases(*tokenizer).Run();
  if (mode == "--growth") return Growth(**tokenizer);
  if (mode == "--speed" && argc == 4) {
    std::printf("  %s loaded in %.0f ms of CPU time\n", argv[1], loaded * 1e3);
    return Speed(**tokenizer, argv[3]);
  }
  std::fprintf(stderr, "tokenizer_diff: unknown mode %s\n", mode.c_str());
  return 2;
}
