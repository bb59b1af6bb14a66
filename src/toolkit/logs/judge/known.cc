// SPDX-License-Identifier: Apache-2.0
// Which public reports look like what the logs show.
#include <algorithm>
#include <utility>

#include "toolkit/logs/judge/diagnosis.h"

namespace belay::logs {
namespace {

constexpr size_t kMaxKnown = 5;

bool Holds(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool IsWordByte(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z') || c == '_';
}

// Does `word` stand in `text`, not inside a longer word?
bool HoldsWord(std::string_view text, std::string_view word) {
  for (size_t at = text.find(word); at != std::string_view::npos;
       at = text.find(word, at + 1)) {
    const size_t end = at + word.size();
    // Operator Foo is called by aclnnFoo.
    const bool starts = at == 0 || !IsWordByte(text[at - 1]) ||
                        text.substr(0, at).ends_with("aclnn");
    if (starts &&
        (end >= text.size() || !IsWordByte(text[end]) || text[end] == '_' ||
         (text[end] == 'V' && end + 1 < text.size()))) {
      return true;
    }
  }
  return false;
}

// Names that everybody's logs hold.
bool IsTelling(std::string_view name) {
  static constexpr std::string_view kCommon[] = {
      "npu-smi",      "container",
      "numpy",        "undefined symbol",
      "NNAL",         "--block-size",
      "prefix cache", "transfer_to_npu",
      "hccn_tool",    "ASCEND_RT_VISIBLE_DEVICES"};
  return name.size() >= 6 && std::find(std::begin(kCommon), std::end(kCommon),
                                       name) == std::end(kCommon);
}

// The text of an issue in which it names codes.
bool NamesCode(const diag::Entry& issue, std::string_view code) {
  return code.size() >= 5 &&
         (Holds(issue.title.en, code) || Holds(issue.cause.en, code) ||
          Holds(issue.fix.en, code));
}

// Whether an issue names any code at all: six digits or EI0006 and the like.
bool NamesAnyCode(const diag::Entry& issue) {
  for (const std::string* text :
       {&issue.title.en, &issue.cause.en, &issue.fix.en}) {
    size_t n = 0;
    for (const char c : *text + " ") {
      if (c >= '0' && c <= '9') {
        ++n;
        continue;
      }
      if (n == 6) return true;
      n = 0;
    }
    if (Holds(*text, "EI0") || Holds(*text, "EI9") || Holds(*text, "EE1") ||
        Holds(*text, "EZ1")) {
      return true;
    }
  }
  return false;
}

// "vllm-ascend 0.26.0rc1" against the versions in the logs.
bool IsOfVersion(const diag::Entry& issue,
                 const std::map<std::string, std::string>& versions) {
  return std::any_of(
      issue.versions.begin(), issue.versions.end(),
      [&](const std::string& said) {
        const size_t blank = said.find(' ');
        const auto found = versions.find(said.substr(0, blank));
        if (blank == std::string::npos || found == versions.end()) return false;
        const std::string wanted = said.substr(blank + 1);
        return found->second.starts_with(wanted);
      });
}

double ScoreOf(const diag::Entry& issue, const Finding& finding,
               const std::string& context) {
  double score = 0;
  int n_names = 0;
  for (const auto* list : {&issue.names, &issue.keywords}) {
    for (const std::string& name : *list) {
      if (!IsTelling(name)) continue;
      ++n_names;
      if (HoldsWord(context, name) || (finding.op == name)) score += 2;
    }
  }
  const bool has_name = score > 0;
  const bool has_code = std::any_of(
      finding.codes.begin(), finding.codes.end(),
      [&](const std::string& code) { return NamesCode(issue, code); });
  const bool is_related =
      std::find(finding.entry->see.begin(), finding.entry->see.end(),
                issue.id) != finding.entry->see.end();
  if (has_code) score += 1.5;
  if (is_related) score += 1;
  const bool fits =
      (has_name && (has_code || is_related || !NamesAnyCode(issue))) ||
      (has_code && n_names == 0) || (is_related && n_names == 0);
  return fits ? score : 0;
}

}  // namespace

std::vector<const diag::Entry*> KnownIssues(
    const diag::Catalogue& catalogue, const Finding& finding,
    const std::string& context,
    const std::map<std::string, std::string>& versions) {
  std::vector<std::pair<double, const diag::Entry*>> ranked;
  for (const diag::Entry& issue : catalogue.entries()) {
    if (issue.kind != diag::Kind::kIssue || &issue == finding.entry) continue;
    const double score = ScoreOf(issue, finding, context);
    if (score > 0) {
      ranked.emplace_back(score + (IsOfVersion(issue, versions) ? 3 : 0),
                          &issue);
    }
  }
  std::stable_sort(
      ranked.begin(), ranked.end(),
      [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<const diag::Entry*> known;
  for (const auto& [score, issue] : ranked) {
    if (known.size() < kMaxKnown) known.push_back(issue);
  }
  return known;
}

}  // namespace belay::logs
