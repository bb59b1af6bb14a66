// SPDX-License-Identifier: Apache-2.0
// Ways in which some version is said to misbehave without an error; off unless
// CANNSIM_QUIRKS names them. Each has an entry in the catalogue.
#ifndef BELAY_CANNSIM_RUNTIME_FAULTS_QUIRKS_H_
#define BELAY_CANNSIM_RUNTIME_FAULTS_QUIRKS_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace cannsim {

enum class Quirk : uint8_t {
  kEarlyMalloc,       // malloc before a wait for the device: bad address
  kFragmentedMalloc,  // malloc after work was queued wastes as much again
  kFirstRun,          // first operator before a wait for the device fails
  kExpertIndex,       // operators over 16 experts read out of range
  kNanAddress,        // an address that is no multiple of 16 gives NaN
  kSlowLastDim,       // a last dimension that is no multiple of 16 is slow
  kEpsUnderflow,      // eps below the FP16 range is refused
  kDynamicK,          // each new k of a top-k compiles
  kCacheOrder,        // a cache write comes after the operator behind it
};
inline constexpr size_t kQuirkCount = 9;

// "early-malloc", and its id in the catalogue.
const char* QuirkName(Quirk quirk);
const char* QuirkId(Quirk quirk);

// Bit n of the mask is quirk n.
inline bool HasQuirk(uint32_t mask, Quirk quirk) {
  return (mask >> static_cast<unsigned>(quirk) & 1U) != 0;
}

// "early-malloc,dynamic-k" or "all" to a mask. False and a sentence with all
// names when one is unknown.
bool ParseQuirks(std::string_view text, uint32_t* mask, std::string* error);

}  // namespace cannsim

#endif  // BELAY_CANNSIM_RUNTIME_FAULTS_QUIRKS_H_
