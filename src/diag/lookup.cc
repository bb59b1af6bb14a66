// SPDX-License-Identifier: Apache-2.0
#include "diag/lookup.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "diag/distance.h"
#include "diag/search.h"

namespace belay::diag {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// The words of a query, in capitals: what stands between blanks, brackets,
// equals signs and other marks of logs.
std::vector<std::string> TokensOf(std::string_view query) {
  constexpr std::string_view kMarks = " \t\r\n:=[](){},;\"'`<>|";
  std::vector<std::string> tokens;
  while (!query.empty()) {
    const size_t start = query.find_first_not_of(kMarks);
    if (start == std::string_view::npos) break;
    query.remove_prefix(start);
    const size_t end = std::min(query.find_first_of(kMarks), query.size());
    std::string token = Upper(query.substr(0, end));
    while (!token.empty() && (token.back() == '.' || token.back() == '?')) {
      token.pop_back();
    }
    if (!token.empty()) tokens.push_back(std::move(token));
    query.remove_prefix(end);
  }
  return tokens;
}

// "507034", "-8005", "0X7BC9A"; nothing for all else.
std::optional<int64_t> NumberOf(std::string_view token) {
  const bool negative = token.starts_with('-');
  if (negative) token.remove_prefix(1);
  int base = 10;
  if (token.starts_with("0X") || token.starts_with("0x")) {
    token.remove_prefix(2);
    base = 16;
  }
  uint64_t value = 0;
  const char* end = token.data() + token.size();
  const auto [stop, error] = std::from_chars(token.data(), end, value, base);
  if (token.empty() || error != std::errc() || stop != end ||
      value > uint64_t{1} << 62) {
    return std::nullopt;
  }
  const auto number = static_cast<int64_t>(value);
  return negative ? -number : number;
}

// Two numbers are one code if they are equal, or one is the unsigned 32-bit
// form of the other.
bool IsSameCode(int64_t a, int64_t b) {
  constexpr int64_t kWrap = int64_t{1} << 32;
  return a == b || (b < 0 && a == b + kWrap) || (a < 0 && b == a + kWrap);
}

// The component that a word in front of a number means.
std::string_view ComponentOf(std::string_view token) {
  static constexpr std::pair<std::string_view, std::string_view> kWords[] = {
      {"HCCL", "hccl"},         {"HCCLRESULT", "hccl"},
      {"DRV", "driver"},        {"DRIVER", "driver"},
      {"DRVRETCODE", "driver"}, {"DRV_RET_CODE", "driver"},
      {"HAL", "driver"},        {"DCMI", "dcmi"},
      {"ACL", "acl"},           {"RUNTIME", "runtime"},
      {"RTS", "runtime"},       {"GE", "ge"},
      {"ACLNN", "aclnn"}};
  for (const auto& [word, component] : kWords) {
    if (token == word) return component;
  }
  return "";
}

bool IsSymbolOf(const Code& code, std::string_view token) {
  return !code.symbol.empty() && Upper(code.symbol) == token;
}

void Add(Answer& answer, FoundBy by, Hit hit) {
  for (const Hit& other : answer.hits) {
    if (other.entry == hit.entry &&
        (other.code == hit.code || by == FoundBy::kName)) {
      return;
    }
  }
  if (answer.by == FoundBy::kNothing) answer.by = by;
  answer.hits.push_back(hit);
}

// Every code that `token` names, of one component or of all ("").
void AddCodes(const Catalogue& catalogue, std::string_view token,
              std::string_view component, Answer& answer) {
  const auto number = NumberOf(token);
  for (const Entry& entry : catalogue.entries()) {
    for (const Code& code : entry.codes) {
      if (!component.empty() && code.component != component) continue;
      const auto value = NumberOf(code.code);
      const bool same = number && value ? IsSameCode(*number, *value)
                                        : Upper(code.code) == token;
      if (same || IsSymbolOf(code, token)) {
        Add(answer, FoundBy::kCode, {&entry, &code});
      }
    }
  }
}

bool HasName(const Entry& entry, std::string_view token) {
  if (entry.variable && Upper(entry.variable->name) == token) return true;
  return std::any_of(
      entry.names.begin(), entry.names.end(),
      [&](const std::string& name) { return Upper(name) == token; });
}

// The entry of a variable of this name comes before those that only name it.
void AddNames(const Catalogue& catalogue, std::string_view token,
              Answer& answer) {
  for (const bool variables : {true, false}) {
    for (const Entry& entry : catalogue.entries()) {
      const bool is_variable =
          entry.variable && Upper(entry.variable->name) == token;
      if (is_variable == variables && HasName(entry, token)) {
        Add(answer, FoundBy::kName, {&entry, nullptr});
      }
    }
  }
}

// A number that stands among words is a code only if it is long enough not to
// be a count, a port or a line.
bool IsTelling(std::string_view token) {
  const auto number = NumberOf(token);
  if (!number) return token.size() >= 4;
  return *number >= 100000 || (*number <= -8000 && *number > -9000);
}

// Nor is a plain word ("numpy", "driver") a name: the search weighs it.
bool IsTellingName(std::string_view token) {
  return IsTelling(token) &&
         token.find_first_of("_/.0123456789") != std::string_view::npos;
}

// Whether a hit is one of the codes that a component prints for all that has
// no number of its own (EZ9999, E19999, ...).
bool IsCatchAll(const Hit& hit) {
  return hit.code != nullptr && hit.code->code.ends_with("9999");
}

void AddExact(const Catalogue& catalogue, std::string_view query,
              Answer& answer) {
  const std::vector<std::string> tokens = TokensOf(query);
  std::string_view component;
  for (const std::string& token : tokens) {
    const bool alone = tokens.size() == 1;
    if (const Entry* entry = catalogue.Find(token)) {
      Add(answer, FoundBy::kId, {entry, nullptr});
    }
    if (alone || IsTelling(token) || !component.empty()) {
      AddCodes(catalogue, token, component, answer);
    }
    if (alone || IsTellingName(token)) AddNames(catalogue, token, answer);
    component = ComponentOf(token);
  }
  std::stable_partition(answer.hits.begin(), answer.hits.end(),
                        [](const Hit& hit) { return !IsCatchAll(hit); });
}

// The digits of a word: a slip in a letter is forgiven, one in a digit would
// find another code.
std::string DigitsOf(std::string_view text) {
  std::string digits;
  std::copy_if(text.begin(), text.end(), std::back_inserter(digits), IsDigit);
  return digits;
}

template <typename Visit>  // Visit(entry, code or null, id, symbol or name)
void ForEachName(const Catalogue& catalogue, Visit visit) {
  for (const Entry& entry : catalogue.entries()) {
    visit(entry, nullptr, entry.id);
    for (const Code& code : entry.codes) {
      visit(entry, &code, code.code);
      if (!code.symbol.empty()) visit(entry, &code, code.symbol);
    }
    if (entry.variable) visit(entry, nullptr, entry.variable->name);
    for (const std::string& name : entry.names) visit(entry, nullptr, name);
  }
}

// A word of letters, digits and underscores that looks like a name.
bool LooksLikeName(std::string_view token) {
  return token.size() >= 5 && !NumberOf(token) && token.size() <= 80 &&
         token.find_first_of("_0123456789-") != std::string_view::npos &&
         token.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789-.") ==
             std::string_view::npos;
}

void AddTypos(const Catalogue& catalogue, std::string_view token,
              Answer& answer) {
  const std::string digits = DigitsOf(token);
  size_t best = token.size() < 8 ? 1 : token.size() < 20 ? 2 : 3;
  ForEachName(catalogue, [&](const Entry& entry, const Code* code,
                             const std::string& name) {
    const size_t gap = name.size() > token.size() ? name.size() - token.size()
                                                  : token.size() - name.size();
    if (gap > best || DigitsOf(name) != digits) return;
    const size_t distance = EditDistance(Upper(name), token);
    if (distance > best) return;
    if (distance < best) answer.hits.clear();
    best = distance;
    Add(answer, FoundBy::kTypo, {&entry, code});
  });
}

// `least`: the coverage that a hit must have.
void AddWords(const Catalogue& catalogue, std::string_view query, double least,
              Answer& answer) {
  std::vector<Ranked> ranked = SearchWords(catalogue, query);
  std::erase_if(ranked,
                [&](const Ranked& one) { return one.coverage < least; });
  for (const Ranked& one : ranked) {
    Add(answer, FoundBy::kWords, {one.entry, nullptr});
  }
  answer.is_clear =
      ranked.size() == 1 ||
      (ranked.size() > 1 && ranked[0].score > 1.6 * ranked[1].score &&
       ranked[0].coverage > 0.7);
}

// Names and codes that could have been meant, the nearest first.
std::vector<std::string> NearestNames(const Catalogue& catalogue,
                                      std::string_view token) {
  const auto number = NumberOf(token);
  std::vector<std::pair<uint64_t, std::string>> near;
  ForEachName(catalogue,
              [&](const Entry&, const Code*, const std::string& name) {
                const auto value = NumberOf(name);
                if (number && value) {
                  const int64_t gap = *value - *number;
                  const auto size = static_cast<uint64_t>(gap < 0 ? -gap : gap);
                  if (size < 1000) near.emplace_back(size, name);
                } else if (!number && !value && name.size() <= 80) {
                  const size_t distance = EditDistance(Upper(name), token);
                  if (distance <= std::max<size_t>(2, token.size() / 4)) {
                    near.emplace_back(distance, name);
                  }
                }
              });
  std::sort(near.begin(), near.end());
  near.erase(std::unique(near.begin(), near.end()), near.end());
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min<size_t>(3, near.size()); ++i) {
    names.push_back(near[i].second);
  }
  return names;
}

}  // namespace

std::string_view NameOf(FoundBy by) {
  static constexpr std::string_view kNames[] = {"nothing", "id",   "code",
                                                "name",    "typo", "words"};
  return kNames[static_cast<size_t>(by)];
}

Answer LookUp(const Catalogue& catalogue, std::string_view query,
              size_t limit) {
  query = query.substr(0, 4000);  // a pasted log is not a question
  Answer answer;
  AddExact(catalogue, query, answer);
  const std::vector<std::string> tokens = TokensOf(query);
  const bool is_name = tokens.size() == 1 && LooksLikeName(tokens[0]);
  if (answer.hits.empty() && is_name) AddTypos(catalogue, tokens[0], answer);
  const bool is_number = tokens.size() == 1 && NumberOf(tokens[0]);
  // "NO-001" would be searched as "001".
  const bool is_short = is_name && tokens[0].size() < 8;
  if (answer.hits.empty() && !is_number && !is_short) {
    // A name that is not known as such may still stand in a text, but whole.
    AddWords(catalogue, query, is_name ? 0.99 : 0.5, answer);
  }
  if (answer.hits.empty() && tokens.size() == 1 && tokens[0].size() <= 80) {
    answer.nearest = NearestNames(catalogue, tokens[0]);
  }
  if (answer.hits.size() > limit) answer.hits.resize(limit);
  answer.is_clear = answer.is_clear || answer.hits.size() == 1;
  return answer;
}

}  // namespace belay::diag
