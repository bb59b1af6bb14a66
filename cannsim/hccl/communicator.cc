// SPDX-License-Identifier: Apache-2.0
#include "cannsim/hccl/communicator.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <thread>
#include <utility>

#include "cannsim/hccl/say.h"

namespace cannsim::hccl {
namespace {

using Clock = std::chrono::steady_clock;

// The real one waits this much longer than HCCL_CONNECT_TIMEOUT.
constexpr double kExtraConnectSeconds = 20;

double Since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// "[2 3]"
std::string RanksText(uint64_t ranks) {
  std::string text;
  for (uint32_t rank = 0; rank < kMaxRanks; ++rank) {
    if ((ranks >> rank & 1) == 0) continue;
    text += fmt::format("{}{}", text.empty() ? "" : " ", rank);
  }
  return "[" + text + "]";
}

}  // namespace

Communicator::Communicator(std::shared_ptr<Segment> segment, Place place,
                           HcclSettings settings)
    : segment_(std::move(segment)),
      place_(std::move(place)),
      settings_(std::move(settings)),
      to_(place_.n_ranks),
      from_(place_.n_ranks) {}

std::shared_ptr<Communicator> Communicator::Join(const RootCard& card,
                                                 const Place& place,
                                                 HcclResult* result) {
  HcclSettings settings;
  cannsim_hccl_settings(&settings);
  const auto refuse = [&](HcclResult code, const char* ei,
                          const std::string& text) {
    *result = Refuse(code, ei, place.where, text);
    return nullptr;
  };
  if (!settings.error.empty()) {
    return refuse(HCCL_E_PARA, kBadVariable, settings.error);
  }
  if (place.n_ranks == 0 || place.rank >= place.n_ranks) {
    return refuse(
        HCCL_E_PARA, kBadArgument,
        fmt::format("rank {} of {} ranks", place.rank, place.n_ranks));
  }
  if (place.n_ranks > kMaxRanks) {
    return refuse(HCCL_E_NOT_SUPPORT, kBadArgument,
                  fmt::format("{} ranks: cannsim has at most {} on a host",
                              place.n_ranks, kMaxRanks));
  }
  int error = 0;
  auto segment = Segment::Open(card, &error);
  if (segment == nullptr) {
    if (error == EINVAL) {
      return refuse(HCCL_E_PARA, kBadArgument,
                    "rootInfo does not come from HcclGetRootInfo");
    }
    return refuse(
        HCCL_E_TCP_CONNECT, kNoConnection,
        fmt::format("rank {} does not reach the root (process {}, "
                    "which {}): {}",
                    place.rank, card.life.pid,
                    IsAlive(card.life) ? "has closed this communicator's door"
                                       : "has ended",
                    std::strerror(error)));
  }
  if (const uint32_t n = segment->SetRanks(place.n_ranks); n != place.n_ranks) {
    return refuse(HCCL_E_PARA, kMismatch,
                  fmt::format("rank {} says that there are {} ranks, one that "
                              "came before says {}",
                              place.rank, place.n_ranks, n));
  }
  if (!segment->MapRings()) {
    return refuse(HCCL_E_MEMORY, kNoMemory, std::strerror(errno));
  }
  if (!segment->Join(place.rank)) {
    return refuse(HCCL_E_PARA, kBadArgument,
                  fmt::format("rank {} is taken by process {}", place.rank,
                              segment->slot(place.rank).life.pid));
  }
  Place named = place;
  if (named.name.empty()) {
    named.name = fmt::format("cannsim_{:02x}{:02x}{:02x}{:02x}", card.id[0],
                             card.id[1], card.id[2], card.id[3]);
  }
  *result = HCCL_SUCCESS;
  return std::shared_ptr<Communicator>(
      new Communicator(std::move(segment), std::move(named), settings));
}

HcclResult Communicator::AwaitOthers() {
  const Patience patience{.seconds =
                              (settings_.connect_s + kExtraConnectSeconds) *
                              settings_.real_seconds};
  const Outcome outcome = Wait(patience, [this] {
    Look look;
    for (uint32_t rank = 0; rank < n_ranks(); ++rank) {
      const SlotState state = segment_->slot(rank).state.load();
      if (state != SlotState::kFree && state != SlotState::kTaking) continue;
      look.done = false;
      look.missing |= uint64_t{1} << rank;
    }
    // Who came and left before all were there is missed too.
    for (uint32_t rank = 0; !look.done && rank < n_ranks(); ++rank) {
      look.missing |= uint64_t{1} << rank;
    }
    return look;
  });
  if (outcome.ok()) return HCCL_SUCCESS;
  uint64_t missing = 0;
  for (uint32_t rank = 0; rank < n_ranks(); ++rank) {
    if (segment_->slot(rank).state.load() != SlotState::kJoined) {
      missing |= uint64_t{1} << rank;
    }
  }
  const bool is_gone = outcome.kind == Outcome::Kind::kGone;
  return Refuse(
      is_gone ? HCCL_E_TCP_CONNECT : HCCL_E_TIMEOUT, kNoConnection,
      place_.where,
      fmt::format(
          "rank {} of {} in {} {}; missing: {}", rank(), n_ranks(), name(),
          is_gone ? fmt::format("lost {} while it waited for all to "
                                "connect",
                                Describe(outcome.missing))
                  : fmt::format("waited {} s (HCCL_CONNECT_TIMEOUT {} "
                                "and {}) for all to connect",
                                settings_.connect_s + kExtraConnectSeconds,
                                settings_.connect_s, kExtraConnectSeconds),
          RanksText(is_gone ? outcome.missing | missing : missing)));
}

Communicator::~Communicator() {
  segment_->slot(rank()).state = SlotState::kLeft;
  segment_->WakeAll();
}

void Communicator::NoteError(HcclResult result) {
  HcclResult none = HCCL_SUCCESS;
  async_error_.compare_exchange_strong(none, result);
}

void Communicator::Break(uint32_t blamed) {
  broken_ = true;
  Slot& mine = segment_->slot(rank());
  mine.blamed = blamed;
  mine.state = SlotState::kBroken;
  segment_->WakeAll();
}

// Which of them will never answer. Asking the system is slow.
uint64_t Communicator::Gone(uint64_t ranks, bool ask_system) {
  uint64_t gone = 0;
  for (uint32_t other = 0; other < n_ranks(); ++other) {
    if ((ranks >> other & 1) == 0 || other == rank()) continue;
    const Slot& slot = segment_->slot(other);
    const SlotState state = slot.state.load();
    const bool is_over =
        state == SlotState::kLeft || state == SlotState::kBroken ||
        (ask_system && state == SlotState::kJoined && !IsAlive(slot.life));
    if (is_over) gone |= uint64_t{1} << other;
  }
  return gone;
}

Outcome Communicator::Wait(const Patience& patience,
                           const std::function<Look()>& look) {
  auto last_asked = Clock::now();
  uint64_t gone = 0;
  while (true) {
    const uint32_t seen = segment_->slot(rank()).bell.load();
    const Look now = look();
    if (now.done) return {};
    if (now.moved) continue;
    // One look after they were seen to be gone: what they left is there.
    if ((gone & now.missing) != 0)
      return {Outcome::Kind::kGone, gone & now.missing};
    if (patience.abandoned != nullptr && patience.abandoned->load()) {
      return {Outcome::Kind::kAbandoned, now.missing};
    }
    if (patience.seconds > 0 && Since(patience.begin) > patience.seconds) {
      return {Outcome::Kind::kTimeout, now.missing};
    }
    const bool ask = Since(last_asked) > 0.02;
    if (ask) last_asked = Clock::now();
    gone = Gone(now.missing, ask);
    if (gone == 0) segment_->Listen(rank(), seen);
  }
}

Patience Communicator::ExecPatience(const TaskRun& run) const {
  return {.seconds = settings_.exec_s * settings_.real_seconds,
          .abandoned = &run.abandoned};
}

std::shared_ptr<Turn> Communicator::DrawCollective(bool has_ticket) {
  return std::make_shared<Turn>(std::vector<Lane*>{&collective_}, has_ticket,
                                drawing_);
}

std::shared_ptr<Turn> Communicator::DrawMessages(uint64_t to, uint64_t from,
                                                 bool has_ticket) {
  std::vector<Lane*> lanes;
  for (uint32_t other = 0; other < n_ranks(); ++other) {
    if ((to >> other & 1) != 0) lanes.push_back(&to_[other]);
    if ((from >> other & 1) != 0) lanes.push_back(&from_[other]);
  }
  return std::make_shared<Turn>(std::move(lanes), has_ticket, drawing_);
}

std::string Communicator::Describe(uint64_t ranks) {
  std::string text = fmt::format("remote rank: {}", RanksText(ranks));
  for (uint32_t other = 0; other < n_ranks(); ++other) {
    if ((ranks >> other & 1) == 0) continue;
    const Slot& slot = segment_->slot(other);
    const SlotState state = slot.state.load();
    if (state == SlotState::kBroken && slot.blamed.load() != kNobody) {
      text += fmt::format(" (rank {} gave up on rank {})", other,
                          slot.blamed.load());
    } else if (state == SlotState::kBroken) {
      text += fmt::format(" (rank {} gave up after an error)", other);
    } else if (state == SlotState::kLeft) {
      text += fmt::format(" (rank {} has destroyed its communicator)", other);
    } else if (state == SlotState::kJoined && !IsAlive(slot.life)) {
      text += fmt::format(" (process {} of rank {} has ended)", slot.life.pid,
                          other);
    }
  }
  return text;
}

// --- Handles ---

namespace {

struct Handles {
  std::mutex mutex;
  std::map<HcclComm, std::shared_ptr<Communicator>> live;
};

Handles& AllHandles() {
  static auto* const handles = new Handles;
  return *handles;
}

void TellLiveCommunicators() {
  std::vector<std::shared_ptr<Communicator>> left;
  {
    const std::lock_guard lock(AllHandles().mutex);
    for (const auto& entry : AllHandles().live) left.push_back(entry.second);
  }
  for (const auto& one : left) {
    cannsim_finding("SIM-012", one->place().caller,
                    fmt::format("the communicator {} (rank {} of {}) lives at "
                                "the end, made by {} from",
                                one->name(), one->rank(), one->n_ranks(),
                                one->place().where)
                        .c_str());
  }
}

}  // namespace

HcclComm Register(std::shared_ptr<Communicator> communicator) {
  static std::once_flag once;
  if (cannsim_strict()) {
    std::call_once(once, [] { std::atexit(TellLiveCommunicators); });
  }
  Handles& handles = AllHandles();
  const std::lock_guard lock(handles.mutex);
  const HcclComm handle = communicator.get();
  handles.live[handle] = std::move(communicator);
  return handle;
}

std::shared_ptr<Communicator> Find(HcclComm handle) {
  Handles& handles = AllHandles();
  const std::lock_guard lock(handles.mutex);
  const auto it = handles.live.find(handle);
  return it == handles.live.end() ? nullptr : it->second;
}

std::shared_ptr<Communicator> Unregister(HcclComm handle) {
  Handles& handles = AllHandles();
  const std::lock_guard lock(handles.mutex);
  const auto it = handles.live.find(handle);
  if (it == handles.live.end()) return nullptr;
  auto found = std::move(it->second);
  handles.live.erase(it);
  return found;
}

}  // namespace cannsim::hccl
