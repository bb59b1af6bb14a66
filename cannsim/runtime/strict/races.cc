// SPDX-License-Identifier: Apache-2.0
#include "cannsim/runtime/strict/races.h"

#include <algorithm>
#include <cstring>

#include "cannsim/runtime/strict/findings.h"

namespace cannsim {
namespace {

constexpr size_t kMaxAccesses = 256;  // of a buffer; the oldest go
constexpr size_t kMaxUses = 512;      // of a call

struct UseOfCall {
  uintptr_t buffer = 0;
  uintptr_t begin = 0;
  uintptr_t end = 0;
  bool writes = false;
};

thread_local std::vector<UseOfCall> t_uses;

bool IsWrite(const char* use) {
  return std::strcmp(use, "written") == 0 || std::strcmp(use, "filled") == 0;
}

void Join(Order& order, const Order& other) {
  for (const auto& [stream, task] : other) {
    uint64_t& mine = order[stream];
    mine = std::max(mine, task);
  }
}

}  // namespace

void Races::Use(uintptr_t buffer, uintptr_t address, size_t bytes,
                const char* use) {
  if (bytes == 0 || t_uses.size() >= kMaxUses) return;
  t_uses.push_back({.buffer = buffer,
                    .begin = address,
                    .end = address + bytes,
                    .writes = IsWrite(use)});
}

void Races::Forget() { t_uses.clear(); }

bool Races::IsBefore(const Access& access, const Order& order) {
  const auto known = order.find(access.stream);
  return known != order.end() && known->second >= access.task;
}

// Says which earlier use is not before this one. With the lock held.
void Races::Check(const char* id, uintptr_t buffer, const Access& now,
                  const Order& order, const char* what) {
  const auto list = accesses_.find(buffer);
  if (list == accesses_.end()) return;
  for (const Access& before : list->second) {
    const bool overlaps = before.begin < now.end && now.begin < before.end;
    if (!overlaps || (!before.writes && !now.writes) ||
        IsBefore(before, order)) {
      continue;
    }
    Finding(id, now.call.caller,
            fmt::format("{}: {} bytes at {:#x}\n  now: {}\n  before, {} on "
                        "stream {}: {} by {}",
                        what, now.end - now.begin, now.begin,
                        Describe(now.call), before.writes ? "written" : "read",
                        before.stream, before.name, Describe(before.call)));
    return;
  }
}

// With the lock held.
void Races::Keep(uintptr_t buffer, const Access& now) {
  std::vector<Access>& list = accesses_[buffer];
  // Whatever the host waited for is before everything to come.
  std::erase_if(list, [&](const Access& a) { return IsBefore(a, host_); });
  if (list.size() >= kMaxAccesses) list.erase(list.begin());
  list.push_back(now);
}

void Races::Queued(unsigned stream, const char* task) {
  const std::lock_guard lock(mutex_);
  Order& order = streams_[stream];
  Join(order, host_);
  const uint64_t number = ++order[stream];
  std::vector<UseOfCall> uses;
  uses.swap(t_uses);
  for (const UseOfCall& use : uses) {
    const Access now{.stream = stream,
                     .task = number,
                     .writes = use.writes,
                     .begin = use.begin,
                     .end = use.end,
                     .call = CurrentCall(),
                     .name = task};
    Check("SIM-016", use.buffer, now, order,
          "two streams use the same memory without an order");
    Keep(use.buffer, now);
  }
}

void Races::OnHost() {
  const std::lock_guard lock(mutex_);
  std::vector<UseOfCall> uses;
  uses.swap(t_uses);
  for (const UseOfCall& use : uses) {
    const Access now{.stream = 0,
                     .task = 0,
                     .writes = use.writes,
                     .begin = use.begin,
                     .end = use.end,
                     .call = CurrentCall(),
                     .name = ""};
    Check("SIM-015", use.buffer, now, host_,
          use.writes ? "the host writes what queued work may still use"
                     : "the host reads what queued work may still write");
  }
}

void Races::Freed(uintptr_t buffer, size_t bytes) {
  const std::lock_guard lock(mutex_);
  const Access now{.stream = 0,
                   .task = 0,
                   .writes = true,
                   .begin = buffer,
                   .end = buffer + bytes,
                   .call = CurrentCall(),
                   .name = ""};
  Check("SIM-014", buffer, now, host_,
        "memory is freed that queued work may still use");
  accesses_.erase(buffer);
}

std::shared_ptr<const Order> Races::At(unsigned stream) {
  const std::lock_guard lock(mutex_);
  return std::make_shared<const Order>(streams_[stream]);
}

void Races::StreamWaits(unsigned stream, const Order& order) {
  const std::lock_guard lock(mutex_);
  Join(streams_[stream], order);
}

void Races::HostWaits(const Order& order) {
  const std::lock_guard lock(mutex_);
  Join(host_, order);
}

}  // namespace cannsim
