// SPDX-License-Identifier: Apache-2.0
#include "toolkit/tune/apply.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <system_error>

#include "base/error_ids.h"
#include "base/error_ids_toolkit.h"
#include "base/file.h"

namespace belay::tune {
namespace {

constexpr size_t kMaxRecordBytes = size_t{64} << 20;

std::string BootOf(doctor::Machine& machine) {
  return doctor::Trimmed(
      machine.Read("/proc/sys/kernel/random/boot_id").value_or(""));
}

std::string NowOf(doctor::Machine& machine, const std::string& path) {
  return ValueOf(machine.Read(path).value_or(""));
}

// With fsync(): the machine may go down while settings are tried.
Status Save(const Journal& journal, const std::string& path) {
  BELAY_ASSIGN_OR_RETURN(const auto file, AtomicFileWriter::Create(path));
  const std::string text = JournalToJson(journal);
  BELAY_RETURN_IF_ERROR(file->Append(std::as_bytes(std::span(text))));
  return file->Commit();
}

// An earlier record that is still in effect is not overwritten: it alone knows
// the state before all tuning.
Status CheckRecord(const std::string& path, const std::string& boot) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return absl::OkStatus();
  BELAY_ASSIGN_OR_RETURN(const std::string text,
                         ReadFile(path, kMaxRecordBytes));
  BELAY_ASSIGN_OR_RETURN(const Journal old, ParseJournal(text, path));
  if (old.boot != boot || !old.is_open()) return absl::OkStatus();
  return MakeError(kTuneAlready,
                   {.where = path,
                    .what = "",
                    .expected = "",
                    .got = fmt::format("{} settings", old.changes.size())});
}

class Tuner {
 public:
  Tuner(Target host, const ApplyOptions& options)
      : host_(host), options_(options) {}

  StatusOr<std::vector<TopicResult>> Run(const Plan& plan) {
    if (plan.settings.empty()) return std::vector<TopicResult>();
    journal_.boot = BootOf(host_.machine);
    BELAY_RETURN_IF_ERROR(CheckRecord(options_.record, journal_.boot));
    for (const Setting& setting : plan.settings) {
      journal_.changes.push_back({setting, ChangeState::kPlanned});
    }
    std::vector<TopicResult> results;
    BELAY_RETURN_IF_ERROR(Save(journal_, options_.record));
    for (const Topic topic : kTopics) {
      TopicResult result;
      result.topic = topic;
      const Status status = Try(result);
      if (!status.ok()) {
        UndoAll();
        BELAY_RETURN_IF_ERROR(Finish());
        return status;
      }
      if (result.n_changed > 0 || !result.refusals.empty()) {
        results.push_back(std::move(result));
      }
    }
    BELAY_RETURN_IF_ERROR(Finish());
    return results;
  }

 private:
  bool IsStopped() const { return options_.stop != nullptr && *options_.stop; }
  static Status Stopped() {
    return MakeError(
        kSysInterrupted,
        {.where = "belay tune", .what = "", .expected = "", .got = ""});
  }

  Status Measure(std::vector<double>& runs) const {
    if (IsStopped()) return Stopped();
    if (!options_.measure) return absl::OkStatus();
    BELAY_ASSIGN_OR_RETURN(runs, options_.measure());
    return IsStopped() ? Stopped() : absl::OkStatus();
  }

  Status Try(TopicResult& result) {
    const auto is_mine = [&](const Change& change) {
      return change.setting.topic == result.topic;
    };
    if (std::none_of(journal_.changes.begin(), journal_.changes.end(),
                     is_mine)) {
      return absl::OkStatus();
    }
    BELAY_RETURN_IF_ERROR(Measure(result.before));
    for (Change& change : journal_.changes) {
      if (!is_mine(change)) continue;
      if (IsStopped()) return Stopped();
      if (Write(change, result)) ++result.n_changed;
    }
    if (result.n_changed == 0) return absl::OkStatus();
    BELAY_RETURN_IF_ERROR(Measure(result.after));
    result.is_kept = !options_.measure || Helps(result.before, result.after);
    for (size_t i = journal_.changes.size(); i-- > 0;) {
      Change& change = journal_.changes[i];
      if (!is_mine(change) || change.state != ChangeState::kApplied) continue;
      if (result.is_kept) {
        change.state = ChangeState::kKept;
      } else {
        Undo(change);
      }
    }
    return Save(journal_, options_.record);
  }

  // Writes and reads back. What the kernel did not take is put back at once.
  bool Write(Change& change, TopicResult& result) {
    const Setting& setting = change.setting;
    const Status status = host_.writer.Write(setting.path, setting.wanted);
    const std::string now = NowOf(host_.machine, setting.path);
    if (status.ok() && now == setting.wanted) {
      change.state = ChangeState::kApplied;
      return true;
    }
    result.refusals.push_back(
        {setting.path, status.ok()
                           ? fmt::format("{} became {}", setting.wanted, now)
                           : DetailOf(status)});
    Undo(change);
    return false;
  }

  static std::string DetailOf(const Status& status) {
    return std::string(status.message());
  }

  void Undo(Change& change) {
    const Setting& setting = change.setting;
    if (NowOf(host_.machine, setting.path) != setting.now) {
      (void)host_.writer.Write(setting.path, setting.now);
    }
    // Else it stays open in the record, for --revert to try and to tell.
    if (NowOf(host_.machine, setting.path) == setting.now) {
      change.state = ChangeState::kUndone;
    }
  }

  void UndoAll() {
    for (size_t i = journal_.changes.size(); i-- > 0;) {
      if (journal_.changes[i].state != ChangeState::kUndone) {
        Undo(journal_.changes[i]);
      }
    }
  }

  Status Finish() {
    if (journal_.is_open()) return Save(journal_, options_.record);
    std::error_code error;
    std::filesystem::remove(options_.record, error);
    return absl::OkStatus();
  }

  Target host_;
  const ApplyOptions& options_;
  Journal journal_;
};

}  // namespace

bool Helps(const std::vector<double>& before,
           const std::vector<double>& after) {
  if (before.empty() || after.empty()) return false;
  return *std::min_element(after.begin(), after.end()) >
         *std::max_element(before.begin(), before.end());
}

StatusOr<std::vector<TopicResult>> Apply(const Plan& plan, Target host,
                                         const ApplyOptions& options) {
  return Tuner(host, options).Run(plan);
}

StatusOr<RevertResult> Revert(Target host, const std::string& record) {
  BELAY_ASSIGN_OR_RETURN(const std::string text,
                         ReadFile(record, kMaxRecordBytes));
  BELAY_ASSIGN_OR_RETURN(const Journal journal, ParseJournal(text, record));
  RevertResult result;
  result.is_stale = journal.boot != BootOf(host.machine);
  std::string failed;
  for (size_t i = journal.changes.size(); i-- > 0 && !result.is_stale;) {
    const Change& change = journal.changes[i];
    if (change.state == ChangeState::kUndone) continue;
    Setting setting = change.setting;
    const std::string until_now = NowOf(host.machine, setting.path);
    if (until_now == setting.now) {
      ++result.n_unchanged;
      continue;
    }
    const Status status = host.writer.Write(setting.path, setting.now);
    if (NowOf(host.machine, setting.path) != setting.now) {
      failed += fmt::format("{}{}", failed.empty() ? "" : "; ",
                            status.ok() ? setting.path + " keeps its value"
                                        : std::string(status.message()));
      continue;
    }
    setting.wanted = until_now;
    result.restored.push_back(std::move(setting));
  }
  if (!failed.empty()) {
    return MakeError(
        kTuneNotRestored,
        {.where = record, .what = failed, .expected = "", .got = ""});
  }
  std::error_code error;
  std::filesystem::remove(record, error);
  return result;
}

}  // namespace belay::tune
