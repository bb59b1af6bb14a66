// SPDX-License-Identifier: Apache-2.0
// `belay chat`: a conversation in the terminal.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <istream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/belay/commands.h"
#include "apps/belay/model/loaded_model.h"
#include "apps/belay/model/memory.h"
#include "apps/belay/shell/interrupt.h"
#include "apps/belay/talk/answer_text.h"
#include "apps/belay/talk/prompt.h"
#include "base/error_ids.h"
#include "engine/engine.h"

namespace belay::apps {
namespace {

// Enough for a long talk, small enough for any machine that holds the weights.
constexpr int64_t kDefaultContext = 8192;

// What a Linux terminal passes of one line before its end (n_tty's buffer of
// 4096); the rest of a longer line is lost before we can see it.
constexpr size_t kTerminalLineBytes = 4095;

struct ChatArgs {
  ModelArgs model;
  TalkArgs talk;
  std::string system;
  int32_t max_tokens = 1024;
  std::vector<std::string> stops;
  engine::SamplingParams sampling;
  int64_t max_context = 0;
  bool speculative = false;
  int32_t draft_tokens = 1;  // a step, with speculative
};

class ChatSession {
 public:
  ChatSession(const ChatArgs& args, const Context& context)
      : args_(args), context_(context), talk_(args.talk) {
    Reset();
  }

  StatusOr<ExitCode> Run() {
    BELAY_RETURN_IF_ERROR(Open());
    Say(
        context_.T("Type a message. /help lists the commands, Ctrl-C stops an "
                   "answer.\n",
                   "请输入消息。/help 显示命令，Ctrl-C 停止回答。\n"));
    std::string line;
    while (ReadLine(line)) {
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      if (line.front() == '/') {
        if (!Command(line)) break;
        continue;
      }
      if (context_.err_is_tty && line.size() == kTerminalLineBytes) {
        Say(context_.T(
            "(a terminal cuts a line at 4095 bytes; pipe longer text in, or "
            "use belay run --prompt-file)\n",
            "（终端会把一行截断为 4095 字节；更长的文本请用管道输入，或使用 "
            "belay run --prompt-file）\n"));
      }
      const Status status = Turn(std::move(line));
      // The session outlives a turn that failed, the device's faults excepted.
      if (!status.ok()) PrintStatus(context_, status);
      line.clear();
    }
    return ExitCode::kOk;
  }

 private:
  Status Open();
  void Reset();
  bool ReadLine(std::string& line);
  bool Command(const std::string& line);
  Status Turn(std::string text);
  Status Answer(const TalkPrompt& prompt);
  // A remark of ours, beside the conversation.
  void Say(const std::string& remark) { context_.err << remark << std::flush; }

  const ChatArgs& args_;
  const Context& context_;
  TalkArgs talk_;
  Speaker speaker_;
  std::unique_ptr<LoadedModel> model_;
  std::unique_ptr<engine::Engine> engine_;
  std::vector<text::ChatMessage> messages_;
};

Status ChatSession::Open() {
  BELAY_ASSIGN_OR_RETURN(speaker_, OpenSpeaker(args_.model.folder, talk_));
  BELAY_RETURN_IF_ERROR(engine::CheckSampling(args_.sampling));
  BELAY_ASSIGN_OR_RETURN(model_, LoadModel(args_.model, context_));
  engine::EngineOptions options;
  options.max_context =
      args_.max_context > 0
          ? args_.max_context
          : std::min(kDefaultContext, model_->config().max_positions);
  options.n_draft_tokens = args_.speculative ? args_.draft_tokens : 0;
  options.budget_bytes = AvailableBytes(*model_->backend);
  BELAY_ASSIGN_OR_RETURN(
      engine_,
      engine::Engine::Create({&model_->config(), model_->weights.get(),
                              model_->backend.get(), &model_->communicator},
                             options));
  return absl::OkStatus();
}

void ChatSession::Reset() {
  messages_.clear();
  if (args_.system.empty()) return;
  text::ChatMessage system;
  system.role = text::Role::kSystem;
  system.content = args_.system;
  messages_.push_back(std::move(system));
}

bool ChatSession::ReadLine(std::string& line) {
  // At the prompt Ctrl-C ends the program, as in any other.
  std::signal(SIGINT, SIG_DFL);
  if (context_.err_is_tty) Say("\n> ");
  return context_.in != nullptr &&
         static_cast<bool>(std::getline(*context_.in, line));
}

bool ChatSession::Command(const std::string& line) {
  const std::string command = line.substr(0, line.find_first_of(" \t\r"));
  if (command == "/quit" || command == "/exit") return false;
  if (command == "/reset") {
    Reset();
    Say(context_.T("The conversation is forgotten.\n", "对话已清空。\n"));
  } else if (command == "/think") {
    talk_.thinking = talk_.thinking == "on" ? "off" : "on";
    Say(talk_.thinking == "on"
            ? context_.T("Thinking is on.\n", "已开启思考。\n")
            : context_.T("Thinking is off.\n", "已关闭思考。\n"));
  } else {
    Say(
        context_.T("/reset  forget the conversation\n"
                   "/think  reason before answering, or not\n"
                   "/quit   end (also Ctrl-D)\n",
                   "/reset  清空对话\n"
                   "/think  开启或关闭思考\n"
                   "/quit   退出（也可用 Ctrl-D）\n"));
  }
  return true;
}

Status ChatSession::Turn(std::string text) {
  text::ChatMessage user;
  user.role = text::Role::kUser;
  user.blocks.push_back({text::ContentBlock::Kind::kText, std::move(text), ""});
  messages_.push_back(std::move(user));
  text::ChatRequest request;
  request.messages = messages_;
  const auto prompt = MakePrompt(std::move(request), talk_, speaker_);
  Status status = prompt.ok() ? Answer(*prompt) : prompt.status();
  // A question without an answer would confuse the next prompt.
  if (!status.ok()) messages_.pop_back();
  return status;
}

Status ChatSession::Answer(const TalkPrompt& prompt) {
  const std::atomic<bool>& interrupted = CatchInterrupts();
  AnswerText answer(speaker_.tokenizer, prompt.mode, AnswerStyle::kMessage,
                    args_.stops, context_);
  BELAY_ASSIGN_OR_RETURN(const engine::RequestId id,
                         engine_->Submit({.prompt = prompt.ids,
                                          .max_tokens = args_.max_tokens,
                                          .sampling = args_.sampling,
                                          .stop_ids = model_->eos_ids}));
  engine::FinishReason finish = engine::FinishReason::kNone;
  bool stopped = false;  // by a stop string
  while (engine_->HasWork()) {
    if (interrupted) engine_->Cancel(id);
    BELAY_ASSIGN_OR_RETURN(const auto events, engine_->Step());
    for (const engine::Event& event : events) {
      if (stopped) break;
      finish = event.finish;
      if (event.token < 0 || !answer.Take(event.token)) continue;
      stopped = true;
      finish = engine::FinishReason::kStop;
      engine_->Cancel(id);
    }
  }
  answer.Finish(finish == engine::FinishReason::kStop);
  if (finish == engine::FinishReason::kError) {
    return MakeError(kEngNotFinite, ErrorFacts{});
  }
  if (finish == engine::FinishReason::kLength) {
    Say(context_.T(
        "(cut: --max-tokens or the context is used up; /reset "
        "starts anew)\n",
        "（已截断：达到 --max-tokens 或上下文上限；/reset 重新开始）\n"));
  }
  text::ChatMessage message;
  message.role = text::Role::kAssistant;
  message.content = answer.completion().content;
  message.reasoning_content = answer.completion().reasoning_content;
  message.tool_calls = answer.completion().tool_calls;
  messages_.push_back(std::move(message));
  return absl::OkStatus();
}

}  // namespace

void AddChat(CLI::App& app, Context& context) {
  auto args = std::make_shared<ChatArgs>();
  CLI::App* command = AddCommand(
      app, context,
      {.name = "chat",
       .about = context.T("Talks with a checkpoint in the terminal",
                          "在终端中与检查点对话"),
       .example = "belay chat --model data/demo"},
      [args, &context] { return ChatSession(*args, context).Run(); });
  AddModelOptions(*command, args->model, context);
  AddTalkOptions(*command, args->talk, context);
  command->add_option("--stop", args->stops,
                      context.T("text that ends an answer; may be repeated",
                                "结束回答的文本；可重复使用"));
  command->add_option("--system", args->system,
                      context.T("system message", "系统消息"));
  command
      ->add_option("--max-tokens", args->max_tokens,
                   context.T("longest answer (default 1024)",
                             "回答的最大词元数（默认 1024）"))
      ->check(CLI::Range(1, INT32_MAX, "POSITIVE"));
  command
      ->add_option("--max-context", args->max_context,
                   context.T("positions to plan for (default 8192)",
                             "规划的上下文长度（默认 8192）"))
      ->check(CLI::Range(int64_t{0}, INT64_MAX, "NONNEGATIVE"));
  command->add_option(
      "--temp", args->sampling.temperature,
      context.T("temperature (default 0: greedy)", "温度（默认 0：贪心）"));
  command->add_option("--top-p", args->sampling.top_p,
                      context.T("keep the likeliest that sum to P",
                                "只保留累计概率达到 P 的词元"));
  command
      ->add_option("--seed", args->sampling.seed, context.T("seed", "随机种子"))
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--speculative", args->speculative,
                    context.T("draft with the MTP head; same tokens, faster",
                              "用 MTP 头起草；词元相同，速度更快"));
  command
      ->add_option("--draft-tokens", args->draft_tokens,
                   context.T("tokens it drafts a step, 1 to 4 (default 1)",
                             "每步起草的词元数，1 到 4（默认 1）"))
      ->check(CLI::Range(1, static_cast<int>(engine::kMaxDraftTokens)));
}

}  // namespace belay::apps
