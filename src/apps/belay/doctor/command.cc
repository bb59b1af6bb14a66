// SPDX-License-Identifier: Apache-2.0
// `belay doctor`: the command line of toolkit/doctor.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "apps/belay/doctor/doctor.h"
#include "base/error_ids.h"
#include "base/file.h"
#include "toolkit/doctor/doctor.h"
#include "toolkit/doctor/machine/live.h"
#include "toolkit/doctor/machine/recorded.h"
#include "toolkit/doctor/report/report.h"

namespace belay::apps {
namespace {

using nlohmann::ordered_json;

// A command of the machine may hang (a card that does not answer); the rest is
// still worth telling.
constexpr int kCommandTimeoutMs = 1500;

struct DoctorArgs {
  std::string scope;
  std::string model;
  std::string from;
  std::string against;
  std::string record;
  std::string fix_script;
};

std::map<std::string, std::string> ProcessVariables() {
  std::map<std::string, std::string> variables;
  for (char** one = environ; one != nullptr && *one != nullptr; ++one) {
    const std::string text = *one;
    const size_t mark = text.find('=');
    if (mark != std::string::npos) {
      variables[text.substr(0, mark)] = text.substr(mark + 1);
    }
  }
  return variables;
}

StatusOr<std::unique_ptr<doctor::Machine>> Open(const std::string& from) {
  if (!from.empty()) return doctor::OpenMachine(from);
  return doctor::NewLiveMachine(ProcessVariables(), kCommandTimeoutMs);
}

void PrintDifferences(const std::vector<doctor::Difference>& differences,
                      const Context& context) {
  if (differences.empty()) {
    context.out << context.T("The two machines agree.\n", "两台机器一致。\n");
    return;
  }
  context.out << context.T("differences (this, other):\n",
                           "差异（本机，对方）：\n");
  for (const doctor::Difference& one : differences) {
    context.out << "  " << diag::EscapeControls(one.name) << ": "
                << diag::EscapeControls(one.one.empty() ? "-" : one.one)
                << " | "
                << diag::EscapeControls(one.other.empty() ? "-" : one.other)
                << "\n";
  }
}

StatusOr<ExitCode> Doctor(const DoctorArgs& args, const Context& context) {
  // The context's own catalogue holds the errors only.
  BELAY_ASSIGN_OR_RETURN(const diag::Catalogue catalogue,
                         diag::Catalogue::LoadEmbedded());
  doctor::Options options;
  options.model = args.model;
  BELAY_ASSIGN_OR_RETURN(options.scopes, doctor::ParseScopes(args.scope));
  BELAY_ASSIGN_OR_RETURN(const std::unique_ptr<doctor::Machine> machine,
                         Open(args.from));
  doctor::Recorder recorder(*machine);
  const doctor::Verdict verdict = doctor::Examine(recorder, catalogue, options);
  std::vector<doctor::Difference> differences;
  if (!args.against.empty()) {
    BELAY_ASSIGN_OR_RETURN(const std::unique_ptr<doctor::Machine> other,
                           doctor::OpenMachine(args.against));
    differences = doctor::Compare(
        verdict.facts, doctor::Examine(*other, catalogue, options).facts);
  }
  if (context.json) {
    ordered_json json = doctor::VerdictToJson(verdict, catalogue, context.lang);
    if (!args.against.empty()) {
      json["differences"] = ordered_json::array();
      for (const doctor::Difference& one : differences) {
        json["differences"].push_back(
            {{"name", one.name}, {"this", one.one}, {"other", one.other}});
      }
    }
    PrintJson(context, json);
  } else {
    context.out << doctor::VerdictToText(verdict, catalogue, context.out_style);
    if (!args.against.empty()) PrintDifferences(differences, context);
  }
  if (!args.record.empty()) {
    BELAY_RETURN_IF_ERROR(recorder.Write(args.record));
  }
  if (!args.fix_script.empty()) {
    BELAY_RETURN_IF_ERROR(WriteFileAtomically(
        args.fix_script, doctor::FixScript(verdict, catalogue, context.lang)));
  }
  for (const doctor::Finding& finding : verdict.findings) {
    if (doctor::SeverityOf(catalogue, finding) != diag::Severity::kInfo) {
      return ExitCode::kFindings;
    }
  }
  return ExitCode::kOk;
}

}  // namespace

void AddDoctor(CLI::App& app, Context& context) {
  auto args = std::make_shared<DoctorArgs>();
  CLI::App* command = AddCommand(
      app, context,
      {.name = "doctor",
       .about = context.T("Judges whether this machine can run a model",
                          "检查并评判本机环境"),
       .example = "belay doctor\nbelay doctor --scope host,cann --json\n"
                  "belay doctor --record machine.tar.zst\n"
                  "belay doctor --from machine.tar.zst --fix-script fix.sh"},
      [args, &context] { return Doctor(*args, context); });
  command->add_option("--scope", args->scope,
                      context.T("host, container, cann, python, network, "
                                "model (default: all)",
                                "host、container、cann、python、network、"
                                "model（默认全部）"));
  command->add_option("--model", args->model,
                      context.T("folder of the checkpoint that shall run here",
                                "将在本机运行的检查点文件夹"));
  command->add_option(
      "--from", args->from,
      context.T("judge a recorded machine instead", "改为评判记录的机器"));
  command->add_option(
      "--against", args->against,
      context.T("a recorded machine to compare with", "对比用的记录"));
  command->add_option(
      "--record", args->record,
      context.T("write what was read as a tar archive (.tar.zst, .tar.gz): "
                "files and folders, npu-smi, the NPU lines of dmesg, "
                "variables of Ascend and PyTorch; no keys",
                "把读到的内容写成 tar 归档（.tar.zst、.tar.gz）：文件与目录、"
                "npu-smi、dmesg 中的 NPU 行、昇腾与 PyTorch "
                "变量；不含密钥"));
  command->add_option("--fix-script", args->fix_script,
                      context.T("write the commands as a script, all of them "
                                "commented out",
                                "把处理命令写成脚本，全部注释掉"));
  AddJsonFlag(*command, context);
}

}  // namespace belay::apps
