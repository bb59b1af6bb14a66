// SPDX-License-Identifier: Apache-2.0
// What a host's settings should be for its NPUs, from its topology. Nothing is
// changed here.
#ifndef BELAY_TOOLKIT_TUNE_PLAN_H_
#define BELAY_TOOLKIT_TUNE_PLAN_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "toolkit/doctor/facts/facts.h"
#include "toolkit/doctor/facts/host.h"
#include "toolkit/doctor/machine/machine.h"

namespace belay::tune {

// Groups that are applied, measured and kept or taken back as one.
enum class Topic : uint8_t {
  kGovernor,       // of the CPUs' clocks
  kFrequency,      // limits below what the CPUs can do
  kNumaBalancing,  // pages that the kernel moves
  kInterrupts,     // of the NPUs
  kPcie,           // power saving of links and devices
};
inline constexpr Topic kTopics[] = {Topic::kGovernor, Topic::kFrequency,
                                    Topic::kNumaBalancing, Topic::kInterrupts,
                                    Topic::kPcie};
std::string_view NameOf(Topic topic);  // "governor", ...

// One file of the kernel.
struct Setting {
  Topic topic = Topic::kGovernor;
  std::string path;
  std::string now;     // as ValueOf() reads it
  std::string wanted;  // what is to be written
};

// Where the rank of one NPU belongs.
struct Binding {
  int npu = -1;  // number in npu-smi; -1: npu-smi does not tell
  std::string address;
  int node = -1;
  std::vector<int> cpus;  // its share of the node, whole cores
};

// What only a person can mend: a catalogue entry, what was seen, a command.
struct Advice {
  std::string id, evidence, command;
};

struct Plan {
  std::vector<Setting> settings;  // only those that differ; by topic
  std::vector<Binding> bindings;
  std::vector<Advice> advice;
};

Plan MakePlan(doctor::Machine& machine, const doctor::Facts& facts,
              const doctor::Host& host);

// The command before a rank's own: its CPUs, and its node's memory preferred.
// Never --membind: children inherit it, and a worker for another node's NPU
// then gets no memory beside it (catalogue, HOST-004).
std::string CommandOf(const Binding& binding);

// CPU_AFFINITY_CONF of torch_npu for all bindings; "" when npu-smi does not
// tell which NPU is which.
std::string AffinityVariable(const std::vector<Binding>& bindings);

// What a file of the kernel says: its text without blanks around it, or of
// "always [madvise] never" the word in brackets.
std::string ValueOf(std::string_view text);

// Whether this is a file that MakePlan() may name: a record of old values is
// not believed to name any other.
bool IsTunable(std::string_view path);

}  // namespace belay::tune

#endif  // BELAY_TOOLKIT_TUNE_PLAN_H_
