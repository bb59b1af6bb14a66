// SPDX-License-Identifier: Apache-2.0
// One look at devices and engine, and what it means.
#ifndef BELAY_TOOLKIT_TOP_VIEW_H_
#define BELAY_TOOLKIT_TOP_VIEW_H_

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "toolkit/doctor/facts/npu_smi.h"
#include "toolkit/top/metrics.h"

namespace belay::top {

struct Sample {
  double time_s = 0;    // of a clock that only goes forward
  std::string trouble;  // why there are no devices: npu-smi's words
  doctor::SmiInfo smi;
  std::optional<EngineState> engine;
  std::string engine_trouble;  // why there is none though one was asked for
};

// A device or the engine met a rule of the catalogue.
struct Note {
  std::string id;  // "HBM-006"
  int npu = -1;    // -1: the engine
  std::string evidence;
};

struct View {
  Sample sample;
  // Of the time since the sample before; nothing in the first.
  std::optional<double> generated_per_s, prompt_per_s;
  std::vector<Note> notes;
};

// The view of `now` after `before` (null: the first).
//
// HBM-006, the article's rule: utilisation below 60 % with memory above 95 %
// means that the caches are the limit. With an engine that tells its own cache
// use, that decides instead of the device's memory, which an engine takes whole
// at its start: caches above 95 % while requests wait. DOCT-014: health.
View Look(const Sample* before, Sample now);

nlohmann::ordered_json ViewToJson(const View& view);

// Plain lines with a newline at the end, without control characters; `columns`
// wide at most.
std::string ViewToText(const View& view, bool chinese, int columns);

}  // namespace belay::top

#endif  // BELAY_TOOLKIT_TOP_VIEW_H_
