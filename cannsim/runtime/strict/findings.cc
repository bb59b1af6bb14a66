// SPDX-License-Identifier: Apache-2.0
#include "cannsim/runtime/strict/findings.h"

#include <atomic>
#include <mutex>
#include <set>
#include <utility>

namespace cannsim {
namespace {

constexpr size_t kMaxSaid = 200;
std::atomic<uint64_t> g_n_findings{0};

struct Said {
  std::mutex mutex;
  std::set<std::pair<std::string, const void*>> places;
};

Said& AllSaid() {
  static auto* const said = new Said;
  return *said;
}

}  // namespace

void Finding(const char* id, const void* place, const std::string& text) {
  ++g_n_findings;
  Said& said = AllSaid();
  {
    const std::lock_guard lock(said.mutex);
    if (said.places.size() >= kMaxSaid ||
        !said.places.emplace(id, place).second) {
      return;
    }
  }
  Complain(std::string(id) + " " + text);
}

uint64_t CountFindings() { return g_n_findings.load(); }

std::string Describe(const Call& call) {
  return fmt::format("{} (call {} of the process, from {})", call.api,
                     call.number, PlaceOf(call.caller));
}

}  // namespace cannsim
