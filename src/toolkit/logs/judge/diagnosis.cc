// SPDX-License-Identifier: Apache-2.0
#include "toolkit/logs/judge/diagnosis.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

#include "toolkit/logs/judge/clocks.h"

namespace belay::logs {
namespace {

constexpr int64_t kSecond = 1000000;
constexpr int64_t kSameMomentUs = 10 * kSecond;  // one trouble in several files
constexpr size_t kMaxContext = size_t{64} << 10;
constexpr size_t kMaxShown = 20;  // suspicious lines

// What an incident is, by its best event.
enum class Class : uint8_t { kReal, kVague, kWait, kEffect };

// An event with what other files tell about it.
struct Dated {
  const Event* event = nullptr;
  size_t file = 0;
  size_t incident = 0;
  std::optional<int64_t> us;  // corrected
  bool is_guess = false;      // the time of a neighbour
  int rank = -1, device = -1;
};

// A block, or several of one process in several files.
struct Incident {
  std::vector<size_t> events;  // indices, in the order of file and line
  std::vector<const Block*> blocks;
  std::optional<int64_t> start_us;
  int rank = -1, pid = -1, device = -1;
  size_t file = 0;
  uint64_t line = 0;
  Tier best = Tier::kWait;
  Class kind = Class::kEffect;
};

class Judge {
 public:
  Judge(const std::vector<FileFacts>& files, const diag::Catalogue& catalogue)
      : files_(files), catalogue_(catalogue) {}

  Diagnosis Run() {
    Summarize();
    Date();
    GuessTimes();
    MakeIncidents();
    DropHints();
    MergeIncidents();
    Classify();
    CountBlames();
    const std::optional<size_t> first = FirstIncident();
    if (first) ChooseFirst(incidents_[*first]);
    MakeFindings();
    MakeRanks();
    MakeSuspicious();
    return std::move(out_);
  }

 private:
  void Summarize() {
    offsets_ = FindClockOffsets(files_);
    std::map<int, int> n_of_year;
    std::map<int, std::set<int>> ranks_of_pid;
    for (size_t f = 0; f < files_.size(); ++f) {
      const FileFacts& file = files_[f];
      out_.n_bytes += file.n_bytes;
      out_.n_lines += file.n_lines;
      out_.n_cut_lines += file.n_cut_lines;
      out_.has_ascend |= file.has_ascend;
      for (const auto& [name, version] : file.versions) {
        out_.versions.emplace(name, version);
      }
      for (const Event& event : file.events) {
        if (event.time && event.time->has_year) {
          ++n_of_year[YearOf(event.time->us)];
        }
      }
      for (const auto& [pid, rank] : file.rank_and_device) {
        ranks_of_pid[pid].insert(rank.first);
        devices_[pid] = rank.second;
      }
      out_.files.push_back({file.name, file.n_bytes, file.n_lines, file.rank,
                            offsets_[f].us, offsets_[f].n_common});
    }
    // Processes of several machines may share a number: then it tells nothing.
    for (const auto& [pid, ranks] : ranks_of_pid) {
      if (ranks.size() == 1) ranks_[pid] = *ranks.begin();
    }
    int most = 0;
    for (const auto& [year, n] : n_of_year) {
      if (n > most) std::tie(year_, most) = std::pair(year, n);
    }
  }

  std::optional<int64_t> TimeOf(const std::optional<TimeStamp>& time,
                                size_t file) const {
    if (!time) return std::nullopt;
    const int64_t us =
        !time->has_year && year_ > 0 ? WithYear(time->us, year_) : time->us;
    return us - offsets_[file].us;
  }

  void Date() {
    for (size_t f = 0; f < files_.size(); ++f) {
      const FileFacts& file = files_[f];
      for (const Event& event : file.events) {
        if (event.needs_ascend && !out_.has_ascend) continue;
        Dated dated;
        dated.event = &event;
        dated.file = f;
        dated.us = TimeOf(event.time, f);
        dated.rank = event.rank;
        dated.device = event.device;
        const int pid = event.pid >= 0 ? event.pid : file.pid;
        if (dated.rank < 0 && ranks_.contains(pid)) dated.rank = ranks_[pid];
        if (dated.rank < 0) dated.rank = file.rank;
        if (dated.device < 0 && devices_.contains(pid)) {
          dated.device = devices_[pid];
        }
        if (dated.device < 0) dated.device = file.device;
        events_.push_back(dated);
      }
    }
  }

  // An event without a time happened after the one before it in its file, or
  // before the first that has one.
  void GuessTimes() {
    std::optional<int64_t> last;
    size_t file = SIZE_MAX;
    const auto fill = [&](Dated& dated) {
      if (dated.file != file) last.reset();
      file = dated.file;
      if (dated.us) {
        if (!dated.is_guess) last = dated.us;
      } else if (last) {
        dated.us = last;
        dated.is_guess = true;
      }
    };
    for (Dated& dated : events_) fill(dated);
    file = SIZE_MAX;
    for (size_t i = events_.size(); i-- > 0;) fill(events_[i]);
  }

  void MakeIncidents() {
    std::map<std::pair<size_t, size_t>, size_t> index;  // file, block
    for (size_t i = 0; i < events_.size(); ++i) {
      Dated& dated = events_[i];
      const auto key = std::pair(dated.file, dated.event->block);
      const auto [at, is_new] = index.emplace(key, incidents_.size());
      if (is_new) {
        Incident incident;
        incident.file = dated.file;
        incident.line = dated.event->line;
        const auto& blocks = files_[dated.file].blocks;
        if (dated.event->block < blocks.size()) {
          incident.blocks.push_back(&blocks[dated.event->block]);
        }
        incidents_.push_back(std::move(incident));
      }
      Incident& incident = incidents_[at->second];
      incident.events.push_back(i);
      if (incident.rank < 0) incident.rank = dated.rank;
      if (incident.pid < 0) incident.pid = dated.event->pid;
      if (incident.device < 0) incident.device = dated.device;
      if (dated.us && (!incident.start_us || *dated.us < *incident.start_us)) {
        incident.start_us = dated.us;
      }
    }
  }

  // A hint beside something that says more is dropped.
  void DropHints() {
    for (Incident& incident : incidents_) {
      const auto says_more = [&](size_t i) {
        const Event& event = *events_[i].event;
        return !event.is_weak &&
               (event.tier <= Tier::kSymptom || event.tier == Tier::kWait);
      };
      if (std::none_of(incident.events.begin(), incident.events.end(),
                       says_more)) {
        continue;
      }
      std::set<const diag::Entry*> strong;
      for (const size_t i : incident.events) {
        if (!events_[i].event->is_weak) strong.insert(events_[i].event->entry);
      }
      std::erase_if(incident.events, [&](size_t i) {
        const Event& event = *events_[i].event;
        return event.is_weak && !strong.contains(event.entry);
      });
    }
  }

  // What one process says in several files at one moment is one incident.
  void MergeIncidents() {
    std::vector<size_t> order(incidents_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    const auto key = [&](size_t i) {
      const Incident& a = incidents_[i];
      const int who = a.rank >= 0 ? a.rank : a.pid;
      return std::tuple(a.rank >= 0, who, a.start_us.value_or(0), a.file,
                        a.line);
    };
    std::sort(order.begin(), order.end(),
              [&](size_t a, size_t b) { return key(a) < key(b); });
    std::vector<Incident> merged;
    for (const size_t i : order) {
      Incident& next = incidents_[i];
      Incident* last = merged.empty() ? nullptr : &merged.back();
      const bool same_actor =
          last != nullptr &&
          (next.rank >= 0
               ? last->rank == next.rank
               : last->rank < 0 && next.pid >= 0 && last->pid == next.pid);
      const bool same_moment =
          last != nullptr && last->start_us && next.start_us &&
          *next.start_us - *last->start_us <= kSameMomentUs;
      if (same_actor && same_moment) {
        last->events.insert(last->events.end(), next.events.begin(),
                            next.events.end());
        last->blocks.insert(last->blocks.end(), next.blocks.begin(),
                            next.blocks.end());
      } else {
        merged.push_back(std::move(next));
      }
    }
    incidents_ = std::move(merged);
    for (size_t i = 0; i < incidents_.size(); ++i) {
      for (const size_t e : incidents_[i].events) events_[e].incident = i;
    }
  }

  void Classify() {
    for (Incident& incident : incidents_) {
      bool waits = false;
      for (const size_t i : incident.events) {
        const Tier tier = events_[i].event->tier;
        waits |= tier == Tier::kWait;
        incident.best = std::min(incident.best, tier);
      }
      // A wait shows symptoms below it as well: the call that waited failed.
      if (incident.best < Tier::kSymptom ||
          (incident.best == Tier::kSymptom && !waits)) {
        incident.kind = Class::kReal;
      } else if (waits) {
        incident.kind = Class::kWait;
      } else {
        incident.kind =
            incident.best == Tier::kWrapper ? Class::kVague : Class::kEffect;
      }
    }
  }

  void CountBlames() {
    std::map<int, int> blames;
    for (const Incident& incident : incidents_) {
      if (incident.kind != Class::kWait) continue;
      ++n_waits_;
      std::set<int> once;
      for (const Block* block : incident.blocks) {
        once.insert(block->blamed.begin(), block->blamed.end());
      }
      for (const int rank : once) ++blames[rank];
    }
    out_.blamed.assign(blames.begin(), blames.end());
    std::stable_sort(
        out_.blamed.begin(), out_.blamed.end(),
        [](const auto& a, const auto& b) { return a.second > b.second; });
    if (out_.blamed.size() > 64) out_.blamed.resize(64);
  }

  // Where it stands in time. Without any time a root cause counts as early and
  // all else as late.
  int64_t WhenOf(const Incident& incident) const {
    if (incident.start_us) return *incident.start_us;
    return incident.best == Tier::kRoot ? std::numeric_limits<int64_t>::min()
                                        : std::numeric_limits<int64_t>::max();
  }

  bool IsEarlier(const Incident& a, const Incident& b) const {
    return std::tuple(a.kind, WhenOf(a), a.file, a.line) <
           std::tuple(b.kind, WhenOf(b), b.file, b.line);
  }

  std::optional<size_t> FirstIncident() const {
    std::optional<size_t> first;
    for (size_t i = 0; i < incidents_.size(); ++i) {
      if (incidents_[i].events.empty()) continue;
      if (!first || IsEarlier(incidents_[i], incidents_[*first])) first = i;
    }
    // If most who wait name one rank, and that rank shows a trouble of its own,
    // that is the cause, whatever the clocks say.
    if (out_.blamed.empty() || n_waits_ < 2 ||
        out_.blamed[0].second * 5 < n_waits_ * 3) {
      return first;
    }
    std::optional<size_t> of_blamed;
    for (size_t i = 0; i < incidents_.size(); ++i) {
      const Incident& incident = incidents_[i];
      if (incident.rank != out_.blamed[0].first ||
          incident.kind != Class::kReal) {
        continue;
      }
      if (!of_blamed || IsEarlier(incident, incidents_[*of_blamed])) {
        of_blamed = i;
      }
    }
    return of_blamed ? of_blamed : first;
  }

  // Within an incident the nearest to the cause, then the earliest; where
  // everything is a wait, the wait.
  std::tuple<int, int64_t, size_t, uint64_t> RankOf(const Dated& dated,
                                                    Class kind) const {
    const Tier tier = dated.event->tier;
    int order = static_cast<int>(tier);
    if (kind == Class::kWait && tier == Tier::kWait) {
      // HCCL's bare number says less than the words beside it.
      order = dated.event->entry->id.starts_with("HCCL-") ? -1 : -2;
    }
    return {order, dated.us.value_or(0), dated.file, dated.event->line};
  }

  void ChooseFirst(const Incident& incident) {
    first_ = incident.events[0];
    for (const size_t i : incident.events) {
      if (RankOf(events_[i], incident.kind) <
          RankOf(events_[*first_], incident.kind)) {
        first_ = i;
      }
    }
    out_.has_first = true;
    out_.only_waits = incident.kind == Class::kWait;
  }

  Place PlaceOf(const Dated& dated) const {
    const Event& event = *dated.event;
    Place place;
    place.file = files_[dated.file].name;
    place.line = event.line;
    place.text = event.text;
    place.us = dated.us;
    if (dated.us && !dated.is_guess) {
      place.time = FormatTime({*dated.us, event.time->has_year || year_ > 0});
    }
    // A line that names neither belongs to the process of those beside it.
    const Incident& incident = incidents_[dated.incident];
    place.rank = dated.rank >= 0 ? dated.rank : incident.rank;
    place.device = dated.device >= 0 ? dated.device : incident.device;
    place.pid = event.pid;
    return place;
  }

  static void AddOnce(std::vector<std::string>& list, const std::string& item) {
    if (list.size() < 16 &&
        std::find(list.begin(), list.end(), item) == list.end()) {
      list.push_back(item);
    }
  }

  void MakeFindings() {
    struct Group {
      size_t first;
      std::set<int> ranks;
      std::set<size_t> incidents;
      std::vector<std::string> codes;
    };
    std::map<const diag::Entry*, Group> groups;
    for (const Incident& incident : incidents_) {
      for (const size_t i : incident.events) {
        const Dated& dated = events_[i];
        const auto [at, is_new] =
            groups.emplace(dated.event->entry, Group{i, {}, {}, {}});
        Group& group = at->second;
        if (!is_new && IsBefore(i, group.first)) group.first = i;
        if (dated.rank >= 0) group.ranks.insert(dated.rank);
        group.incidents.insert(dated.incident);
        for (const auto& code : dated.event->codes) AddOnce(group.codes, code);
      }
    }
    std::vector<size_t> order;
    for (auto& [entry, group] : groups) {
      if (first_ && events_[*first_].event->entry == entry) {
        group.first = *first_;
      }
      order.push_back(group.first);
    }
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
      if (first_ && (a == *first_) != (b == *first_)) return a == *first_;
      return IsBefore(a, b);
    });
    for (const size_t i : order) {
      const Dated& dated = events_[i];
      const Group& group = groups.at(dated.event->entry);
      Finding finding;
      finding.entry = dated.event->entry;
      finding.tier = dated.event->tier;
      finding.place = PlaceOf(dated);
      finding.codes = group.codes;
      finding.ranks.assign(group.ranks.begin(), group.ranks.end());
      for (const FileFacts& file : files_) {
        const auto count = file.counts.find(finding.entry);
        if (count != file.counts.end()) finding.count += count->second;
      }
      finding.role = RoleOf(i);
      std::string context;
      // The first incident's words come first; of thousands a few will do.
      AddContext(incidents_[dated.incident], finding, context);
      for (const size_t n : group.incidents) {
        if (context.size() < kMaxContext) {
          AddContext(incidents_[n], finding, context);
        }
      }
      finding.known = KnownIssues(catalogue_, finding, context, out_.versions);
      out_.findings.push_back(std::move(finding));
    }
  }

  static void AddContext(const Incident& incident, Finding& finding,
                         std::string& context) {
    for (const Block* block : incident.blocks) {
      if (context.size() < kMaxContext) context += block->context;
      if (finding.op.empty()) finding.op = block->op;
    }
  }

  bool IsBefore(size_t a, size_t b) const {
    const Dated& x = events_[a];
    const Dated& y = events_[b];
    constexpr int64_t kLate = std::numeric_limits<int64_t>::max();
    return std::tuple(x.us.value_or(kLate), x.file, x.event->line,
                      x.event->tier) < std::tuple(y.us.value_or(kLate), y.file,
                                                  y.event->line, y.event->tier);
  }

  Role RoleOf(size_t i) const {
    if (first_ && i == *first_) return Role::kFirst;
    const Dated& first = events_[*first_];
    const Dated& dated = events_[i];
    const bool is_earlier = dated.us && first.us && *dated.us < *first.us &&
                            dated.incident != first.incident;
    return is_earlier ? Role::kBefore : Role::kFollows;
  }

  void MakeRanks() {
    std::map<int, const Incident*> firsts;
    for (const Incident& incident : incidents_) {
      if (incident.rank < 0 || incident.events.empty()) continue;
      const Incident*& first = firsts[incident.rank];
      if (first == nullptr || IsEarlier(incident, *first)) first = &incident;
    }
    for (const auto& [rank, incident] : firsts) {
      size_t best = incident->events[0];
      for (const size_t i : incident->events) {
        if (RankOf(events_[i], incident->kind) <
            RankOf(events_[best], incident->kind)) {
          best = i;
        }
      }
      const auto found = std::find_if(
          out_.findings.begin(), out_.findings.end(), [&](const Finding& f) {
            return f.entry == events_[best].event->entry;
          });
      out_.ranks.push_back({rank,
                            static_cast<size_t>(found - out_.findings.begin()),
                            PlaceOf(events_[best])});
    }
  }

  void MakeSuspicious() {
    struct Line {
      const Suspicious* what;
      size_t file;
      std::optional<int64_t> us;
    };
    std::vector<Line> lines;
    for (size_t f = 0; f < files_.size(); ++f) {
      for (const Suspicious& one : files_[f].suspicious) {
        lines.push_back({&one, f, TimeOf(one.time, f)});
      }
    }
    std::sort(lines.begin(), lines.end(), [](const Line& a, const Line& b) {
      constexpr int64_t kLate = std::numeric_limits<int64_t>::max();
      return std::tuple(-a.what->score, a.us.value_or(kLate), a.file,
                        a.what->line) < std::tuple(-b.what->score,
                                                   b.us.value_or(kLate), b.file,
                                                   b.what->line);
    });
    if (lines.size() > kMaxShown) lines.resize(kMaxShown);
    for (const Line& line : lines) {
      Place place;
      place.file = files_[line.file].name;
      place.line = line.what->line;
      place.text = line.what->text;
      place.us = line.us;
      if (line.us) {
        place.time =
            FormatTime({*line.us, line.what->time->has_year || year_ > 0});
      }
      place.rank = files_[line.file].rank;
      out_.suspicious.emplace_back(std::move(place), line.what->score);
    }
  }

  const std::vector<FileFacts>& files_;
  const diag::Catalogue& catalogue_;
  std::vector<ClockOffset> offsets_;
  std::map<int, int> ranks_, devices_;  // by pid
  int year_ = 0;                        // of times without one; 0: unknown
  std::vector<Dated> events_;
  std::vector<Incident> incidents_;
  std::optional<size_t> first_;
  int n_waits_ = 0;
  Diagnosis out_;
};

}  // namespace

std::string_view NameOf(Role role) {
  static constexpr std::string_view kNames[] = {"first_cause", "follows",
                                                "before"};
  return kNames[static_cast<size_t>(role)];
}

Diagnosis Diagnose(const std::vector<FileFacts>& files,
                   const diag::Catalogue& catalogue) {
  return Judge(files, catalogue).Run();
}

}  // namespace belay::logs
