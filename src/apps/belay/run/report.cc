// SPDX-License-Identifier: Apache-2.0
#include "apps/belay/run/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error_ids.h"
#include "kernels/simd_target.h"

namespace belay::apps {
namespace {

using Json = nlohmann::ordered_json;

double Rate(int64_t n, double seconds) {
  return seconds > 0 ? static_cast<double>(n) / seconds : 0;
}

Json Phase(int64_t n, double seconds) {
  return {{"tokens", n},
          {"seconds", seconds},
          {"tokens_per_second", Rate(n, seconds)}};
}

// Memory by what it is for; the planner's words.
Json MemoryOf(const LoadedModel& model, const spec::Layout& layout) {
  Json memory = {{"weights", model.weight_bytes()}};
  for (size_t i = 0; i < layout.bytes_by_kind.size(); ++i) {
    const auto kind = static_cast<spec::MemoryKind>(i);
    memory[std::string(spec::MemoryKindName(kind))] = layout.bytes_by_kind[i];
  }
  return memory;
}

std::string Mib(uint64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

AnswerStyle StyleOf(const RunArgs& args, const Context& context) {
  if (context.json) return AnswerStyle::kSilent;
  return args.raw ? AnswerStyle::kRaw : AnswerStyle::kMessage;
}

}  // namespace

Answer::Answer(const RunArgs& args, const RunPrompt& prompt,
               const LoadedModel& model, const Context& context)
    : args_(args), model_(model), context_(context), prompt_(prompt) {
  if (!prompt.speaker.has_value()) return;
  text_.emplace(prompt.speaker->tokenizer, prompt.prompt.mode,
                StyleOf(args, context), args.stops, context);
}

bool Answer::Take(const engine::Event& event) {
  if (stopped_) return true;
  finish_ = event.finish;
  if (event.token < 0) return false;
  if (text_.has_value()) {
    stopped_ = text_->Take(event.token);
    if (stopped_) finish_ = engine::FinishReason::kStop;
  } else if (!context_.json) {
    context_.out << (tokens_.empty() ? "" : " ") << event.token << std::flush;
  }
  tokens_.push_back(event.token);
  return stopped_;
}

void Answer::PrintReport(const engine::Engine& engine) const {
  const engine::EngineStats& s = engine.stats();
  const auto line = [&](const char* en, const char* zh, std::string value) {
    context_.err << "  " << context_.T(en, zh) << ": " << value << "\n";
  };
  line("finish", "结束原因", std::string(engine::FinishReasonName(finish_)));
  line("load", "加载", fmt::format("{:.2f} s", model_.load_seconds));
  line("prefill", "预填充",
       fmt::format("{} tok, {:.3f} s, {:.1f} tok/s", s.n_prefill_tokens,
                   s.prefill_seconds,
                   Rate(s.n_prefill_tokens, s.prefill_seconds)));
  line(
      "decode", "解码",
      fmt::format("{} tok, {:.3f} s, {:.1f} tok/s", s.n_decode_tokens,
                  s.decode_seconds, Rate(s.n_decode_tokens, s.decode_seconds)));
  if (s.n_drafts > 0) {
    line("drafts", "草稿", fmt::format("{} / {}", s.n_accepted, s.n_drafts));
  }
  std::string memory = fmt::format("weights {}", Mib(model_.weight_bytes()));
  for (size_t i = 0; i < engine.layout().bytes_by_kind.size(); ++i) {
    const auto kind = static_cast<spec::MemoryKind>(i);
    const size_t bytes = engine.layout().bytes_by_kind[i];
    if (bytes == 0) continue;
    memory += fmt::format(", {} {}", spec::MemoryKindName(kind), Mib(bytes));
  }
  line("memory", "内存", memory);
}

void Answer::PrintAnswerJson(const engine::Engine& engine,
                             uint64_t seed) const {
  const engine::EngineStats& s = engine.stats();
  Json json = {{"prompt_tokens", prompt_.prompt.ids.size()},
               {"tokens", tokens_},
               {"finish_reason", engine::FinishReasonName(finish_)},
               {"timing",
                {{"load", {{"seconds", model_.load_seconds}}},
                 {"prefill", Phase(s.n_prefill_tokens, s.prefill_seconds)},
                 {"decode", Phase(s.n_decode_tokens, s.decode_seconds)}}},
               {"memory", MemoryOf(model_, engine.layout())},
               {"backend", model_.backend->name()},
               {"numerics", args_.model.numerics},
               {"activations", args_.model.activations},
               {"threads", model_.pool->n_threads()},
               {"seed", seed}};
  if (text_.has_value()) {
    json["text"] = text_->raw();
    if (!args_.raw) {
      json["message"] = Json::parse(
          text::DumpJson(text::CompletionToJson(text_->completion())));
    }
    json["reasoning_tokens"] = text_->completion().n_reasoning_tokens;
  }
  if (args_.speculative) {
    json["speculative"] = {{"drafts", s.n_drafts}, {"accepted", s.n_accepted}};
  }
  PrintJson(context_, json);
}

StatusOr<ExitCode> Answer::Finish(const engine::Engine& engine, uint64_t seed) {
  if (text_.has_value()) {
    text_->Finish(finish_ == engine::FinishReason::kStop);
  } else if (!context_.json) {
    context_.out << std::endl;
  }
  if (finish_ == engine::FinishReason::kCancelled) {
    const Status interrupted = MakeError(kSysInterrupted, ErrorFacts{});
    if (!context_.json) return interrupted;
    // The tokens so far are worth keeping, and a second document on stdout
    // would make both unreadable.
    PrintStatus(context_, interrupted);
    PrintAnswerJson(engine, seed);
    return ExitCode::kInterrupted;
  }
  if (finish_ == engine::FinishReason::kError) {
    return MakeError(kEngNotFinite, {.where = args_.model.folder,
                                     .what = "",
                                     .expected = "",
                                     .got = std::to_string(tokens_.size())});
  }
  context_.json ? PrintAnswerJson(engine, seed) : PrintReport(engine);
  return ExitCode::kOk;
}

StatusOr<ExitCode> ExplainBackend(const ops::Backend& backend,
                                  const Context& context) {
  Json list = Json::array();
  for (const ops::Implementation& i : backend.Explain()) {
    list.push_back({{"operator", i.op},
                    {"implementation", i.name},
                    {"applies", i.applies.ok()},
                    {"reason", std::string(i.applies.message())}});
    if (context.json) continue;
    context.out << fmt::format("{:18} {:24} {}\n", i.op, i.name,
                               i.applies.ok()
                                   ? context.T("yes", "是")
                                   : std::string(i.applies.message()).c_str());
  }
  Json start = Json::array();
  for (const ops::StartStep& step : backend.StartSteps()) {
    start.push_back({{"step", step.name}, {"ms", 1e3 * step.seconds}});
    if (context.json) continue;
    context.out << fmt::format("{}{:14} {:9.3f} ms\n",
                               context.T("start: ", "启动："), step.name,
                               1e3 * step.seconds);
  }
  // The instruction set in force, and all that could be.
  const bool simd = backend.name() == "cpu";
  const std::string_view target = simd ? kernels::SimdTarget() : "scalar";
  Json targets = Json::array();
  if (simd) {
    for (const std::string_view name : kernels::SimdTargets()) {
      targets.push_back(name);
    }
  }
  if (context.json) {
    PrintJson(context, {{"backend", backend.name()},
                        {"simd_target", target},
                        {"simd_targets", targets},
                        {"implementations", list},
                        {"start", start}});
  } else if (simd || start.empty()) {
    context.out << context.T("instruction set: ", "指令集：") << target << "  "
                << targets.dump() << "\n";
  }
  return ExitCode::kOk;
}

}  // namespace belay::apps
