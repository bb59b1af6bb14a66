// SPDX-License-Identifier: Apache-2.0
// Texts that mean one catalogue entry, and how entries depend on each other.
#ifndef BELAY_TOOLKIT_LOGS_PARSE_RULES_H_
#define BELAY_TOOLKIT_LOGS_PARSE_RULES_H_

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "toolkit/logs/parse/matcher.h"

namespace belay::logs {

// How near an error is to its cause. Of several errors of one moment the
// nearest is the cause; a wait for another rank never is, if any rank shows
// something else.
enum class Tier : uint8_t {
  kRoot,     // something that was there before: memory, mounts, variables, ...
  kFault,    // a kernel, a device or an operator failed
  kSymptom,  // a call failed because of something below it
  kWrapper,  // says only that something failed
  kEffect,   // the program's end: exceptions, exit
  kWait,     // somebody else did not come
};

std::string_view NameOf(Tier tier);  // "root", "fault", ...

// The tier of what the entry describes.
Tier TierOf(std::string_view entry_id);

struct Rule {
  // Only where the same input also shows an Ascend (driver, CANN, torch_npu):
  // the text is common elsewhere too.
  static constexpr uint8_t kNeedsAscend = 1;
  // A hint: dropped where the same incident has anything better.
  static constexpr uint8_t kWeak = 2;

  std::string_view id;                      // catalogue entry
  std::vector<std::string_view> all;        // lower case; all in one line
  std::vector<std::string_view> none = {};  // none of these in it
  uint8_t flags = 0;
};

// The table.
std::span<const Rule> Rules();

// What else the sieve looks for.
enum class Trigger : uint8_t {
  kError,      // error, fail, exception, ...: worth a look for codes
  kTraceback,  // "Traceback (most recent call last)"
  kFatal,      // segmentation fault, core dumped, ...
  kAscend,     // the machine or the program has to do with Ascend
  kVersion,    // a version is told
  kSmi,        // a row of npu-smi
};

// Rules and triggers compiled into one automaton.
class RuleSet {
 public:
  RuleSet();

  struct Found {
    std::vector<const Rule*> rules;  // in the order of the table
    uint8_t triggers = 0;            // bit n: Trigger n
    bool has(Trigger t) const {
      return (triggers >> static_cast<unsigned>(t) & 1) != 0;
    }
    bool any() const { return triggers != 0 || !rules.empty(); }
  };

  // Clears `found` and fills it. Cheap when the line holds nothing.
  void Find(std::string_view line, Found& found) const;

 private:
  struct Compiled {
    const Rule* rule;
    std::vector<uint16_t> all, none;  // pattern indices
  };
  std::vector<std::string_view> patterns_;
  std::vector<uint8_t> triggers_;                  // [pattern]: bits
  std::vector<std::vector<uint16_t>> rules_with_;  // [pattern]: as first of all
  std::vector<Compiled> compiled_;
  std::vector<Matcher> matcher_;  // one; built when the patterns are known
};

}  // namespace belay::logs

#endif  // BELAY_TOOLKIT_LOGS_PARSE_RULES_H_
