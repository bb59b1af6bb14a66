// SPDX-License-Identifier: Apache-2.0
#include "text/bpe/added_tokens.h"

#include <algorithm>

#include "text/split/unicode.h"

namespace belay::text {
namespace {

// The start of the last character of valid, non-empty UTF-8.
size_t LastCharacter(std::string_view text) {
  size_t at = text.size() - 1;
  while (at > 0 && (static_cast<uint8_t>(text[at]) & 0xC0) == 0x80) --at;
  return at;
}

bool StartsWithWord(std::string_view text) {
  const char* p = text.data();
  return !text.empty() && IsWordCharacter(DecodeUtf8(p));
}

bool EndsWithWord(std::string_view text) {
  return !text.empty() && StartsWithWord(text.substr(LastCharacter(text)));
}

// The length of the white space at the start.
size_t SpaceAtStart(std::string_view text) {
  const char* p = text.data();
  while (p < text.data() + text.size()) {
    const char* next = p;
    if (!IsWhiteSpace(DecodeUtf8(next))) break;
    p = next;
  }
  return p - text.data();
}

// The length of `text` without the white space at its end.
size_t WithoutSpaceAtEnd(std::string_view text) {
  while (!text.empty()) {
    const size_t last = LastCharacter(text);
    const char* p = text.data() + last;
    if (!IsWhiteSpace(DecodeUtf8(p))) break;
    text = text.substr(0, last);
  }
  return text.size();
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens)
    : tokens_(std::move(tokens)) {
  for (const AddedToken& token : tokens_) {
    Set& set = token.normalized ? normalized_ : plain_;
    set.sorted.push_back(&token);
    set.starts[static_cast<uint8_t>(token.content[0])] = true;
  }
  for (Set* set : {&plain_, &normalized_}) {
    std::sort(set->sorted.begin(), set->sorted.end(),
              [](const AddedToken* a, const AddedToken* b) {
                return a->content < b->content;
              });
  }
}

// Narrows the sorted tokens to those that share one more byte with the text,
// as a trie would.
const AddedToken* AddedTokens::LongestAt(const Set& set,
                                         std::string_view text) {
  const AddedToken* longest = nullptr;
  auto first = set.sorted.begin();
  auto last = set.sorted.end();
  for (size_t n = 0; first != last; ++n) {
    // Of tokens that share n bytes, the one of n bytes is sorted first.
    if ((*first)->content.size() == n) longest = *first++;
    if (n == text.size()) break;
    const auto byte = static_cast<uint8_t>(text[n]);
    const auto at = [n](const AddedToken* token) {
      return static_cast<uint8_t>(token->content[n]);
    };
    first = std::partition_point(
        first, last, [&](const AddedToken* t) { return at(t) < byte; });
    last = std::partition_point(
        first, last, [&](const AddedToken* t) { return at(t) == byte; });
  }
  return longest;
}

void AddedTokens::SplitBy(const Set& set, std::string_view text,
                          bool with_special, std::vector<TextPart>* parts) {
  size_t done = 0;  // the text before is in `parts`
  const auto add_text = [&](size_t end) {
    if (done < end) parts->push_back({text.substr(done, end - done), -1});
  };
  for (size_t at = 0; at < text.size();) {
    const AddedToken* token = set.starts[static_cast<uint8_t>(text[at])]
                                  ? LongestAt(set, text.substr(at))
                                  : nullptr;
    if (token == nullptr) {
      ++at;
      continue;
    }
    size_t start = at;
    size_t stop = at + token->content.size();
    at = stop;
    if (token->special && !with_special) continue;
    if (token->single_word && (EndsWithWord(text.substr(0, start)) ||
                               StartsWithWord(text.substr(stop)))) {
      continue;
    }
    if (token->lstrip) {
      start = std::max(WithoutSpaceAtEnd(text.substr(0, start)), done);
    }
    if (token->rstrip) stop += SpaceAtStart(text.substr(stop));
    add_text(start);
    parts->push_back({text.substr(start, stop - start), token->id});
    done = stop;
  }
  add_text(text.size());
}

std::vector<TextPart> AddedTokens::Split(std::string_view text,
                                         bool with_special) const {
  std::vector<TextPart> parts;
  SplitBy(plain_, text, with_special, &parts);
  if (normalized_.sorted.empty()) return parts;
  std::vector<TextPart> finer;
  for (const TextPart& part : parts) {
    if (part.id >= 0) {
      finer.push_back(part);
    } else {
      SplitBy(normalized_, part.text, with_special, &finer);
    }
  }
  return finer;
}

}  // namespace belay::text
