// SPDX-License-Identifier: Apache-2.0
#include "toolkit/doctor/report/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "diag/wrap.h"

namespace belay::doctor {
namespace {

using nlohmann::ordered_json;

std::string Safe(const std::string& text) { return diag::EscapeControls(text); }

// The stand-in has cards, but no nodes.
size_t NpusOf(const Facts& facts) {
  return facts.simulator.empty() ? facts.nodes.size()
                                 : facts.smi.devices.size();
}

class TextReport {
 public:
  TextReport(const Verdict& verdict, const diag::Catalogue& catalogue,
             const diag::RenderOptions& options)
      : verdict_(verdict), catalogue_(catalogue), options_(options) {}

  std::string Write() {
    Machine();
    for (const Finding& finding : verdict_.findings) One(finding);
    if (verdict_.findings.empty()) {
      out_ += T("Nothing wrong was found.\n", "未发现问题。\n");
    }
    if (!verdict_.passed.empty()) {
      std::string list;
      for (const std::string& name : verdict_.passed) {
        list += (list.empty() ? "" : ", ") + name;
      }
      out_ +=
          fmt::format("\n{}{}\n", T("nothing found in: ", "无问题："), list);
    }
    return out_;
  }

 private:
  const char* T(const char* en, const char* zh) const {
    return options_.lang == diag::Lang::kZh ? zh : en;
  }

  void Machine() {
    const Facts& facts = verdict_.facts;
    const auto or_none = [&](const std::string& text) {
      return text.empty() ? std::string(T("none", "无")) : Safe(text);
    };
    out_ += fmt::format(
        "{}: {} x {}; {}: {}; {}: {}; CANN: {}{}{}\n\n", T("NPUs", "NPU"),
        NpusOf(facts),
        or_none(facts.smi.devices.empty() ? "" : facts.smi.devices[0].name),
        T("driver", "驱动"), or_none(facts.driver), T("firmware", "固件"),
        or_none(facts.firmware), or_none(facts.cann),
        facts.simulator.empty() ? ""
                                : " (cannsim " + Safe(facts.simulator) + ")",
        facts.is_container ? T("; in a container", "；容器内") : "");
  }

  void Hint(const char* label, const std::string& text) {
    if (text.empty()) return;
    const std::string head = std::string("  ") + label + T(": ", "：");
    const int indent = diag::DisplayWidth(head);
    bool is_first = true;
    for (const auto& line :
         diag::WrapLines(text, std::max(options_.width - indent, 20))) {
      out_ +=
          (is_first ? head : std::string(static_cast<size_t>(indent), ' ')) +
          line + "\n";
      is_first = false;
    }
  }

  void One(const Finding& finding) {
    const diag::Entry* entry = catalogue_.Find(finding.id);
    const diag::Severity severity = SeverityOf(catalogue_, finding);
    static constexpr const char* kZh[] = {"错误", "警告", "提示"};
    const std::string name = options_.lang == diag::Lang::kZh
                                 ? kZh[static_cast<size_t>(severity)]
                                 : std::string(diag::NameOf(severity));
    const char* color = severity == diag::Severity::kError     ? "\x1b[1;31m"
                        : severity == diag::Severity::kWarning ? "\x1b[1;33m"
                                                               : "\x1b[1;36m";
    out_ += options_.color ? color + name + " " + finding.id + "\x1b[0m"
                           : name + " " + finding.id;
    out_ += T(": ", "：");
    out_ += entry != nullptr ? entry->title.in(options_.lang) : "";
    out_ += "\n";
    Hint(T("found", "现象"), Safe(finding.where + ": " + finding.evidence));
    if (entry != nullptr) {
      Hint(T("why", "影响"), entry->cause.in(options_.lang));
      Hint(T("fix", "处理"), entry->fix.in(options_.lang));
    }
    if (!finding.command.empty()) {
      out_ += std::string("  $ ") + Safe(finding.command) + "\n";
    }
    out_ += "\n";
  }

  const Verdict& verdict_;
  const diag::Catalogue& catalogue_;
  const diag::RenderOptions& options_;
  std::string out_;
};

}  // namespace

ordered_json VerdictToJson(const Verdict& verdict,
                           const diag::Catalogue& catalogue, diag::Lang lang) {
  const Facts& facts = verdict.facts;
  ordered_json json;
  json["npus"] = NpusOf(facts);
  json["chip"] = facts.smi.devices.empty() ? "" : facts.smi.devices[0].name;
  json["family"] = NameOf(facts.family);
  json["driver"] = facts.driver;
  json["firmware"] = facts.firmware;
  json["cann"] = facts.cann;
  json["simulator"] = facts.simulator;
  json["container"] = facts.is_container;
  json["packages"] = ordered_json::object();
  for (const char* name :
       {"torch", "torch_npu", "vllm", "vllm_ascend", "transformers", "numpy",
        "triton_ascend", "mindie_llm", "sglang"}) {
    const std::string version = facts.Version(name);
    if (!version.empty()) json["packages"][name] = version;
  }
  json["findings"] = ordered_json::array();
  for (const Finding& finding : verdict.findings) {
    const diag::Entry* entry = catalogue.Find(finding.id);
    json["findings"].push_back(
        {{"id", finding.id},
         {"verdict", diag::NameOf(SeverityOf(catalogue, finding))},
         {"title", entry != nullptr ? entry->title.in(lang) : ""},
         {"where", finding.where},
         {"evidence", Safe(finding.evidence)},
         {"why", entry != nullptr ? entry->cause.in(lang) : ""},
         {"fix", entry != nullptr ? entry->fix.in(lang) : ""},
         {"command", Safe(finding.command)}});
  }
  json["passed"] = verdict.passed;
  return json;
}

std::string VerdictToText(const Verdict& verdict,
                          const diag::Catalogue& catalogue,
                          const diag::RenderOptions& options) {
  return TextReport(verdict, catalogue, options).Write();
}

std::string FixScript(const Verdict& verdict, const diag::Catalogue& catalogue,
                      diag::Lang lang) {
  std::string script =
      "#!/bin/sh\n"
      "# Written by belay doctor. Nothing runs as it stands: read each line,\n"
      "# and take the # away from those that fit this machine.\n";
  for (const Finding& finding : verdict.findings) {
    const diag::Entry* entry = catalogue.Find(finding.id);
    script += "\n# " + finding.id + " " +
              (entry != nullptr ? entry->title.in(lang) : "") + "\n# " +
              Safe(finding.where + ": " + finding.evidence) + "\n";
    if (entry != nullptr && finding.command.empty()) {
      script += "# " + Safe(entry->fix.in(lang)) + "\n";
    } else {
      script += "# " + Safe(finding.command) + "\n";
    }
  }
  return script;
}

}  // namespace belay::doctor
