// SPDX-License-Identifier: Apache-2.0
// `belay doctor`: the command line of toolkit/doctor.
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "apps/belay/doctor/doctor.h"
#include "apps/belay/doctor/machine.h"
#include "apps/belay/shell/variable.h"
#include "base/error_ids.h"
#include "base/file.h"
#include "cann_api/api.h"
#include "toolkit/doctor/doctor.h"
#include "toolkit/doctor/hello/hello.h"
#include "toolkit/doctor/machine/recorded.h"
#include "toolkit/doctor/report/report.h"

namespace belay::apps {
namespace {

using nlohmann::ordered_json;

// A command of the machine may hang (a card that does not answer); the rest is
// still worth telling.
constexpr int kCommandTimeoutMs = 1500;
// A ping of another machine sends several packets, a second apart.
constexpr int kPingTimeoutMs = 8000;

struct DoctorArgs {
  std::string scope;
  std::string model;
  std::string from;
  std::string against;
  std::vector<std::string> peers;
  std::string record;
  std::string fix_script;
  bool hello = false;
  int device = 0;
  int timeout_seconds = 30;
};

StatusOr<std::unique_ptr<doctor::Machine>> Open(const DoctorArgs& args) {
  if (!args.from.empty()) return doctor::OpenMachine(args.from);
  return ThisMachine(args.peers.empty() ? kCommandTimeoutMs : kPingTimeoutMs);
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

// One operator on the device instead of all that can be seen from outside.
StatusOr<ExitCode> SayHello(const DoctorArgs& args, const Context& context) {
  doctor::HelloOptions options;
  options.libraries = cann_api::OptionsFrom(Variable);
  options.start.device = args.device;
  options.timeout_ms = 1000 * args.timeout_seconds;
  options.start.ready_timeout_ms = options.timeout_ms;
  const doctor::HelloReport report = doctor::Hello(options);
  if (context.json) {
    PrintJson(context,
              doctor::HelloToJson(report, context.catalogue, context.lang));
  } else {
    context.out << doctor::HelloToText(report, context.catalogue,
                                       context.out_style);
  }
  return report.status.ok() ? ExitCode::kOk : ExitCode::kFindings;
}

StatusOr<ExitCode> Doctor(const DoctorArgs& args, const Context& context) {
  if (args.hello) return SayHello(args, context);
  // The context's own catalogue holds the errors only.
  BELAY_ASSIGN_OR_RETURN(const diag::Catalogue catalogue,
                         diag::Catalogue::LoadEmbedded());
  doctor::Options options;
  options.model = args.model;
  BELAY_ASSIGN_OR_RETURN(options.scopes, doctor::ParseScopes(args.scope));
  BELAY_ASSIGN_OR_RETURN(const std::unique_ptr<doctor::Machine> machine,
                         Open(args));
  std::unique_ptr<doctor::Machine> other;
  doctor::Verdict others;
  if (!args.against.empty()) {
    BELAY_ASSIGN_OR_RETURN(other, doctor::OpenMachine(args.against));
    others = doctor::Examine(*other, catalogue, options);
    options.against = &others.facts;
  }
  std::vector<std::unique_ptr<doctor::Machine>> peers;
  for (const std::string& file : args.peers) {
    BELAY_ASSIGN_OR_RETURN(std::unique_ptr<doctor::Machine> peer,
                           doctor::OpenMachine(file));
    options.peers.push_back({file, peer.get()});
    peers.push_back(std::move(peer));
  }
  doctor::Recorder recorder(*machine);
  const doctor::Verdict verdict = doctor::Examine(recorder, catalogue, options);
  std::vector<doctor::Difference> differences;
  if (!args.against.empty()) {
    differences = doctor::Compare(verdict.facts, others.facts);
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
                  "belay doctor --from machine.tar.zst --fix-script fix.sh\n"
                  "belay doctor --hello --device 0"},
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
      "--peer", args->peers,
      context.T("recorded machines of the same job: addresses, TLS, versions, "
                "ping",
                "同一任务的其他机器（记录）：核对地址、TLS、版本并 ping"));
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
  command->add_flag(
      "--hello", args->hello,
      context.T("only run one small operator on the device, and time each step "
                "of the start",
                "仅在设备上运行一个小算子，并为启动的每一步计时"));
  command->add_option("--device", args->device,
                      context.T("number of the device for --hello (default 0)",
                                "--hello 使用的设备号（默认 0）"));
  command
      ->add_option("--timeout", args->timeout_seconds,
                   context.T("seconds that --hello waits for the device "
                             "(default 30)",
                             "--hello 等待设备的秒数（默认 30）"))
      ->check(CLI::Range(1, 3600));
  AddJsonFlag(*command, context);
}

}  // namespace belay::apps
