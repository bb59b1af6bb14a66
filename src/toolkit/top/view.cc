// SPDX-License-Identifier: Apache-2.0
#include "toolkit/top/view.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace belay::top {
namespace {

using doctor::SmiDevice;
using nlohmann::ordered_json;

constexpr int64_t kIdlePercent = 60;
constexpr int64_t kFullPercent = 95;

int64_t MemoryPercent(const SmiDevice& device) {
  return device.total_mb > 0 && device.used_mb >= 0
             ? device.used_mb * 100 / device.total_mb
             : -1;
}

std::optional<double> Rate(const std::optional<double>& before,
                           const std::optional<double>& now, double seconds) {
  // A counter that fell is that of an engine that was started anew.
  if (!before || !now || seconds <= 0 || *now < *before) return std::nullopt;
  return (*now - *before) / seconds;
}

void NoteDevices(View& view) {
  const Sample& sample = view.sample;
  const bool engine_tells = sample.engine && sample.engine->cache_use;
  for (const SmiDevice& device : sample.smi.devices) {
    if (device.health != "OK") {
      view.notes.push_back({"DOCT-014", device.npu, device.health});
    }
    const int64_t memory = MemoryPercent(device);
    if (engine_tells || device.ai_core_percent < 0 ||
        device.ai_core_percent >= kIdlePercent || memory <= kFullPercent) {
      continue;
    }
    view.notes.push_back({"HBM-006", device.npu,
                          fmt::format("AI Core {} %, memory {} %",
                                      device.ai_core_percent, memory)});
  }
}

void NoteEngine(View& view) {
  const auto& engine = view.sample.engine;
  if (!engine || !engine->cache_use) return;
  if (*engine->cache_use * 100 <= kFullPercent ||
      engine->waiting.value_or(0) <= 0) {
    return;
  }
  view.notes.push_back(
      {"HBM-006", -1,
       fmt::format("caches {:.0f} %, {:.0f} requests wait",
                   *engine->cache_use * 100, *engine->waiting)});
}

template <typename T>
ordered_json OrNull(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json();
}

ordered_json OrNull(int64_t value) {
  return value >= 0 ? ordered_json(value) : ordered_json();
}

std::string Cell(const std::optional<double>& value, const char* unit = "",
                 double scale = 1) {
  return value ? fmt::format("{:.0f}{}", *value * scale, unit) : "-";
}

std::string Cell(int64_t value) {
  return value >= 0 ? fmt::format("{}", value) : "-";
}

// Names and health come from a program: no control characters, one column a
// byte.
std::string Clean(const std::string& text) {
  std::string clean;
  for (const char c : text) clean += c >= ' ' && c <= '~' ? c : '?';
  return clean;
}

class TextView {
 public:
  TextView(bool chinese, int columns)
      : chinese_(chinese),
        columns_(static_cast<size_t>(std::max(columns, 20))) {}

  std::string Render(const View& view) {
    Devices(view.sample);
    Engine(view);
    for (const Note& note : view.notes) {
      Line(note.npu >= 0
               ? fmt::format("{} NPU {}: {}", note.id, note.npu,
                             Clean(note.evidence))
               : fmt::format("{}: {}", note.id, Clean(note.evidence)));
    }
    return std::move(out_);
  }

 private:
  const char* T(const char* en, const char* zh) const {
    return chinese_ ? zh : en;
  }

  // A line that is too long loses its end, at the border of a character; a
  // Chinese one takes two columns.
  void Line(const std::string& line) {
    size_t columns = 0, at = 0;
    while (at < line.size()) {
      const auto byte = static_cast<unsigned char>(line[at]);
      const size_t bytes = byte < 0x80 ? 1 : byte < 0xe0 ? 2 : 3;
      columns += bytes == 3 ? 2 : 1;
      if (columns > columns_) break;
      at += bytes;
    }
    out_ += line.substr(0, at) + "\n";
  }

  void Devices(const Sample& sample) {
    if (sample.smi.devices.empty()) {
      Line(fmt::format("{}{}", T("no devices: ", "没有设备："),
                       Clean(sample.trouble)));
      return;
    }
    Line(fmt::format("{:>3} {:<12} {:<8} {:>7} {:>5} {:>7} {:>17} {:>5}", "NPU",
                     "name", "health", "power W", "C", "core %", "memory MB",
                     "%"));
    for (const SmiDevice& device : sample.smi.devices) {
      Line(fmt::format(
          "{:>3} {:<12.12} {:<8.8} {:>7} {:>5} {:>7} {:>8} /{:>7} {:>5}",
          device.npu, Clean(device.name), Clean(device.health),
          device.power_w >= 0 ? fmt::format("{:.1f}", device.power_w) : "-",
          Cell(device.temperature_c), Cell(device.ai_core_percent),
          Cell(device.used_mb), Cell(device.total_mb),
          Cell(MemoryPercent(device))));
    }
  }

  void Engine(const View& view) {
    if (!view.sample.engine_trouble.empty()) {
      Line(fmt::format("{}{}", T("no engine: ", "没有引擎："),
                       Clean(view.sample.engine_trouble)));
    }
    if (!view.sample.engine) return;
    const EngineState& e = *view.sample.engine;
    Line(
        fmt::format("{}: {} {}{}, {} {}, {} {}, {} {}, {} {}{}", e.kind,
                    T("batch", "批"), Cell(e.running),
                    e.batch_limit ? fmt::format("/{:.0f}", *e.batch_limit) : "",
                    T("waiting", "排队"), Cell(e.waiting),
                    T("tokens/s", "词元/秒"), Cell(view.generated_per_s),
                    T("prompt/s", "提示/秒"), Cell(view.prompt_per_s),
                    T("caches", "缓存"), Cell(e.cache_use, " %", 100),
                    e.cached ? fmt::format(" (+{:.0f} % {})", *e.cached * 100,
                                           T("prefixes", "前缀"))
                             : ""));
    if (e.guard_is_active) {
      Line(T("the memory guard is active", "内存保护已启用"));
    }
  }

  bool chinese_;
  size_t columns_;
  std::string out_;
};

}  // namespace

View Look(const Sample* before, Sample now) {
  View view;
  view.sample = std::move(now);
  const auto& engine = view.sample.engine;
  if (before != nullptr && before->engine && engine) {
    const double seconds = view.sample.time_s - before->time_s;
    view.generated_per_s = Rate(before->engine->generated_tokens,
                                engine->generated_tokens, seconds);
    view.prompt_per_s =
        Rate(before->engine->prompt_tokens, engine->prompt_tokens, seconds);
  }
  NoteDevices(view);
  NoteEngine(view);
  return view;
}

ordered_json ViewToJson(const View& view) {
  ordered_json json;
  json["devices"] = ordered_json::array();
  for (const SmiDevice& device : view.sample.smi.devices) {
    json["devices"].push_back(
        {{"npu", device.npu},
         {"name", device.name},
         {"health", device.health},
         {"power_w",
          device.power_w >= 0 ? ordered_json(device.power_w) : ordered_json()},
         {"temperature_c", OrNull(device.temperature_c)},
         {"ai_core_percent", OrNull(device.ai_core_percent)},
         {"used_mb", OrNull(device.used_mb)},
         {"total_mb", OrNull(device.total_mb)},
         {"memory_percent", OrNull(MemoryPercent(device))}});
  }
  if (!view.sample.trouble.empty()) json["trouble"] = view.sample.trouble;
  if (view.sample.engine) {
    const EngineState& e = *view.sample.engine;
    json["engine"] = {{"kind", e.kind},
                      {"running", OrNull(e.running)},
                      {"waiting", OrNull(e.waiting)},
                      {"batch_limit", OrNull(e.batch_limit)},
                      {"tokens_per_s", OrNull(view.generated_per_s)},
                      {"prompt_tokens_per_s", OrNull(view.prompt_per_s)},
                      {"cache_use", OrNull(e.cache_use)},
                      {"cached", OrNull(e.cached)},
                      {"prefix_hits", OrNull(e.prefix_hits)},
                      {"prefix_misses", OrNull(e.prefix_misses)},
                      {"guard_is_active", e.guard_is_active}};
  } else {
    json["engine"] = nullptr;
  }
  if (!view.sample.engine_trouble.empty()) {
    json["engine_trouble"] = view.sample.engine_trouble;
  }
  json["notes"] = ordered_json::array();
  for (const Note& note : view.notes) {
    json["notes"].push_back(
        {{"id", note.id},
         {"npu", note.npu >= 0 ? ordered_json(note.npu) : ordered_json()},
         {"evidence", note.evidence}});
  }
  return json;
}

std::string ViewToText(const View& view, bool chinese, int columns) {
  return TextView(chinese, columns).Render(view);
}

}  // namespace belay::top
