// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "apps/belay/commands.h"
#include "apps/belay/config/config_file.h"
#include "apps/belay/serve/serve.h"
#include "apps/belay/shell/interrupt.h"
#include "base/error_ids.h"
#include "server/service.h"

namespace belay::apps {
namespace {

constexpr auto kPoll = std::chrono::milliseconds(50);

// Lines of several threads on stderr.
class Log {
 public:
  explicit Log(const Context& context) : context_(context) {}
  void Line(const std::string& text) {
    const std::lock_guard lock(mutex_);
    context_.err << text << std::endl;
  }
  void Warn(const Status& status) {
    const std::lock_guard lock(mutex_);
    PrintStatus(context_, status);
  }

 private:
  const Context& context_;
  std::mutex mutex_;
};

void Settle(ServeArgs& args) {
  server::ServeOptions& o = args.server;
  o.max_body_bytes = static_cast<size_t>(args.max_body_mib) << 20;
  o.thinking = args.talk.thinking == "on";
  if (args.strict_canary) o.canary = server::CanaryMode::kStrict;
  if (args.no_canary) o.canary = server::CanaryMode::kOff;
}

bool CanaryFailed(const server::Readiness& readiness) {
  for (const server::CanaryFinding& finding : readiness.findings) {
    if (!finding.status.ok()) return true;
  }
  return false;
}

// Serves until it is interrupted, or cannot serve any more. A canary that
// failed does not end the server: /ready tells which stage it was.
Status WaitForEnd(const server::Service& service,
                  const std::atomic<bool>& interrupted, Log& log,
                  const Context& context) {
  bool was_ready = false;
  while (!interrupted) {
    std::this_thread::sleep_for(kPoll);
    const server::Readiness readiness = service.readiness();
    if (readiness.stage == server::Stage::kReady &&
        !std::exchange(was_ready, true)) {
      log.Line(context.T("ready", "就绪"));
    }
    if (readiness.stage == server::Stage::kFailed &&
        (was_ready || !CanaryFailed(readiness))) {
      return interrupted ? absl::OkStatus() : readiness.error;
    }
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<ExitCode> Serve(ServeArgs args, const Context& context) {
  Settle(args);
  const std::atomic<bool>& interrupted = CatchInterrupts();
  Log log(context);
  // Before the first thread: they all inherit it.
  BELAY_ASSIGN_OR_RETURN(const std::string bound, BindServer(args, context));
  if (!bound.empty()) log.Line(bound);
  BELAY_ASSIGN_OR_RETURN(
      const auto service,
      server::Service::Start(
          args.server, LoaderFor(args, context), context.catalogue,
          {.line = [&log](const std::string& text) { log.Line(text); },
           .warn =
               [&](const Status& status) {
                 // Said by what is returned, or no news to who pressed Ctrl-C.
                 if (ErrorIdOf(status) != kSysInterrupted.id) log.Warn(status);
               }}));
  log.Line(context.T("listening on ", "监听 ") + std::string("http://") +
           args.server.host + ":" + std::to_string(service->port()));
  BELAY_RETURN_IF_ERROR(WaitForEnd(*service, interrupted, log, context));
  service->Drain();
  if (!service->is_idle()) {
    log.Line(context.T("finishing what has begun; once more to stop at once",
                       "正在完成已开始的请求；再次中断将立即停止"));
  }
  while (!service->is_idle()) std::this_thread::sleep_for(kPoll);
  return ExitCode::kOk;
}

void AddServe(CLI::App& app, Context& context) {
  auto args = std::make_shared<ServeArgs>();
  auto config = std::make_shared<ConfigArgs>();
  CLI::App* command = AddCommand(
      app, context,
      {.name = "serve",
       .about = context.T("Serves a checkpoint with the OpenAI API",
                          "以 OpenAI API 提供检查点服务"),
       .example =
           "belay serve --model data/demo --port 8000\n"
           "curl localhost:8000/v1/chat/completions -d "
           "'{\"messages\": [{\"role\": \"user\", \"content\": \"hi\"}]}'"},
      [args, config, &app, &context]() -> StatusOr<ExitCode> {
        CLI::App& serve = *app.get_subcommand("serve");
        if (config->print) {
          context.out << ConfigTemplate(serve);
          return ExitCode::kOk;
        }
        if (!config->path.empty()) {
          BELAY_RETURN_IF_ERROR(ApplyConfigFile(config->path, serve));
        }
        if (args->model.folder.empty()) {
          return MakeError(kArgUsage, {.where = "--model",
                                       .what = "",
                                       .expected = "a checkpoint",
                                       .got = "nothing"});
        }
        return Serve(*args, context);
      });
  AddServeOptions(*command, *args, context);
  // The file may give it.
  command->get_option("--model")->required(false);
  AddConfigOptions(*command, *config, context);
}

}  // namespace belay::apps
