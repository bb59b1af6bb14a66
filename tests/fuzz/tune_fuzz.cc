// SPDX-License-Identifier: Apache-2.0
// Any bytes as the record of `belay tune`, which root would write back, and as
// what an engine says at /metrics.
#include <cstdint>
#include <string>

#include "base/error.h"
#include "toolkit/top/metrics.h"
#include "toolkit/top/view.h"
#include "toolkit/tune/journal.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t n_bytes) {
  const std::string text(reinterpret_cast<const char*>(data), n_bytes);
  const auto journal = belay::tune::ParseJournal(text, "fuzz");
  if (journal.ok()) {
    for (const auto& change : journal->changes) {
      BELAY_CHECK(belay::tune::IsTunable(change.setting.path));
      BELAY_CHECK(change.setting.path.find("..") == std::string::npos);
      BELAY_CHECK(change.setting.now.find('\n') == std::string::npos);
    }
    const std::string again = belay::tune::JournalToJson(*journal);
    BELAY_CHECK(belay::tune::ParseJournal(again, "fuzz").ok());
  } else {
    BELAY_CHECK(!belay::ErrorIdOf(journal.status()).empty());
  }
  const auto samples = belay::top::ParseMetrics(text);
  BELAY_CHECK(samples.size() <= 10000);
  belay::top::Sample sample;
  sample.engine = belay::top::EngineFrom(samples);
  sample.smi = belay::doctor::ParseNpuSmi(text);
  sample.trouble = text;
  const auto view = belay::top::Look(&sample, sample);
  const std::string shown = belay::top::ViewToText(view, true, 80);
  BELAY_CHECK(shown.find('\x1b') == std::string::npos);
  return 0;
}
