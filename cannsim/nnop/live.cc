// SPDX-License-Identifier: Apache-2.0
#include "cannsim/nnop/live.h"

#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <unordered_map>

#include "cannsim/private/runtime_link.h"

namespace cannsim {
namespace {

struct Made {
  const char* kind = "";
  const void* caller = nullptr;
};

struct Live {
  std::mutex mutex;
  std::unordered_map<const void*, Made> objects;
};

Live& All() {
  static auto* const live = new Live;
  return *live;
}

// One finding for each place, with how many came from it.
void TellAtExit() {
  std::map<const void*, std::pair<const char*, size_t>> places;
  {
    Live& live = All();
    const std::lock_guard lock(live.mutex);
    for (const auto& [object, made] : live.objects) {
      auto& [kind, n] = places[made.caller];
      kind = made.kind;
      ++n;
    }
  }
  for (const auto& [caller, what] : places) {
    cannsim_finding("SIM-018", caller,
                    fmt::format("{} objects ({}) live at the end, made from",
                                what.second, what.first)
                        .c_str());
  }
}

}  // namespace

void NoteMade(const void* object, const char* kind, const void* caller) {
  if (object == nullptr || !cannsim_strict()) return;
  static std::once_flag once;
  std::call_once(once, [] { std::atexit(TellAtExit); });
  Live& live = All();
  const std::lock_guard lock(live.mutex);
  live.objects[object] = {.kind = kind, .caller = caller};
}

bool NoteGone(const void* object, const char* kind, const void* caller) {
  if (object == nullptr || !cannsim_strict()) return true;
  {
    Live& live = All();
    const std::lock_guard lock(live.mutex);
    if (live.objects.erase(object) > 0) return true;
  }
  cannsim_finding(
      "SIM-013", caller,
      fmt::format("this {} was destroyed before, or is none; by", kind)
          .c_str());
  return false;
}

}  // namespace cannsim
