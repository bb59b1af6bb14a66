// SPDX-License-Identifier: Apache-2.0
#include "apps/belay/trace/trace.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

#include "base/error_ids.h"
#include "engine/step_inputs.h"
#include "model/forward.h"
#include "model/state.h"
#include "spec/layout.h"

namespace belay::trace {
namespace {

constexpr int32_t kNoPlace = -2;  // what golden files put beside -1

Status BadTensor(const std::string& name, std::string expected,
                 std::string got) {
  return MakeError(kTraceBadTensor, {.where = name,
                                     .what = "",
                                     .expected = std::move(expected),
                                     .got = std::move(got)});
}

int32_t ArgMax(const float* logits, int64_t n) {
  return static_cast<int32_t>(std::max_element(logits, logits + n) - logits);
}

// Operators trust the ids that they are given; those of a file are from
// outside.
Status CheckIds(const std::string& name, std::span<const int32_t> ids,
                int64_t least, int64_t limit) {
  for (const int32_t id : ids) {
    if (id >= least && id < limit) continue;
    return BadTensor(
        name,
        "ids " + std::to_string(least) + " .. " + std::to_string(limit - 1),
        std::to_string(id));
  }
  return absl::OkStatus();
}

class Tracer {
 public:
  Tracer(const TraceParts& parts, const TraceOptions& options)
      : parts_(parts),
        o_(options),
        c_(*parts.config),
        n_prompt_(static_cast<int64_t>(options.prompt.size())) {}

  StatusOr<Tensors> Run() {
    BELAY_RETURN_IF_ERROR(CheckOptions());
    BELAY_RETURN_IF_ERROR(Prepare());
    BELAY_RETURN_IF_ERROR(Prompt());
    for (int32_t k = 0; k < o_.n_decode; ++k) {
      if (o_.keep_going && !o_.keep_going(k)) {
        return MakeError(kSysInterrupted, ErrorFacts{});
      }
      BELAY_RETURN_IF_ERROR(Decode(k));
    }
    HostTensor& greedy = Put("greedy_tokens", DType::kI64, {o_.n_decode + 1});
    std::copy(greedy_.begin(), greedy_.end(), greedy.data<int64_t>());
    HostTensor& ids = Put("ids", DType::kI64, {n_prompt_});
    std::copy(o_.prompt.begin(), o_.prompt.end(), ids.data<int64_t>());
    return std::move(out_);
  }

 private:
  bool has_mtp() const { return !parts_.weights->mtp.empty(); }
  int64_t vocab() const { return c_.vocab_size; }

  Status CheckOptions() const;
  Status Prepare();
  Status Prompt();
  Status PromptStep(int64_t start, int64_t n);
  Status PromptMtp(int64_t start, int64_t n);
  void KeepPromptStages();
  Status Decode(int32_t k);
  Status DecodeStages(int32_t k);

  // Runs one pass over `tokens` at `start_pos`, all logits wanted, and copies
  // them to `logits` [n, vocab].
  Status Step(std::span<const int32_t> tokens, int64_t start_pos, bool mtp,
              float* logits);

  StatusOr<ConstTensorView> Golden(const std::string& name, DType dtype,
                                   const Shape& shape) const;
  StatusOr<Forced> ForcedPrompt() const;
  StatusOr<Forced> ForcedDecode(int32_t k);

  // The token after the prompt (k = 0) or after decode step k - 1.
  int32_t Next(int32_t k) const {
    const auto i = static_cast<size_t>(k);
    return o_.feed.empty() ? greedy_[i] : o_.feed[i];
  }

  HostTensor& Put(const std::string& name, DType dtype, const Shape& shape) {
    return out_[name] = HostTensor::Make(dtype, shape);
  }
  float* Row(const char* name, int64_t row) {
    return out_[name].data<float>() + row * vocab();
  }

  const TraceParts& parts_;
  const TraceOptions& o_;
  const spec::ModelConfig& c_;
  const int64_t n_prompt_;
  spec::Layout layout_;
  std::unique_ptr<model::State> state_;
  std::optional<engine::StepInputs> inputs_;
  std::unique_ptr<Recorder> recorder_;
  model::Context context_;
  std::vector<int32_t> greedy_;
  Tensors out_;
};

Status Tracer::CheckOptions() const {
  if (o_.prompt.empty()) return MakeError(kArgEmptyPrompt, ErrorFacts{});
  for (const auto* ids : {&o_.prompt, &o_.feed}) {
    for (const int32_t id : *ids) {
      if (id >= 0 && id < vocab()) continue;
      return MakeError(kArgTokenOutOfRange,
                       {.where = ids == &o_.prompt ? "prompt" : "feed",
                        .what = "",
                        .expected = "0 .. " + std::to_string(vocab() - 1),
                        .got = std::to_string(id)});
    }
  }
  const auto n_feed = static_cast<int64_t>(o_.feed.size());
  if (n_feed != 0 && n_feed != o_.n_decode + 1) {
    return MakeError(kArgBadTokens,
                     {.where = "feed",
                      .what = "",
                      .expected = std::to_string(o_.n_decode + 1) + " ids",
                      .got = std::to_string(n_feed)});
  }
  if (n_prompt_ + o_.n_decode > c_.max_positions) {
    return MakeError(kEngContextTooLong,
                     {.where = "prompt",
                      .what = "",
                      .expected = "<= " + std::to_string(c_.max_positions),
                      .got = std::to_string(n_prompt_ + o_.n_decode)});
  }
  if (o_.chunk > 0 && o_.chunk < n_prompt_ &&
      (o_.replay || !o_.inject.empty())) {
    return MakeError(kArgUsage,
                     {.where = "chunk",
                      .what = "",
                      .expected = "a whole prompt to replay or inject",
                      .got = std::to_string(o_.chunk)});
  }
  if (o_.inject.empty()) return absl::OkStatus();
  const Shape shape{n_prompt_, c_.hc_mult, c_.dim};
  const DType act = parts_.backend->numerics().act_dtype();
  if (o_.inject.shape() == shape && o_.inject.dtype() == act &&
      o_.inject_layer >= 0 && o_.inject_layer <= c_.n_layers) {
    return absl::OkStatus();
  }
  return BadTensor("inject",
                   std::string(DtypeName(act)) + " " + shape.ToString(),
                   std::string(DtypeName(o_.inject.dtype())) + " " +
                       o_.inject.shape().ToString() + " layer " +
                       std::to_string(o_.inject_layer));
}

Status Tracer::Prepare() {
  spec::LayoutOptions options;
  options.max_tokens = o_.chunk > 0 ? std::min(o_.chunk, n_prompt_) : n_prompt_;
  options.max_logit_rows = options.max_tokens;
  options.max_context = n_prompt_ + o_.n_decode;
  options.mtp = has_mtp();
  model::SetFormats(*parts_.backend, &options);
  BELAY_ASSIGN_OR_RETURN(layout_, spec::MakeLayout(c_, parts_.rank, options));
  BELAY_ASSIGN_OR_RETURN(state_,
                         model::CreateState(c_, layout_, *parts_.backend));
  inputs_.emplace(layout_, state_->step);
  std::vector<int32_t> pages(static_cast<size_t>(layout_.max_pages_per_slot));
  std::iota(pages.begin(), pages.end(), 0);
  inputs_->SetPages(0, pages);
  BELAY_ASSIGN_OR_RETURN(
      recorder_, Recorder::Create(c_, *parts_.backend, options.max_tokens,
                                  options.max_context));
  context_ = {.config = parts_.config,
              .weights = parts_.weights,
              .state = state_.get(),
              .backend = parts_.backend,
              .communicator = parts_.communicator,
              .hooks = recorder_.get()};
  return absl::OkStatus();
}

Status Tracer::Step(std::span<const int32_t> tokens, int64_t start_pos,
                    bool mtp, float* logits) {
  inputs_->Clear();
  inputs_->AddSpan(0, static_cast<int32_t>(start_pos), tokens);
  const auto n = static_cast<int32_t>(tokens.size());
  for (int32_t i = 0; i < n; ++i) inputs_->AddLogitRow(i);
  const model::StepPlan plan = inputs_->Upload(*parts_.backend);
  if (mtp) {
    model::ForwardMtp(context_, 0, plan);
  } else {
    model::Forward(context_, plan);
  }
  parts_.backend->CopyOut(logits, state_->activations.ForTokens(0, n).logits);
  const Status finished = parts_.backend->Finish();
  return recorder_->status().ok() ? finished : recorder_->status();
}

StatusOr<ConstTensorView> Tracer::Golden(const std::string& name, DType dtype,
                                         const Shape& shape) const {
  BELAY_ASSIGN_OR_RETURN(const ConstTensorView view, o_.replay(name));
  if (view.empty()) return BadTensor(name, shape.ToString(), "nothing");
  if (view.dtype() != dtype || !(view.shape() == shape)) {
    return BadTensor(
        name, std::string(DtypeName(dtype)) + " " + shape.ToString(),
        std::string(DtypeName(view.dtype())) + " " + view.shape().ToString());
  }
  return view;
}

StatusOr<Forced> Tracer::ForcedPrompt() const {
  Forced forced;
  if (!o_.inject.empty()) {
    forced.inject = o_.inject;
    forced.inject_layer = o_.inject_layer;
  }
  if (!o_.replay) return forced;
  BELAY_ASSIGN_OR_RETURN(
      forced.experts, Golden("experts", DType::kI32,
                             {c_.n_layers, n_prompt_, c_.n_activated_experts}));
  BELAY_RETURN_IF_ERROR(CheckIds("experts", forced.experts.as<int32_t>(), 0,
                                 c_.n_routed_experts));
  forced.selections.resize(static_cast<size_t>(c_.n_layers));
  const int64_t width = std::min(c_.index_topk, n_prompt_ / 4);
  for (int64_t layer = 0; layer < c_.n_layers; ++layer) {
    if (c_.kind(layer) != spec::LayerKind::kCsa || width == 0) continue;
    const std::string name = "index_topk." + std::to_string(layer);
    BELAY_ASSIGN_OR_RETURN(const ConstTensorView rows,
                           Golden(name, DType::kI32, {n_prompt_, width}));
    for (int64_t t = 0; t < n_prompt_; ++t) {
      BELAY_RETURN_IF_ERROR(CheckIds(
          name, {rows.row<int32_t>(t), static_cast<size_t>(width)}, kNoPlace,
          (t + 1) / 4));  // the rows that token t can see
    }
    forced.selections[static_cast<size_t>(layer)] = rows;
  }
  return forced;
}

StatusOr<Forced> Tracer::ForcedDecode(int32_t k) {
  Forced forced;
  if (!o_.replay) return forced;
  const int64_t n_layers = c_.n_layers;
  BELAY_ASSIGN_OR_RETURN(const ConstTensorView experts,
                         o_.replay("decode_experts"));
  if (experts.empty() || experts.shape().rank() != 3 ||
      experts.dtype() != DType::kI32 || experts.dim(0) <= k ||
      experts.dim(1) != n_layers || experts.dim(2) != c_.n_activated_experts) {
    return BadTensor(
        "decode_experts",
        "I32 with at least " + std::to_string(o_.n_decode) + " decode steps",
        experts.shape().ToString());
  }
  BELAY_ASSIGN_OR_RETURN(const ConstTensorView rows,
                         Golden("decode_index_topk", DType::kI32,
                                {experts.dim(0), n_layers, c_.index_topk}));
  forced.experts = ConstTensorView(experts.row<std::byte>(k), DType::kI32,
                                   {n_layers, 1, c_.n_activated_experts});
  BELAY_RETURN_IF_ERROR(CheckIds("decode_experts", forced.experts.as<int32_t>(),
                                 0, c_.n_routed_experts));
  BELAY_RETURN_IF_ERROR(CheckIds(
      "decode_index_topk",
      {rows.row<int32_t>(k), static_cast<size_t>(n_layers * c_.index_topk)},
      kNoPlace, (n_prompt_ + k + 1) / 4));
  for (int64_t layer = 0; layer < n_layers; ++layer) {
    forced.selections.emplace_back(rows.row<int32_t>(k) + layer * c_.index_topk,
                                   DType::kI32, Shape{1, c_.index_topk});
  }
  return forced;
}

void Tracer::KeepPromptStages() {
  Stages& s = recorder_->stages();
  out_["hidden"] = std::move(s.hidden);
  out_["experts"] = std::move(s.experts);
  out_["gate_weights"] = std::move(s.expert_weights);
  out_["gate_margin"] = std::move(s.gate_margin);
  const int64_t width = std::min(c_.index_topk, n_prompt_ / 4);
  for (size_t layer = 0; layer < s.selections.size(); ++layer) {
    if (s.selections[layer].bytes.empty() || width == 0) continue;
    // Not "." + ...: GCC 12 sees an overflow there that cannot be.
    std::string suffix = ".";
    suffix += std::to_string(layer);
    HostTensor& topk =
        Put("index_topk" + suffix, DType::kI32, {n_prompt_, width});
    for (int64_t t = 0; t < n_prompt_; ++t) {
      std::copy_n(s.selections[layer].data<int32_t>() + t * c_.index_topk,
                  width, topk.data<int32_t>() + t * width);
    }
    out_["index_scores" + suffix] = std::move(s.index_scores[layer]);
    out_["index_margin" + suffix] = std::move(s.index_margin[layer]);
  }
}

Status Tracer::PromptStep(int64_t start, int64_t n) {
  BELAY_ASSIGN_OR_RETURN(const Forced forced, ForcedPrompt());
  const bool whole = n == n_prompt_;
  recorder_->Begin(n, start + n, whole ? forced : Forced{});
  const std::span<const int32_t> prompt(o_.prompt);
  BELAY_RETURN_IF_ERROR(
      Step(prompt.subspan(static_cast<size_t>(start), static_cast<size_t>(n)),
           start, /*mtp=*/false, Row("logits_all", start)));
  if (whole) KeepPromptStages();
  return absl::OkStatus();
}

// The hidden state of position p beside the token at p + 1.
Status Tracer::PromptMtp(int64_t start, int64_t n) {
  std::vector<int32_t> shifted;
  for (int64_t p = start + 1; p <= start + n; ++p) {
    shifted.push_back(p < n_prompt_ ? o_.prompt[static_cast<size_t>(p)]
                                    : Next(0));
  }
  return Step(shifted, start, /*mtp=*/true, Row("mtp_logits_all", start));
}

Status Tracer::Prompt() {
  Put("logits_all", DType::kF32, {n_prompt_, vocab()});
  Put("decode_logits", DType::kF32, {o_.n_decode, vocab()});
  if (has_mtp()) {
    Put("mtp_logits_all", DType::kF32, {n_prompt_, vocab()});
    Put("mtp_decode_logits", DType::kF32, {o_.n_decode, vocab()});
  }
  Put("decode_experts", DType::kI32,
      {o_.n_decode, c_.n_layers, c_.n_activated_experts});
  Put("decode_gate_margin", DType::kF32, {o_.n_decode, c_.n_layers});
  Put("decode_index_topk", DType::kI32,
      {o_.n_decode, c_.n_layers, c_.index_topk});
  const int64_t chunk = layout_.options.max_tokens;
  for (int64_t start = 0; start < n_prompt_; start += chunk) {
    const int64_t n = std::min(chunk, n_prompt_ - start);
    BELAY_RETURN_IF_ERROR(PromptStep(start, n));
    if (start + n == n_prompt_) {
      greedy_.push_back(ArgMax(Row("logits_all", n_prompt_ - 1), vocab()));
    }
    if (has_mtp()) BELAY_RETURN_IF_ERROR(PromptMtp(start, n));
  }
  if (has_mtp()) {
    HostTensor& last = Put("mtp_logits", DType::kF32, {vocab()});
    std::copy_n(Row("mtp_logits_all", n_prompt_ - 1), vocab(),
                last.data<float>());
  }
  return absl::OkStatus();
}

Status Tracer::DecodeStages(int32_t k) {
  Stages& s = recorder_->stages();
  const auto copy = [k](HostTensor& from, HostTensor& to) {
    std::memcpy(to.bytes.data() + static_cast<size_t>(k) * from.bytes.size(),
                from.bytes.data(), from.bytes.size());
  };
  copy(s.experts, out_["decode_experts"]);
  copy(s.gate_margin, out_["decode_gate_margin"]);
  int32_t* rows = out_["decode_index_topk"].data<int32_t>() +
                  k * c_.n_layers * c_.index_topk;
  for (size_t layer = 0; layer < s.selections.size(); ++layer) {
    for (int64_t i = 0; i < c_.index_topk; ++i, ++rows) {
      HostTensor& chosen = s.selections[layer];
      const int32_t row = chosen.bytes.empty() ? -1 : chosen.data<int32_t>()[i];
      *rows = row < 0 ? kNoPlace : row;
    }
  }
  return absl::OkStatus();
}

Status Tracer::Decode(int32_t k) {
  const int64_t position = n_prompt_ + k;
  BELAY_ASSIGN_OR_RETURN(const Forced forced, ForcedDecode(k));
  recorder_->Begin(1, position + 1, forced);
  const int32_t token = Next(k);
  BELAY_RETURN_IF_ERROR(
      Step({&token, 1}, position, /*mtp=*/false, Row("decode_logits", k)));
  BELAY_RETURN_IF_ERROR(DecodeStages(k));
  greedy_.push_back(ArgMax(Row("decode_logits", k), vocab()));
  if (!has_mtp()) return absl::OkStatus();
  const int32_t next = Next(k + 1);
  return Step({&next, 1}, position, /*mtp=*/true, Row("mtp_decode_logits", k));
}

}  // namespace

StatusOr<Tensors> RunTrace(const TraceParts& parts,
                           const TraceOptions& options) {
  return Tracer(parts, options).Run();
}

}  // namespace belay::trace
