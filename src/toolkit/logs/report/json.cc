// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "diag/render.h"
#include "toolkit/logs/report/report.h"

namespace belay::logs {
namespace {

using nlohmann::ordered_json;

ordered_json NumberOrNull(int value) {
  return value < 0 ? ordered_json(nullptr) : ordered_json(value);
}

ordered_json PlaceToJson(const Place& place) {
  return {{"file", place.file},
          {"line", place.line},
          {"rank", NumberOrNull(place.rank)},
          {"device", NumberOrNull(place.device)},
          {"pid", NumberOrNull(place.pid)},
          {"time", place.time},
          {"text", diag::EscapeControls(place.text)}};
}

ordered_json IssueToJson(const diag::Entry& issue, diag::Lang lang) {
  return {{"id", issue.id},
          {"title", issue.title.in(lang)},
          {"cause", issue.cause.in(lang)},
          {"fix", issue.fix.in(lang)},
          {"versions", issue.versions},
          {"fixed_in", issue.fixed_in},
          {"sources", issue.sources}};
}

ordered_json FindingToJson(const Finding& finding, diag::Lang lang) {
  const diag::Entry& entry = *finding.entry;
  ordered_json json = {{"id", entry.id},
                       {"severity", diag::NameOf(entry.severity)},
                       {"role", NameOf(finding.role)},
                       {"tier", NameOf(finding.tier)},
                       {"title", entry.title.in(lang)},
                       {"cause", entry.cause.in(lang)},
                       {"fix", entry.fix.in(lang)},
                       {"codes", finding.codes},
                       {"operator", finding.op}};
  json.update(PlaceToJson(finding.place));
  json["ranks"] = finding.ranks;
  json["count"] = finding.count;
  json["known_issues"] = ordered_json::array();
  for (const diag::Entry* issue : finding.known) {
    json["known_issues"].push_back(IssueToJson(*issue, lang));
  }
  return json;
}

}  // namespace

ordered_json DiagnosisToJson(const Diagnosis& diagnosis, diag::Lang lang) {
  ordered_json json;
  json["first_cause"] = nullptr;
  json["findings"] = ordered_json::array();
  for (const Finding& finding : diagnosis.findings) {
    json["findings"].push_back(FindingToJson(finding, lang));
  }
  if (diagnosis.has_first) json["first_cause"] = json["findings"][0];
  json["only_waits"] = diagnosis.only_waits;
  json["ranks"] = ordered_json::array();
  for (const RankCause& rank : diagnosis.ranks) {
    ordered_json one = PlaceToJson(rank.place);
    one["id"] = rank.finding < diagnosis.findings.size()
                    ? diagnosis.findings[rank.finding].entry->id
                    : "";
    one["rank"] = rank.rank;
    json["ranks"].push_back(std::move(one));
  }
  json["waiting_for"] = ordered_json::array();
  for (const auto& [rank, n] : diagnosis.blamed) {
    json["waiting_for"].push_back({{"rank", rank}, {"times", n}});
  }
  json["suspicious"] = ordered_json::array();
  for (const auto& [place, score] : diagnosis.suspicious) {
    ordered_json one = PlaceToJson(place);
    one["score"] = score;
    json["suspicious"].push_back(std::move(one));
  }
  json["versions"] = ordered_json::object();
  for (const auto& [name, version] : diagnosis.versions) {
    json["versions"][name] = version;
  }
  json["files"] = ordered_json::array();
  for (const FileSummary& file : diagnosis.files) {
    json["files"].push_back(
        {{"name", file.name},
         {"lines", file.n_lines},
         {"bytes", file.n_bytes},
         {"rank", NumberOrNull(file.rank)},
         {"clock_offset_s", static_cast<double>(file.clock_offset_us) / 1e6},
         {"clock_lines", file.n_clock_lines}});
  }
  json["n_lines"] = diagnosis.n_lines;
  json["n_bytes"] = diagnosis.n_bytes;
  json["n_cut_lines"] = diagnosis.n_cut_lines;
  return json;
}

}  // namespace belay::logs
