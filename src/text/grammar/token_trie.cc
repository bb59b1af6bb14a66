// SPDX-License-Identifier: Apache-2.0
#include "text/grammar/token_trie.h"

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/error_ids.h"
#include "text/grammar/grammar.h"

namespace belay::text {
namespace {

// Bytes that well-formed UTF-8 holds (Unicode, table 3-7), without the control
// characters, which no grammar here asks for except newline and tab.
bool IsNeeded(int byte) {
  if (byte < 0x20) return byte == '\n' || byte == '\t';
  return byte <= 0xbf || (byte >= 0xc2 && byte <= 0xf4);
}

}  // namespace

StatusOr<std::shared_ptr<const TokenTrie>> TokenTrie::Create(
    const Tokenizer& tokenizer, std::span<const MarkerToken> markers) {
  std::unordered_set<int32_t> added;
  std::vector<Entry> entries;
  for (const AddedToken& token : tokenizer.added_tokens()) {
    added.insert(token.id);
    for (const MarkerToken& marker : markers) {
      if (marker.piece != token.content) continue;
      entries.push_back({.bytes = {static_cast<char>(kMarkerByte),
                                   static_cast<char>(marker.number)},
                         .token = token.id});
    }
  }
  std::array<bool, 256> has_byte{};
  constexpr size_t kMaxBytes = std::numeric_limits<uint16_t>::max();
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    const std::string_view bytes = tokenizer.BytesOf(id);
    // A byte that no text has must not spell a marker either.
    if (bytes.empty() || bytes.size() > kMaxBytes || added.contains(id) ||
        bytes.find(static_cast<char>(kMarkerByte)) != std::string_view::npos) {
      continue;
    }
    if (bytes.size() == 1) has_byte[static_cast<uint8_t>(bytes[0])] = true;
    entries.push_back({.bytes = std::string(bytes), .token = id});
  }
  for (int byte = 0; byte < 256; ++byte) {
    if (!IsNeeded(byte) || has_byte[static_cast<size_t>(byte)]) continue;
    return MakeError(kGramTokenizer,
                     {.where = "tokenizer.json",
                      .what = "",
                      .expected = "a token for every byte",
                      .got = "none for byte " + std::to_string(byte)});
  }
  auto trie = std::make_shared<TokenTrie>();
  trie->same_.assign(static_cast<size_t>(tokenizer.vocab_size()), -1);
  trie->bytes_.resize(static_cast<size_t>(tokenizer.vocab_size()));
  trie->Add(std::move(entries));
  return std::shared_ptr<const TokenTrie>(std::move(trie));
}

// Sorted bytes are the order of the walk: what a token shares with the one
// before it is there already.
void TokenTrie::Add(std::vector<Entry> entries) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.bytes, a.token) < std::tie(b.bytes, b.token);
  });
  std::vector<uint32_t> path;  // nodes from the root to the last token
  std::string_view last;
  const auto leave = [&](size_t depth) {
    while (path.size() > depth) {
      nodes_[path.back()].skip = static_cast<uint32_t>(nodes_.size());
      path.pop_back();
    }
  };
  for (const Entry& entry : entries) {
    bytes_[static_cast<size_t>(entry.token)] = entry.bytes;
    max_token_bytes_ = std::max(max_token_bytes_, entry.bytes.size());
    if (entry.bytes == last) {
      same_[static_cast<size_t>(entry.token)] = nodes_[path.back()].token;
      nodes_[path.back()].token = entry.token;
      continue;
    }
    const auto [a, b] = std::mismatch(last.begin(), last.end(),
                                      entry.bytes.begin(), entry.bytes.end());
    leave(static_cast<size_t>(a - last.begin()));
    for (size_t i = path.size(); i < entry.bytes.size(); ++i) {
      path.push_back(static_cast<uint32_t>(nodes_.size()));
      nodes_.push_back({.skip = 0,
                        .token = -1,
                        .depth = static_cast<uint16_t>(i),
                        .byte = static_cast<uint8_t>(entry.bytes[i])});
    }
    nodes_.back().token = entry.token;
    last = entry.bytes;
  }
  leave(0);
}

std::string_view TokenTrie::BytesOf(int32_t token) const {
  if (token < 0 || token >= vocab_size()) return {};
  return bytes_[static_cast<size_t>(token)];
}

}  // namespace belay::text
