// SPDX-License-Identifier: Apache-2.0
#include "toolkit/doctor/doctor.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>
#include <utility>

#include "base/error_ids.h"

namespace belay::doctor {
namespace {

constexpr std::string_view kScopes[] = {"host",   "container", "cann",
                                        "python", "network",   "model"};

struct Check {
  Scope scope;
  void (*run)(Patient&);
};
constexpr Check kChecks[] = {
    {Scope::kHost, CheckDevices},        {Scope::kHost, CheckTuning},
    {Scope::kHost, CheckPlacement},      {Scope::kHost, CheckVersions},
    {Scope::kContainer, CheckContainer}, {Scope::kCann, CheckToolkit},
    {Scope::kCann, CheckLibraries},      {Scope::kCann, CheckVariables},
    {Scope::kPython, CheckPackages},     {Scope::kNetwork, CheckNetwork},
    {Scope::kNetwork, CheckPeers},       {Scope::kModel, CheckModel},
};

}  // namespace

StatusOr<std::vector<Scope>> ParseScopes(std::string_view list) {
  std::vector<Scope> scopes;
  for (const std::string& name : Split(std::string(list), ',')) {
    const auto* found = std::find(std::begin(kScopes), std::end(kScopes), name);
    if (found == std::end(kScopes)) {
      return MakeError(kArgUsage,
                       {.where = "--scope",
                        .what = "",
                        .expected = "host, container, cann, python, network "
                                    "or model",
                        .got = name});
    }
    scopes.push_back(static_cast<Scope>(found - std::begin(kScopes)));
  }
  return scopes;
}

diag::Severity SeverityOf(const diag::Catalogue& catalogue,
                          const Finding& finding) {
  const diag::Entry* entry = catalogue.Find(finding.id);
  return entry != nullptr ? entry->severity : diag::Severity::kWarning;
}

Verdict Examine(Machine& machine, const diag::Catalogue& catalogue,
                const Options& options) {
  Verdict verdict;
  verdict.facts = ReadFacts(machine);
  Patient patient{.machine = machine,
                  .facts = verdict.facts,
                  .catalogue = catalogue,
                  .model = options.model,
                  .peers = options.peers,
                  .against = options.against};
  std::map<Scope, size_t> n_of_scope;
  for (const Check& check : kChecks) {
    if (!options.scopes.empty() &&
        std::find(options.scopes.begin(), options.scopes.end(), check.scope) ==
            options.scopes.end()) {
      continue;
    }
    const size_t n_before = patient.findings.size();
    check.run(patient);
    n_of_scope[check.scope] += patient.findings.size() - n_before;
  }
  for (const auto& [scope, n] : n_of_scope) {
    if (n == 0) {
      verdict.passed.emplace_back(kScopes[static_cast<size_t>(scope)]);
    }
  }
  verdict.findings = std::move(patient.findings);
  std::stable_sort(verdict.findings.begin(), verdict.findings.end(),
                   [&](const Finding& a, const Finding& b) {
                     return std::tuple(SeverityOf(catalogue, a), a.id) <
                            std::tuple(SeverityOf(catalogue, b), b.id);
                   });
  return verdict;
}

std::vector<Difference> Compare(const Facts& one, const Facts& other) {
  const auto listed = [](const Facts& facts) {
    std::map<std::string, std::string> all;
    all["arch"] = facts.arch;
    all["container"] = facts.is_container ? "yes" : "no";
    all["devices"] = fmt::format("{}", facts.nodes.size());
    all["chip"] = facts.smi.devices.empty() ? "" : facts.smi.devices[0].name;
    all["family"] = std::string(NameOf(facts.family));
    all["npu-smi"] = facts.smi.version;
    all["CANN folder"] = facts.cann_root;
    all["python"] = facts.python;
    all["driver"] = facts.driver;
    all["firmware"] = facts.firmware;
    all["CANN"] = facts.cann;
    for (const auto& [name, package] : facts.packages) {
      all["python " + name] = package.version;
    }
    for (const auto& [name, value] : facts.variables) {
      if (name.starts_with("ASCEND") || name.starts_with("HCCL") ||
          name.starts_with("PYTORCH_NPU") || name == "LD_LIBRARY_PATH") {
        all["$" + name] = value;
      }
    }
    return all;
  };
  const auto a = listed(one);
  const auto b = listed(other);
  std::vector<Difference> differences;
  auto names = a;
  names.insert(b.begin(), b.end());
  for (const auto& item : names) {
    const std::string& name = item.first;
    const auto of = [&](const std::map<std::string, std::string>& all) {
      const auto found = all.find(name);
      return found == all.end() ? "" : found->second;
    };
    if (of(a) != of(b)) differences.push_back({name, of(a), of(b)});
  }
  return differences;
}

}  // namespace belay::doctor
