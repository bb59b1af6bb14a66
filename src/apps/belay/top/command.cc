// SPDX-License-Identifier: Apache-2.0
// `belay top`: the command line of toolkit/top.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>

#include "apps/belay/doctor/machine.h"
#include "apps/belay/shell/interrupt.h"
#include "apps/belay/top/top.h"
#include "base/error_ids_toolkit.h"
#include "http/client.h"
#include "toolkit/top/view.h"

namespace belay::apps {
namespace {

constexpr int kSmiTimeoutMs = 5000;
constexpr double kMetricsTimeoutS = 5;
constexpr auto kPoll = std::chrono::milliseconds(50);

struct TopArgs {
  std::string url;
  double interval_s = 2;
  int count = 0;  // 0: until it is interrupted
  bool once = false;
};

// Where the samples come from.
class Source {
 public:
  static StatusOr<Source> Open(const TopArgs& args) {
    Source source;
    source.machine_ = ThisMachine(kSmiTimeoutMs);
    if (args.url.empty()) return source;
    BELAY_ASSIGN_OR_RETURN(http::Url url, http::ParseUrl(args.url));
    if (url.path.ends_with("/metrics")) {
      url.path.resize(url.path.size() - 8);
    }
    BELAY_ASSIGN_OR_RETURN(source.client_,
                           http::Client::Create(std::move(url)));
    return source;
  }

  // `error` is that of the engine; the devices are shown all the same.
  top::Sample Take(Status& error) {
    top::Sample sample;
    sample.time_s = std::chrono::duration<double>(
                        std::chrono::steady_clock::now().time_since_epoch())
                        .count();
    const doctor::CommandOutput smi = machine_->Run("npu-smi info");
    sample.smi = doctor::ParseNpuSmi(smi.out);
    if (sample.smi.devices.empty()) {
      sample.trouble = !smi.is_found   ? "npu-smi: not found"
                       : smi.timed_out ? "npu-smi: no answer in time"
                                       : smi.out.substr(0, smi.out.find('\n'));
    }
    error = absl::OkStatus();
    if (client_ != nullptr) error = AskEngine(sample);
    if (!error.ok()) sample.engine_trouble = std::string(error.message());
    return sample;
  }

 private:
  Status AskEngine(top::Sample& sample) {
    BELAY_ASSIGN_OR_RETURN(
        const http::Response answer,
        client_->Fetch({.path = "/metrics", .timeout_s = kMetricsTimeoutS}));
    if (answer.status == 200) {
      sample.engine = top::EngineFrom(top::ParseMetrics(answer.body));
    }
    if (sample.engine) return absl::OkStatus();
    return MakeError(
        kTopNoMetrics,
        {.where = "/metrics",
         .what = "",
         .expected = "metrics of belay, vLLM or SGLang",
         .got =
             answer.status == 200 ? "others" : std::to_string(answer.status)});
  }

  std::unique_ptr<doctor::Machine> machine_;
  std::unique_ptr<http::Client> client_;
};

void Show(const top::View& view, const TopArgs& args, const Context& context) {
  if (context.json) {
    // One document a line, so that a stream of them can be read.
    context.out << top::ViewToJson(view).dump(
                       -1, ' ', false, nlohmann::json::error_handler_t::replace)
                << std::endl;
    return;
  }
  // A terminal shows the newest; elsewhere they follow each other.
  if (!args.once && &context.out == &std::cout && isatty(STDOUT_FILENO) != 0) {
    context.out << "\x1b[H\x1b[J";
  }
  context.out << top::ViewToText(view, context.lang == diag::Lang::kZh,
                                 context.out_style.width)
              << std::flush;
}

void Sleep(double seconds, const std::atomic<bool>& interrupted) {
  const auto end = std::chrono::steady_clock::now() +
                   std::chrono::duration_cast<std::chrono::nanoseconds>(
                       std::chrono::duration<double>(seconds));
  while (!interrupted && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(
        kPoll, end - std::chrono::steady_clock::now()));
  }
}

// Rates need two samples, so that --once takes two, an interval apart, when
// there is an engine.
StatusOr<ExitCode> Top(const TopArgs& args, const Context& context) {
  const std::atomic<bool>& interrupted = CatchInterrupts();
  BELAY_ASSIGN_OR_RETURN(Source source, Source::Open(args));
  Status error;
  top::View view = top::Look(nullptr, source.Take(error));
  if (args.once) {
    BELAY_RETURN_IF_ERROR(error);
    if (!args.url.empty()) {
      Sleep(args.interval_s, interrupted);
      const top::Sample before = std::move(view.sample);
      view = top::Look(&before, source.Take(error));
      BELAY_RETURN_IF_ERROR(error);
    }
    Show(view, args, context);
    return view.notes.empty() ? ExitCode::kOk : ExitCode::kFindings;
  }
  for (int n = 1;; ++n) {
    Show(view, args, context);
    if (n == args.count) break;
    Sleep(args.interval_s, interrupted);
    if (interrupted) break;
    const top::Sample before = std::move(view.sample);
    view = top::Look(&before, source.Take(error));
  }
  return ExitCode::kOk;
}

}  // namespace

void AddTop(CLI::App& app, Context& context) {
  auto args = std::make_shared<TopArgs>();
  CLI::App* command =
      AddCommand(app, context,
                 {.name = "top",
                  .about = context.T("Shows devices and engine at work",
                                     "实时显示设备与引擎状态"),
                  .example = "belay top --url http://localhost:8000\n"
                             "belay top --once --json\n"
                             "belay sim run -- belay top --once"},
                 [args, &context] { return Top(*args, context); });
  command->add_option(
      "--url", args->url,
      context.T("address of a server with /metrics: belay, vLLM or SGLang",
                "提供 /metrics 的服务器地址：belay、vLLM 或 SGLang"));
  command
      ->add_option("--interval", args->interval_s,
                   context.T("seconds between two looks (default 2)",
                             "刷新间隔，秒（默认 2）"))
      ->check(CLI::Range(0.05, 3600.0));
  command
      ->add_option("--count", args->count,
                   context.T("looks (default: until Ctrl-C)",
                             "显示次数（默认直到 Ctrl-C）"))
      ->check(CLI::Range(0, 1000000000));
  command->add_flag("--once", args->once,
                    context.T("one look; exit code 1 when a rule is met",
                              "只看一次；命中规则时退出码为 1"));
  AddJsonFlag(*command, context);
}

}  // namespace belay::apps
