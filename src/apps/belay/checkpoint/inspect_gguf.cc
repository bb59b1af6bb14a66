// SPDX-License-Identifier: Apache-2.0
#include "apps/belay/checkpoint/inspect_gguf.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "apps/belay/model/gguf_tokenizer.h"
#include "checkpoint/gguf/model.h"
#include "spec/config.h"
#include "spec/tensors.h"

namespace belay::apps {
namespace {

using checkpoint::gguf::GgufModel;
using nlohmann::ordered_json;

// The pre-tokenizer when Belay can use it, else the reason as a status.
StatusOr<std::string> TokenizerName(const GgufModel& model) {
  BELAY_ASSIGN_OR_RETURN(const auto tokenizer,
                         GgufTokenizer(model.metadata(), model.path()));
  return std::string(model.metadata().Text("tokenizer.ggml.pre").value_or(""));
}

std::string NameOf(const GgufModel& model) {
  return std::string(model.metadata().Text("general.name").value_or(""));
}

ordered_json ToJson(const GgufModel& model) {
  ordered_json types = ordered_json::object();
  for (const auto& [name, sum] : model.by_type()) {
    types[name] = {{"tensors", sum.n_tensors}, {"bytes", sum.bytes}};
  }
  ordered_json unused = ordered_json::object();
  for (const auto& [name, sum] : model.report().unused) {
    unused[name] = {{"tensors", sum.n_tensors}, {"bytes", sum.bytes}};
  }
  const auto tokenizer = TokenizerName(model);
  return {{"source", model.path()},
          {"format", "gguf"},
          {"version", model.files().files.front()->version()},
          {"files", model.files().files.size()},
          {"name", NameOf(model)},
          {"config", ordered_json::parse(spec::ConfigToJson(model.config()))},
          {"parameters", spec::CountParameters(model.config()).total},
          {"tensors", {{"bytes", model.weight_bytes()}, {"by_type", types}}},
          {"tokenizer", tokenizer.ok() ? ordered_json(*tokenizer) : nullptr},
          {"unused", unused},
          {"unknown", model.report().unknown}};
}

void Print(const GgufModel& model, const Context& context) {
  const spec::ModelConfig& c = model.config();
  const auto line = [&](const std::string& text) {
    context.out << text << "\n";
  };
  line(fmt::format("{}: GGUF {}, {} {}", model.path(),
                   model.files().files.front()->version(),
                   model.files().files.size(), context.T("file(s)", "个文件")));
  line(fmt::format("  {} {}", context.T("name", "名称"), NameOf(model)));
  line(fmt::format("  {} {}, {} {}, MTP {}", context.T("layers", "层数"),
                   c.n_layers, context.T("hidden size", "隐藏维度"), c.dim,
                   c.n_mtp_layers));
  line(fmt::format("  {} {} / {} + {}", context.T("experts", "专家"),
                   c.n_activated_experts, c.n_routed_experts,
                   c.n_shared_experts));
  line(fmt::format("  {} {:.1f} M, {:.1f} MB", context.T("parameters", "参数"),
                   static_cast<double>(spec::CountParameters(c).total) / 1e6,
                   static_cast<double>(model.weight_bytes()) / 1e6));
  for (const auto& [name, sum] : model.by_type()) {
    line(fmt::format("    {:<6} {:>5} {:>12.1f} MB", name, sum.n_tensors,
                     static_cast<double>(sum.bytes) / 1e6));
  }
  const auto tokenizer = TokenizerName(model);
  line(fmt::format(
      "  {} {}", context.T("tokenizer", "分词器"),
      tokenizer.ok() ? *tokenizer
                     : context.T("none that can be used", "没有可用的分词器")));
  for (const auto& [name, sum] : model.report().unused) {
    line(fmt::format("  {} {}: {}", context.T("not used:", "未使用："), name,
                     sum.n_tensors));
  }
  for (const std::string& name : model.report().unknown) {
    line(fmt::format("  {} {}", context.T("unknown tensor", "未知张量"), name));
  }
}

}  // namespace

StatusOr<ExitCode> InspectGguf(const std::string& path, bool strict,
                               const Context& context) {
  BELAY_ASSIGN_OR_RETURN(const auto model, GgufModel::Open(path, strict));
  if (context.json) {
    PrintJson(context, ToJson(*model));
  } else {
    Print(*model, context);
  }
  return ExitCode::kOk;
}

}  // namespace belay::apps
