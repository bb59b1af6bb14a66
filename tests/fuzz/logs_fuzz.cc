// SPDX-License-Identifier: Apache-2.0
// Any bytes as a log, whole and in pieces: the same events, bounded, and a
// report in every form.
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"
#include "diag/catalogue.h"
#include "toolkit/logs/judge/diagnosis.h"
#include "toolkit/logs/judge/scanner.h"
#include "toolkit/logs/report/report.h"

namespace {

namespace logs = belay::logs;

const logs::Knowledge& Known() {
  static const auto catalogue = belay::diag::Catalogue::LoadEmbedded();
  BELAY_CHECK(catalogue.ok());
  static const logs::Knowledge knowledge(*catalogue);
  return knowledge;
}

}  // namespace

// The first byte is the length of the pieces.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t n_bytes) {
  if (n_bytes == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1,
                              n_bytes - 1);
  logs::Scanner whole(Known(), "rank_1/plog-2_3.log");
  whole.Feed(text);
  whole.End();
  logs::Scanner parts(Known(), "rank_1/plog-2_3.log");
  const size_t piece = data[0] + size_t{1};
  for (size_t at = 0; at < text.size(); at += piece) {
    parts.Feed(text.substr(at, piece));
  }
  parts.End();
  const logs::FileFacts& a = whole.facts();
  const logs::FileFacts& b = parts.facts();
  BELAY_CHECK(a.n_lines == b.n_lines && a.n_bytes == b.n_bytes);
  BELAY_CHECK(a.events.size() == b.events.size());
  for (size_t i = 0; i < a.events.size(); ++i) {
    BELAY_CHECK(a.events[i].entry == b.events[i].entry);
    BELAY_CHECK(a.events[i].line == b.events[i].line);
    BELAY_CHECK(a.events[i].text == b.events[i].text);
    BELAY_CHECK(a.events[i].block < a.blocks.size());
  }
  const logs::Diagnosis diagnosis = logs::Diagnose({a, b}, Known().catalogue);
  BELAY_CHECK(diagnosis.has_first == !diagnosis.findings.empty());
  const auto json = logs::DiagnosisToJson(diagnosis, belay::diag::Lang::kEn);
  (void)json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const std::string report = logs::DiagnosisToText(diagnosis, {});
  // Nothing of a log can steer a terminal.
  BELAY_CHECK(report.find('\x1b') == std::string::npos);
  BELAY_CHECK(report.find('\0') == std::string::npos);
  (void)logs::DiagnosisToHtml(diagnosis, belay::diag::Lang::kZh);
  return 0;
}
