// SPDX-License-Identifier: Apache-2.0
// Lines of one file to events.
#ifndef BELAY_TOOLKIT_LOGS_JUDGE_SCANNER_H_
#define BELAY_TOOLKIT_LOGS_JUDGE_SCANNER_H_

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "diag/catalogue.h"
#include "toolkit/logs/judge/event.h"
#include "toolkit/logs/parse/codes.h"
#include "toolkit/logs/parse/line_head.h"
#include "toolkit/logs/parse/rules.h"

namespace belay::logs {

// What all scanners share; read-only once made.
struct Knowledge {
  explicit Knowledge(const diag::Catalogue& all) : catalogue(all), codes(all) {}
  const diag::Catalogue& catalogue;
  RuleSet rules;
  CodeIndex codes;
};

// Eats the bytes of a file in pieces of any size and any content. Holds one
// line of at most 64 KiB; what a longer line has beyond that is skipped.
class Scanner {
 public:
  // `knowledge` must outlive the scanner.
  Scanner(const Knowledge& knowledge, std::string name);

  void Feed(std::string_view bytes);
  // The last line may lack its newline.
  void End();

  // Valid after any Feed; complete after End.
  const FileFacts& facts() const { return facts_; }
  FileFacts TakeFacts() { return std::move(facts_); }

 private:
  void Line(std::string_view line);
  void AnchorLine(const LineHead& head, std::string_view line);
  void TracebackLine(std::string_view message, const LineHead& head);
  void Interesting(std::string_view line, const LineHead& own);
  void SmiRow(std::string_view line, const LineHead& head);
  size_t BlockFor(const LineHead& head);
  bool IsKept(const diag::Entry* entry);
  void AddEvent(Event event, const LineHead& head, std::string_view line);
  void AddSuspicious(int score, std::string_view line, const LineHead& head);
  void AddContext(std::string_view line);
  void AddVersions(std::string_view line);
  int ScoreOf(const LineHead& head) const;

  const Knowledge& knowledge_;
  FileFacts facts_;
  std::string partial_;    // a line that is not complete yet
  std::string plain_;      // a line without its colours
  bool skipping_ = false;  // the rest of a line that is too long
  RuleSet::Found found_;
  LineHead last_head_;  // of the last line that had one and mattered
  uint64_t last_head_line_ = 0;
  std::map<int, size_t> open_blocks_;  // by process; -1: unknown
  size_t current_block_ = SIZE_MAX;
  int traceback_lines_ = -1;  // -1: in none
  std::map<uint64_t, uint32_t> anchor_counts_;
  uint64_t n_anchor_lines_ = 0;
};

// The operator that a line names ("aclnnFoo failed", "OpName:[Foo_0]",
// "kernel_name=Foo_ND_...", "operator Foo_12", "op[Foo]"), or "".
std::string OperatorIn(std::string_view line);

// The beginning of a line as it may be kept: UTF-8 (bytes that are none become
// U+FFFD), without blanks around it, at most kMaxTextBytes and a few.
std::string TextOf(std::string_view line);

// The ranks that a line waits for ("remote rank: [24]", "connect agent[1,3,]").
std::vector<int> BlamedIn(std::string_view line);

}  // namespace belay::logs

#endif  // BELAY_TOOLKIT_LOGS_JUDGE_SCANNER_H_
