// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/error_ids_cann.h"
#include "toolkit/doctor/hello/hello.h"

namespace belay::doctor {
namespace {

using nlohmann::ordered_json;

double TotalMs(const HelloReport& report) {
  double seconds = 0;
  for (const cann_api::TimedStep& step : report.steps) seconds += step.seconds;
  return 1e3 * seconds;
}

// "CANN-005: device 0, ...: got ...".
std::string Line(const Status& status) { return std::string(status.message()); }

const char* In(diag::Lang lang, const char* en, const char* zh) {
  return lang == diag::Lang::kZh ? zh : en;
}

std::string FixOf(const HelloReport& report, const diag::Catalogue& catalogue,
                  diag::Lang lang) {
  const diag::Entry* entry = catalogue.Find(ErrorIdOf(report.status));
  return entry == nullptr ? "" : entry->fix.in(lang);
}

}  // namespace

std::string HelloToText(const HelloReport& report,
                        const diag::Catalogue& catalogue,
                        const diag::RenderOptions& options) {
  const diag::Lang lang = options.lang;
  const std::string id = ErrorIdOf(report.status);
  if (id == kCannNotFound.id) {
    return fmt::format(
        "{}: {}\n", id,
        In(lang,
           "no CANN on this machine: libascendcl.so or what it needs was not "
           "found (belay explain CANN-001)",
           "本机没有 CANN：找不到 libascendcl.so 或其依赖（belay explain "
           "CANN-001）"));
  }
  std::string text;
  for (const cann_api::TimedStep& step : report.steps) {
    text += fmt::format("  {:<12} {:>10.3f} ms  {}\n", step.name,
                        1e3 * step.seconds,
                        step.status.ok() ? "ok" : Line(step.status));
  }
  for (const cann_api::MissingSymbol& one : report.missing) {
    text += fmt::format("  {} {}: {}\n", In(lang, "missing", "缺少"), one.name,
                        one.cost);
  }
  if (report.status.ok()) {
    text += fmt::format(
        fmt::runtime(
            In(lang,
               "{}: aclnnAdd ran and its numbers are right, {:.1f} ms in all\n",
               "{}：aclnnAdd 已运行且数值正确，共 {:.1f} ms\n")),
        report.soc, TotalMs(report));
    return text;
  }
  text += Line(report.status) + "\n";
  const std::string fix = FixOf(report, catalogue, lang);
  if (!fix.empty()) {
    text += fmt::format("{}: {}\n", In(lang, "what to do", "处理办法"), fix);
  }
  return text;
}

ordered_json HelloToJson(const HelloReport& report,
                         const diag::Catalogue& catalogue, diag::Lang lang) {
  ordered_json json = {
      {"ok", report.status.ok()},       {"soc", report.soc},
      {"libraries", report.libraries},  {"missing", ordered_json::array()},
      {"steps", ordered_json::array()}, {"error", nullptr}};
  for (const cann_api::MissingSymbol& one : report.missing) {
    json["missing"].push_back(
        {{"name", one.name}, {"cost", one.cost}, {"required", one.required}});
  }
  for (const cann_api::TimedStep& step : report.steps) {
    json["steps"].push_back({{"name", step.name},
                             {"ms", 1e3 * step.seconds},
                             {"ok", step.status.ok()}});
  }
  if (!report.status.ok()) {
    json["error"] = {{"id", ErrorIdOf(report.status)},
                     {"message", Line(report.status)},
                     {"fix", FixOf(report, catalogue, lang)}};
  }
  return json;
}

}  // namespace belay::doctor
