// SPDX-License-Identifier: Apache-2.0
#include "text/stop/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace belay::text {
namespace {

std::vector<size_t> BordersOf(std::string_view text) {
  std::vector<size_t> border(text.size() + 1, 0);
  for (size_t n = 1; n < text.size(); ++n) {
    size_t length = border[n];
    while (length > 0 && text[length] != text[n]) length = border[length];
    border[n + 1] = text[length] == text[n] ? length + 1 : 0;
  }
  return border;
}

}  // namespace

StopMatcher::StopMatcher(std::vector<std::string> stops)
    : stops_(std::move(stops)) {
  stops_.erase(std::remove(stops_.begin(), stops_.end(), std::string()),
               stops_.end());
  for (const std::string& stop : stops_) border_.push_back(BordersOf(stop));
  n_matched_.assign(stops_.size(), 0);
}

void StopMatcher::Advance(size_t stop, char c) {
  size_t& n = n_matched_[stop];
  while (n > 0 && stops_[stop][n] != c) n = border_[stop][n];
  if (stops_[stop][n] == c) ++n;
}

// A stop string is found when its last byte comes. The one that ends first
// wins; of those that end together the longest, because it began first.
std::string StopMatcher::Feed(std::string_view piece) {
  if (found_ >= 0) return "";
  for (size_t i = 0; i < piece.size(); ++i) {
    size_t n_longest = 0;
    for (size_t s = 0; s < stops_.size(); ++s) {
      Advance(s, piece[i]);
      if (n_matched_[s] < stops_[s].size() || stops_[s].size() <= n_longest) {
        continue;
      }
      n_longest = stops_[s].size();
      found_ = static_cast<int>(s);
    }
    if (found_ < 0) continue;
    held_.append(piece.substr(0, i + 1));
    held_.resize(held_.size() - n_longest);
    return std::exchange(held_, {});
  }
  held_.append(piece);
  size_t n_keep = 0;
  for (const size_t n : n_matched_) n_keep = std::max(n_keep, n);
  std::string out = held_.substr(0, held_.size() - n_keep);
  held_.erase(0, out.size());
  return out;
}

std::string StopMatcher::Finish() { return std::exchange(held_, {}); }

}  // namespace belay::text
