// SPDX-License-Identifier: Apache-2.0
#include "toolkit/logs/judge/scanner.h"

#include <algorithm>
#include <utility>

namespace belay::logs {
namespace {

constexpr size_t kMaxLineBytes = size_t{64} << 10;
constexpr uint64_t kAnchorLines = 3000;  // of a file that are compared
constexpr uint64_t kHeadReach = 60;      // lines that a head is good for
constexpr uint64_t kBlockReach = 200;    // lines between parts of a block
constexpr uint64_t kNeighbours = 5;      // lines that belong together
constexpr int64_t kBlockGapUs = 60 * 1000000LL;
constexpr int kTracebackLines = 400;
constexpr uint64_t kNamesReach = 1000;

// Plog lines of a level that tells no trouble; most lines of most plogs.
bool IsQuiet(std::string_view line) {
  return line.starts_with("[INFO]") || line.starts_with("[DEBUG]") ||
         line.starts_with("[EVENT]") || line.starts_with("[TRACE]");
}

bool IsCalm(Level level) {
  return level == Level::kDebug || level == Level::kInfo ||
         level == Level::kEvent || level == Level::kWarning;
}

// Colours of a terminal ("\x1b[31m") may stand between the words that belong
// together.
void RemoveColours(std::string_view line, std::string& out) {
  out.clear();
  while (!line.empty()) {
    const size_t escape = line.find("\x1b[");
    out += line.substr(0, escape);
    if (escape == std::string_view::npos) return;
    const size_t end = line.find_first_not_of("0123456789;?", escape + 2);
    if (end == std::string_view::npos) return;
    line.remove_prefix(end + 1);
  }
}

// The digits behind `name`; -1 if there are none.
int NumberBehind(std::string_view line, std::string_view name) {
  const size_t at = line.find(name);
  if (at == std::string_view::npos) return -1;
  int number = -1;
  size_t n = 0;
  for (const char c : line.substr(at + name.size())) {
    if (c < '0' || c > '9' || ++n > 6) break;
    number = std::max(number, 0) * 10 + (c - '0');
  }
  return number;
}

std::string_view Trim(std::string_view text) {
  const size_t start = text.find_first_not_of(" \t\r");
  if (start == std::string_view::npos) return "";
  return text.substr(start, text.find_last_not_of(" \t\r") - start + 1);
}

bool IsSick(std::string_view health) {
  return health == "Warning" || health == "Alarm" || health == "Critical";
}

bool IsVersionByte(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
         (c >= 'A' && c <= 'Z') || c == '.' || c == '+' || c == '-';
}

// Codes that say less than their entry: 507048 is how a wait for another rank
// ends, EZ9903 that a launch failed because of something earlier.
Tier TierOfCode(const diag::Entry& entry, std::string_view code) {
  if (code == "507048") return Tier::kEffect;
  return code == "EZ9903" ? Tier::kWrapper : TierOf(entry.id);
}

bool AreFarApart(const std::optional<TimeStamp>& a,
                 const std::optional<TimeStamp>& b) {
  return a && b && a->has_year == b->has_year &&
         (a->us > b->us ? a->us - b->us : b->us - a->us) > kBlockGapUs;
}

}  // namespace

Scanner::Scanner(const Knowledge& knowledge, std::string name)
    : knowledge_(knowledge) {
  facts_.name = std::move(name);
  FactsFromName(facts_);
}

void Scanner::Feed(std::string_view bytes) {
  facts_.n_bytes += bytes.size();
  while (!bytes.empty()) {
    const size_t newline = bytes.find('\n');
    const std::string_view piece = bytes.substr(0, newline);
    if (skipping_) {
      // The rest of a line that was looked at already.
    } else if (newline != std::string_view::npos && partial_.empty() &&
               piece.size() <= kMaxLineBytes) {
      Line(piece);
    } else {
      const size_t room = kMaxLineBytes - partial_.size();
      partial_.append(piece.substr(0, room));
      if (piece.size() > room) {
        ++facts_.n_cut_lines;
        Line(partial_);
        partial_.clear();
        skipping_ = true;
      } else if (newline != std::string_view::npos) {
        Line(partial_);
        partial_.clear();
      }
    }
    if (newline == std::string_view::npos) return;
    skipping_ = false;
    bytes.remove_prefix(newline + 1);
  }
}

void Scanner::End() {
  if (!partial_.empty()) Line(partial_);
  partial_.clear();
}

void Scanner::Line(std::string_view line) {
  ++facts_.n_lines;
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  const bool wants_anchor = n_anchor_lines_ < kAnchorLines;
  if (IsQuiet(line)) {
    if (wants_anchor) AnchorLine(ParseHead(line), line);
    return;
  }
  if (line.find('\x1b') != std::string_view::npos) {
    RemoveColours(line, plain_);
    line = plain_;
  }
  knowledge_.rules.Find(line, found_);
  const bool in_traceback = traceback_lines_ >= 0;
  if (!found_.any() && !in_traceback && !wants_anchor) return;
  const LineHead head = ParseHead(line);
  if (wants_anchor) AnchorLine(head, line);
  if (in_traceback) TracebackLine(line.substr(head.n_chars), head);
  if (found_.any()) Interesting(line, head);
}

// Digits differ between ranks (addresses, counts, process ids), so that a line
// is known by its words, and by how often they were said before.
void Scanner::AnchorLine(const LineHead& head, std::string_view line) {
  if (!head.time) return;
  ++n_anchor_lines_;
  if (!facts_.first_time) facts_.first_time = head.time;
  if (facts_.anchors.size() >= kMaxAnchors) return;
  uint64_t hash = 1469598103934665603ULL;
  for (const char c : line.substr(head.n_chars, 160)) {
    if (c >= '0' && c <= '9') continue;
    hash = (hash ^ static_cast<uint8_t>(c)) * 1099511628211ULL;
  }
  const uint32_t n_before = anchor_counts_[hash]++;
  facts_.anchors.push_back(
      {hash + n_before * 0x9e3779b97f4a7c15ULL, head.time->us});
}

void Scanner::TracebackLine(std::string_view message, const LineHead& head) {
  if (++traceback_lines_ > kTracebackLines || message.empty()) {
    traceback_lines_ = message.empty() ? traceback_lines_ : -1;
    return;
  }
  if (message[0] == '[') {  // "[core.py:12] RuntimeError: ..."
    const size_t end = message.find("] ");
    if (end > 80) return;  // or there is none
    message.remove_prefix(end + 2);
    message.remove_prefix(
        std::min(message.find_first_not_of(' '), message.size()));
    if (message.empty()) return;
  }
  // Frames are indented, and the head has taken the blanks: look at the words.
  const bool is_frame =
      message.starts_with("File \"") || message[0] == '^' || message[0] == '~';
  if (is_frame) return;
  const size_t colon = message.find(':');
  const std::string_view name = message.substr(0, colon);
  const bool is_name =
      !name.empty() && name.size() < 100 &&
      name.find_first_of(" (=\"'") == std::string_view::npos &&
      (name.ends_with("Error") || name.ends_with("Exception") ||
       name.ends_with("Exit") || name.ends_with("Interrupt") ||
       name.find("Error_") != std::string_view::npos);
  if (!is_name) return;
  traceback_lines_ = -1;
  AddSuspicious(5, message, head);
}

size_t Scanner::BlockFor(const LineHead& head) {
  const uint64_t line = facts_.n_lines;
  auto open = open_blocks_.find(head.pid);
  // The first lines of a trouble often lack the process that later ones name.
  if (open == open_blocks_.end()) {
    const auto nobody = open_blocks_.find(-1);
    if (nobody != open_blocks_.end() &&
        line - facts_.blocks[nobody->second].last_line <= kNeighbours) {
      open = open_blocks_.emplace(head.pid, nobody->second).first;
    } else if (head.pid < 0 && current_block_ < facts_.blocks.size() &&
               line - facts_.blocks[current_block_].last_line <= kNeighbours) {
      open = open_blocks_.emplace(-1, current_block_).first;
    }
  }
  if (open != open_blocks_.end()) {
    Block& block = facts_.blocks[open->second];
    if (line - block.last_line <= kBlockReach &&
        !AreFarApart(block.last_time, head.time)) {
      block.last_line = line;
      if (head.time) block.last_time = head.time;
      return open->second;
    }
  }
  if (facts_.blocks.size() >= kMaxBlocks) return facts_.blocks.size() - 1;
  if (open_blocks_.size() > 1000) open_blocks_.clear();
  Block block;
  block.first_line = block.last_line = line;
  block.last_time = head.time;
  facts_.blocks.push_back(std::move(block));
  open_blocks_[head.pid] = facts_.blocks.size() - 1;
  return facts_.blocks.size() - 1;
}

// Counts it; of many alike only the first are kept, and cost time.
bool Scanner::IsKept(const diag::Entry* entry) {
  return ++facts_.counts[entry] <= kMaxEventsOfEntry;
}

void Scanner::AddEvent(Event event, const LineHead& head,
                       std::string_view line) {
  event.line = facts_.n_lines;
  event.text = TextOf(line);
  event.time = head.time;
  event.pid = head.pid;
  event.rank = head.rank;
  event.device = head.device;
  event.block = current_block_;
  facts_.events.push_back(std::move(event));
}

void Scanner::AddSuspicious(int score, std::string_view line,
                            const LineHead& head) {
  auto& list = facts_.suspicious;
  if (list.size() >= kMaxSuspicious) {
    // The early ones tell more; only a worse line pushes out the mildest.
    const auto mildest = std::min_element(
        list.begin(), list.end(), [](const auto& a, const auto& b) {
          return std::pair(a.score, b.line) < std::pair(b.score, a.line);
        });
    if (mildest->score >= score) return;
    list.erase(mildest);
  }
  list.push_back({score, facts_.n_lines, TextOf(line), head.time});
}

void Scanner::AddContext(std::string_view line) {
  Block& block = facts_.blocks[current_block_];
  if (block.context.size() + kMaxTextBytes < kMaxContextBytes) {
    block.context += line.substr(0, kMaxTextBytes);
    block.context += '\n';
  }
  // What names neither in so many lines does not do so later; looking costs
  // more than everything else.
  if (facts_.n_lines - block.first_line > kNamesReach) return;
  if (block.op.empty()) block.op = OperatorIn(line);
  if (block.blamed.empty()) block.blamed = BlamedIn(line);
}

int Scanner::ScoreOf(const LineHead& head) const {
  if (found_.has(Trigger::kFatal) && !IsCalm(head.level)) return 6;
  if (head.level == Level::kFatal) return 6;
  if (head.level == Level::kError) return head.is_kernel ? 5 : 4;
  return 0;
}

// `own` is the head of this line; where it has none, that of a line shortly
// before it holds.
void Scanner::Interesting(std::string_view line, const LineHead& own) {
  LineHead head = own;
  // torch_npu's "(PID:9, Device:3, RankID:3)" behind the head of an engine.
  if (own.time && own.rank < 0 && own.module.empty() &&
      line.find(", RankID:") != line.npos) {
    head.rank = NumberBehind(line, ", RankID:");
    head.device = NumberBehind(line, ", Device:");
  }
  const bool has_head = own.time || own.level != Level::kNone || own.pid >= 0;
  if (found_.has(Trigger::kAscend)) facts_.has_ascend = true;
  if (found_.has(Trigger::kVersion)) AddVersions(line);
  if (found_.has(Trigger::kTraceback)) traceback_lines_ = 0;
  if (has_head) {
    if (own.time) facts_.last_time = own.time;
    if (own.pid >= 0 && head.rank >= 0 &&
        facts_.rank_and_device.size() < 4096) {
      facts_.rank_and_device[own.pid] = {head.rank, head.device};
    }
  }
  const bool is_near =
      last_head_line_ > 0 && facts_.n_lines - last_head_line_ <= kHeadReach;
  if (!head.time && is_near) {
    head.time = last_head_.time;
    if (head.pid < 0) head.pid = last_head_.pid;
    if (head.rank < 0 && head.pid == last_head_.pid) {
      head.rank = last_head_.rank;
    }
    if (head.device < 0 && head.pid == last_head_.pid) {
      head.device = last_head_.device;
    }
    if (head.level == Level::kNone && !last_head_.is_kernel &&
        !IsCalm(last_head_.level)) {
      head.level = last_head_.level;
    }
  }
  const bool matters = !found_.rules.empty() || found_.has(Trigger::kError) ||
                       found_.has(Trigger::kFatal) || found_.has(Trigger::kSmi);
  if (!matters) return;
  if (own.time) {
    last_head_ = head;
    last_head_line_ = facts_.n_lines;
  }

  bool is_explained = false;
  const std::string_view message = line.substr(own.n_chars);
  current_block_ = BlockFor(head);
  if (!IsCalm(own.level)) {
    for (FoundCode& code : knowledge_.codes.Find(message, own.module)) {
      if (code.entry == nullptr) continue;
      is_explained = true;
      if (!IsKept(code.entry)) continue;
      Event event;
      event.entry = code.entry;
      event.tier = TierOfCode(*code.entry, code.text);
      event.codes.push_back(std::move(code.text));
      AddEvent(std::move(event), head, line);
    }
  }
  for (const Rule* rule : found_.rules) {
    Event event;
    event.entry = knowledge_.catalogue.Find(rule->id);
    if (event.entry == nullptr) continue;  // a test holds the table
    is_explained = true;
    if (!IsKept(event.entry)) continue;
    event.tier = TierOf(rule->id);
    event.is_weak = (rule->flags & Rule::kWeak) != 0 || IsCalm(own.level);
    event.needs_ascend = (rule->flags & Rule::kNeedsAscend) != 0;
    AddEvent(std::move(event), head, line);
  }
  if (found_.has(Trigger::kSmi)) SmiRow(line, head);
  AddContext(line);
  const int score = ScoreOf(own);
  if (!is_explained && score > 0) AddSuspicious(score, line, head);
}

void Scanner::SmiRow(std::string_view line, const LineHead& head) {
  std::string_view health;
  if (line.starts_with('|')) {
    const size_t second = line.find('|', 1);
    if (second == std::string_view::npos) return;
    std::string_view rest = line.substr(second + 1);
    health = Trim(rest.substr(0, rest.find('|')));
    // The 950 has the NPU's number in a cell of its own.
    if (!IsSick(health) && rest.find('|') != std::string_view::npos) {
      rest = rest.substr(rest.find('|') + 1);
      health = Trim(rest.substr(0, rest.find('|')));
    }
  } else if (line.find("Health Status") != std::string_view::npos) {
    const size_t colon = line.find(':');
    if (colon != std::string_view::npos) health = Trim(line.substr(colon + 1));
  }
  if (!IsSick(health)) return;
  facts_.has_ascend = true;
  Event event;
  event.entry = knowledge_.catalogue.Find("ISSUE-126");
  if (event.entry == nullptr || !IsKept(event.entry)) return;
  event.tier = TierOf(event.entry->id);
  AddEvent(std::move(event), head, line);
}

void Scanner::AddVersions(std::string_view line) {
  static constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"torch-npu==", "torch_npu"},
      {"torch_npu==", "torch_npu"},
      {"vllm-ascend==", "vllm-ascend"},
      {"vllm_ascend==", "vllm-ascend"},
      {"vLLM Ascend Version: ", "vllm-ascend"},
      {"vLLM Version: ", "vllm"},
      {"PyTorch version: ", "torch"},
      {"npu-smi ", "npu-smi"},
      {"Ascend-cann-toolkit version=", "CANN"},
      {"CANN version: ", "CANN"},
      {"CANN Version: ", "CANN"},
      {"package_version=", "driver"},
      {"driver version: ", "driver"}};
  for (const auto& [cue, name] : kNames) {
    const size_t at = line.find(cue);
    if (at == std::string_view::npos) continue;
    std::string_view version = line.substr(at + cue.size());
    size_t n = 0;
    while (n < version.size() && n < 40 && IsVersionByte(version[n])) ++n;
    version = version.substr(0, n);
    if (version.empty() || version[0] < '0' || version[0] > '9') continue;
    facts_.versions.emplace(std::string(name), std::string(version));
  }
}

}  // namespace belay::logs
