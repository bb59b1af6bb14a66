// SPDX-License-Identifier: Apache-2.0
// What a scanner keeps of the lines of one file. Everything is bounded: a log
// of gigabytes that repeats one error is a few events and a count.
#ifndef BELAY_TOOLKIT_LOGS_JUDGE_EVENT_H_
#define BELAY_TOOLKIT_LOGS_JUDGE_EVENT_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "diag/catalogue.h"
#include "toolkit/logs/parse/rules.h"
#include "toolkit/logs/parse/time_stamp.h"

namespace belay::logs {

inline constexpr size_t kMaxTextBytes = 600;      // of a line that is kept
inline constexpr size_t kMaxContextBytes = 6000;  // of a block
inline constexpr size_t kMaxEventsOfEntry = 40;   // in one file; then counted
inline constexpr size_t kMaxSuspicious = 24;      // in one file
inline constexpr size_t kMaxAnchors = 512;
inline constexpr size_t kMaxBlocks = 20000;

// One line that means a catalogue entry.
struct Event {
  const diag::Entry* entry = nullptr;  // never null
  Tier tier = Tier::kFault;
  bool is_weak = false;       // Rule::kWeak, or only a warning
  bool needs_ascend = false;  // Rule::kNeedsAscend
  std::vector<std::string> codes;
  uint64_t line = 0;  // from 1
  std::string text;   // its beginning, as it stands there
  std::optional<TimeStamp> time;
  int pid = -1;
  int rank = -1;
  int device = -1;
  size_t block = 0;  // index into FileFacts::blocks
};

// Neighbouring lines of one process about one trouble.
struct Block {
  uint64_t first_line = 0;
  uint64_t last_line = 0;
  std::optional<TimeStamp> last_time;
  std::string context;      // its lines, for names of known issues
  std::string op;           // the operator that they name
  std::vector<int> blamed;  // ranks that it waits for
};

// A line that no entry explains but that looks bad.
struct Suspicious {
  int score = 0;
  uint64_t line = 0;
  std::string text;
  std::optional<TimeStamp> time;
};

// A line that other ranks probably have too: which one, and when.
struct Anchor {
  uint64_t key = 0;
  int64_t us = 0;
};

struct FileFacts {
  std::string name;  // as the user finds it: "a.tar.gz/plog/x.log"
  uint64_t n_bytes = 0;
  uint64_t n_lines = 0;
  uint64_t n_cut_lines = 0;  // longer than a scanner keeps
  bool has_ascend = false;
  int rank = -1, device = -1, pid = -1;  // from the name
  std::optional<TimeStamp> first_time, last_time;
  std::vector<Event> events;  // in the order of the lines
  std::vector<Block> blocks;
  std::vector<Suspicious> suspicious;
  std::vector<Anchor> anchors;
  std::map<const diag::Entry*, uint64_t> counts;       // of all events
  std::map<int, std::pair<int, int>> rank_and_device;  // by pid
  std::map<std::string, std::string> versions;         // "torch_npu": "2.9.0"
};

// Rank, device and process that a path tells: "rank_3", "worker-3", "rank3",
// "device-3", "plog-1234_2026...".
void FactsFromName(FileFacts& facts);

}  // namespace belay::logs

#endif  // BELAY_TOOLKIT_LOGS_JUDGE_EVENT_H_
