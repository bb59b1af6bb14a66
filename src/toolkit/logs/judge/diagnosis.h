// SPDX-License-Identifier: Apache-2.0
// From the events of all files to the first cause and what followed.
#ifndef BELAY_TOOLKIT_LOGS_JUDGE_DIAGNOSIS_H_
#define BELAY_TOOLKIT_LOGS_JUDGE_DIAGNOSIS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "diag/catalogue.h"
#include "toolkit/logs/judge/event.h"

namespace belay::logs {

struct Place {
  std::string file;
  uint64_t line = 0;
  std::string text;           // the line's beginning, any bytes
  std::string time;           // ISO 8601 without zone, clock corrected; or ""
  std::optional<int64_t> us;  // the same, since 1970; also where it is guessed
  int rank = -1, device = -1, pid = -1;
};

enum class Role : uint8_t {
  kFirst,    // the first cause
  kFollows,  // at the same time or later
  kBefore,   // earlier, but not serious enough to be the cause
};
std::string_view NameOf(Role role);  // "first_cause", "follows", "before"

// One catalogue entry and where the logs show it.
struct Finding {
  const diag::Entry* entry = nullptr;
  Role role = Role::kFollows;
  Tier tier = Tier::kFault;
  Place place;                            // the first
  std::vector<std::string> codes;         // as the logs print them
  std::string op;                         // operator; may be empty
  std::vector<int> ranks;                 // that show it, sorted
  uint64_t count = 0;                     // lines in all files
  std::vector<const diag::Entry*> known;  // reports that look like this
};

struct RankCause {
  int rank = -1;
  size_t finding = 0;  // index
  Place place;         // on this rank
};

struct FileSummary {
  std::string name;
  uint64_t n_bytes = 0, n_lines = 0;
  int rank = -1;
  int64_t clock_offset_us = 0;  // taken away from its times
  int n_clock_lines = 0;        // lines that showed the offset
};

struct Diagnosis {
  std::vector<Finding> findings;  // the first cause first, then by time
  bool has_first = false;         // findings[0] is the first cause
  bool only_waits = false;        // everybody waits for somebody else
  std::vector<RankCause> ranks;   // sorted by rank
  std::vector<std::pair<int, int>>
      blamed;  // rank, times waited for; most first
  std::vector<std::pair<Place, int>> suspicious;  // unexplained lines, score
  std::vector<FileSummary> files;
  std::map<std::string, std::string> versions;
  uint64_t n_bytes = 0, n_lines = 0, n_cut_lines = 0;
  bool has_ascend = false;
};

// `catalogue` is the one that the scanners used.
Diagnosis Diagnose(const std::vector<FileFacts>& files,
                   const diag::Catalogue& catalogue);

// Reports (kind issue) that name an operator, file or text of `context`, or the
// codes of `finding` and nothing else. The best first, at most 5.
std::vector<const diag::Entry*> KnownIssues(
    const diag::Catalogue& catalogue, const Finding& finding,
    const std::string& context,
    const std::map<std::string, std::string>& versions);

}  // namespace belay::logs

#endif  // BELAY_TOOLKIT_LOGS_JUDGE_DIAGNOSIS_H_
