// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/layer_test.h"

#include <cmath>
#include <cstring>
#include <random>

#include "base/float_formats.h"
#include "base/thread_pool.h"

namespace belay::cpu {
namespace {

constexpr int64_t kDim = 256;
constexpr int64_t kHc = 4;
constexpr int64_t kHeads = 6;
constexpr int64_t kHeadDim = 128;
constexpr int64_t kRope = 64;
constexpr int64_t kLora = 128;
constexpr int64_t kGroups = 2;
constexpr int64_t kOLora = 128;
constexpr int64_t kIndexHeads = 3;
constexpr int64_t kIndexDim = 128;
constexpr int64_t kTopK = 8;
constexpr int64_t kWindow = 16;
constexpr int64_t kRing = 24;
constexpr int64_t kRatio = 4;
constexpr int64_t kExperts = 8;
constexpr int64_t kExpertK = 3;
constexpr int64_t kInter = 256;
constexpr int64_t kVocab = 200;
constexpr int64_t kSlots = 3;
constexpr int64_t kContext = 256;
constexpr int64_t kMaxTokens = 160;

ops::OpLimits Limits() {
  return {.n_tokens = kMaxTokens,
          .n_context = kContext,
          .dim = kDim,
          .n_heads = kHeads,
          .head_dim = kHeadDim,
          .q_lora_rank = kLora,
          .o_mid = kGroups * kOLora,
          .n_index_heads = kIndexHeads,
          .index_dim = kIndexDim,
          .index_topk = kTopK,
          .window_size = kWindow,
          .n_experts = kExperts,
          .n_experts_per_token = kExpertK,
          .moe_inter = kInter,
          .vocab = kVocab,
          .hc_mult = static_cast<int>(kHc)};
}

// Random tensors, owned.
class Source {
 public:
  TensorView Zeros(DType dtype, const Shape& shape) {
    auto buffer = Buffer::Create(static_cast<size_t>(shape.n_elements()) *
                                 DtypeBytes(dtype));
    BELAY_CHECK(buffer.ok());
    buffers_.push_back(std::move(*buffer));
    return buffers_.back().view(dtype, shape);
  }

  TensorView Random(DType dtype, const Shape& shape, float scale) {
    const TensorView view = Zeros(dtype, shape);
    std::normal_distribution<float> normal(0.0f, scale);
    for (int64_t i = 0; i < view.n_elements(); ++i) {
      const float v = normal(rng_);
      switch (dtype) {
        case DType::kF32:
          static_cast<float*>(view.data())[i] = v;
          break;
        case DType::kBF16:
          static_cast<uint16_t*>(view.data())[i] = Bf16FromF32(v);
          break;
        case DType::kF8E8M0:
          static_cast<uint8_t*>(view.data())[i] =
              static_cast<uint8_t>(119 + rng_() % 4);
          break;
        default:  // codes; no NaN of e4m3
          static_cast<uint8_t*>(view.data())[i] =
              static_cast<uint8_t>(rng_()) & 0xbf;
      }
    }
    return view;
  }

  ops::LinearSource Fp8(int64_t n_out, int64_t n_in) {
    return {.weight = Random(DType::kF8E4M3, {n_out, n_in}, 1.0f),
            .scale = Random(DType::kF8E8M0,
                            {(n_out + 127) / 128, (n_in + 127) / 128}, 1.0f)};
  }
  ops::LinearSource Fp4(int64_t n_out, int64_t n_in) {
    return {.weight = Random(DType::kI8, {n_out, n_in / 2}, 1.0f),
            .scale = Random(DType::kF8E8M0, {n_out, n_in / 32}, 1.0f),
            .block_n = 1,
            .block_k = 32};
  }
  ops::LinearSource Bf16(int64_t n_out, int64_t n_in) {
    return {.weight = Random(DType::kBF16, {n_out, n_in}, 0.06f), .scale = {}};
  }

 private:
  std::mt19937 rng_{20261130};
  std::vector<Buffer> buffers_;
};

using Linear = std::unique_ptr<ops::BoundLinear>;

Linear Bind(ops::Backend& backend, const ops::LinearSource& source) {
  auto bound = backend.BindLinear(source);
  BELAY_CHECK(bound.ok());
  return std::move(*bound);
}

}  // namespace

struct TestLayer::State {
  State(const ops::Numerics& n, int n_threads)
      : pool(*ThreadPool::Create(n_threads)),
        backend(*Create(n, pool.get())),
        act(n.act_dtype()) {}

  void BindWeights();
  void MakeCaches();
  void Attention(const ops::BatchView& batch, int64_t n);
  void Experts(int64_t n);
  void Head(int64_t n);
  TensorView Rows(TensorView t, int64_t n) { return t.rows(0, n); }

  std::unique_ptr<ThreadPool> pool;
  std::unique_ptr<ops::Backend> backend;
  DType act;
  Source source;

  ConstTensorView table, norm, q_norm, kv_norm, sink, freq;
  ops::HcWeights hc, hc_head;
  ops::CompressorWeights kv_compressor, index_compressor;
  Linear wq_a, wq_b, wkv, wo_a, wo_b, index_wq_b, weights_proj, gate, head;
  std::vector<Linear> compressor_linears;
  std::unique_ptr<ops::BoundExperts> experts, shared;
  ConstTensorView gate_bias;

  ops::WindowCache window;
  ops::PagedCache compressed, index_keys;
  ops::CompressorState kv_state, index_state;
  TensorView page_table;

  TensorView ids, positions, slots, h, x, post, comb, qr, q, fresh, raw,
      index_raw, selection, o, mid, y, expert_ids, expert_weights, gate_logits,
      acc, last, logits, sampled, row_ids;
  std::vector<ops::Span> spans;
  std::vector<ops::SampleRow> sample_rows;
  int64_t n_tokens = 0;
};

void TestLayer::State::BindWeights() {
  Source& s = source;
  ops::Backend& b = *backend;
  table = s.Random(DType::kBF16, {kVocab, kDim}, 1.0f);
  norm = s.Random(DType::kBF16, {kDim}, 1.0f);
  q_norm = s.Random(DType::kBF16, {kLora}, 1.0f);
  kv_norm = s.Random(DType::kBF16, {kHeadDim}, 1.0f);
  sink = s.Random(DType::kF32, {kHeads}, 1.0f);
  const TensorView f = s.Zeros(DType::kF32, {kRope / 2});
  for (int64_t i = 0; i < kRope / 2; ++i) {
    f.row<float>(i)[0] =
        std::pow(10000.0f, -2.0f * static_cast<float>(i) / kRope);
  }
  freq = f;
  const auto site = [&](int64_t rows, int64_t n_scale) {
    return ops::HcWeights{s.Random(DType::kF32, {rows, kHc * kDim}, 0.02f),
                          s.Random(DType::kF32, {rows}, 0.3f),
                          s.Random(DType::kF32, {n_scale}, 1.0f)};
  };
  hc = site((2 + kHc) * kHc, 3);
  hc_head = site(kHc, 1);
  wq_a = Bind(b, s.Fp8(kLora, kDim));
  wq_b = Bind(b, s.Fp8(kHeads * kHeadDim, kLora));
  wkv = Bind(b, s.Fp8(kHeadDim, kDim));
  ops::LinearSource wo = s.Fp8(kGroups * kOLora, kHeads * kHeadDim / kGroups);
  wo.quantise_input = false;
  wo_a = Bind(b, wo);
  wo_b = Bind(b, s.Fp8(kDim, kGroups * kOLora));
  index_wq_b = Bind(b, s.Fp8(kIndexHeads * kIndexDim, kLora));
  weights_proj = Bind(b, s.Bf16(kIndexHeads, kDim));
  gate = Bind(b, s.Bf16(kExperts, kDim));
  head = Bind(b, s.Bf16(kVocab, kDim));
  const auto compressor = [&](int64_t width, int64_t dim) {
    compressor_linears.push_back(Bind(b, s.Bf16(width, kDim)));
    compressor_linears.push_back(Bind(b, s.Bf16(width, kDim)));
    const size_t at = compressor_linears.size();
    return ops::CompressorWeights{compressor_linears[at - 2].get(),
                                  compressor_linears[at - 1].get(),
                                  s.Random(DType::kF32, {kRatio, width}, 1.0f),
                                  s.Random(DType::kBF16, {dim}, 1.0f)};
  };
  kv_compressor = compressor(2 * kHeadDim, kHeadDim);
  index_compressor = compressor(2 * kIndexDim, kIndexDim);
  gate_bias = s.Random(DType::kF32, {kExperts}, 0.1f);
  std::vector<ops::ExpertSource> list;
  for (int64_t e = 0; e < kExperts; ++e) {
    list.push_back(
        {s.Fp4(kInter, kDim), s.Fp4(kDim, kInter), s.Fp4(kInter, kDim)});
  }
  experts = *b.BindExperts(list, 0);
  const ops::ExpertSource one = {s.Fp8(kInter, kDim), s.Fp8(kDim, kInter),
                                 s.Fp8(kInter, kDim)};
  shared = *b.BindExperts({&one, 1}, 0);
}

void TestLayer::State::MakeCaches() {
  Source& s = source;
  const bool official = act == DType::kBF16;
  const ops::RowFormat kv = {
      official ? ops::RowKind::kFp8Rope : ops::RowKind::kF32, kHeadDim, kRope,
      64};
  const ops::RowFormat index = {
      official ? ops::RowKind::kFp4 : ops::RowKind::kF32, kIndexDim, 0, 32};
  const auto bytes = [](const ops::RowFormat& f) {
    return static_cast<int64_t>(f.bytes());
  };
  window = {s.Zeros(DType::kU8, {kSlots, kRing, bytes(kv)}), kv};
  const int64_t pages = kSlots * kContext / ops::kPageTokens;
  const int64_t per_page = ops::kPageTokens / kRatio;
  compressed = {s.Zeros(DType::kU8, {pages, per_page, bytes(kv)}), kv, kRatio};
  index_keys = {s.Zeros(DType::kU8, {pages, per_page, bytes(index)}), index,
                kRatio};
  kv_state = {s.Zeros(DType::kF32, {kSlots, 12, 2, 2 * kHeadDim})};
  index_state = {s.Zeros(DType::kF32, {kSlots, 12, 2, 2 * kIndexDim})};
  page_table = s.Zeros(DType::kI32, {kSlots, kContext / ops::kPageTokens});
  for (int64_t i = 0; i < pages; ++i) {
    static_cast<int32_t*>(page_table.data())[i] =
        static_cast<int32_t>(pages - 1 - i);
  }
  const int64_t n = kMaxTokens;
  ids = s.Zeros(DType::kI32, {n});
  positions = s.Zeros(DType::kI32, {n});
  slots = s.Zeros(DType::kI32, {n});
  row_ids = s.Zeros(DType::kI32, {n});
  h = s.Zeros(act, {n, kHc, kDim});
  x = s.Zeros(act, {n, kDim});
  y = s.Zeros(act, {n, kDim});
  last = s.Zeros(act, {n, kDim});
  post = s.Zeros(DType::kF32, {n, kHc});
  comb = s.Zeros(DType::kF32, {n, kHc, kHc});
  qr = s.Zeros(act, {n, kLora});
  q = s.Zeros(act, {n, kHeads, kHeadDim});
  o = s.Zeros(act, {n, kHeads, kHeadDim});
  mid = s.Zeros(act, {n, kGroups * kOLora});
  fresh = s.Zeros(DType::kU8, {n, bytes(kv)});
  raw = s.Zeros(DType::kF32, {n, 2, 2 * kHeadDim});
  index_raw = s.Zeros(DType::kF32, {n, 2, 2 * kIndexDim});
  selection = s.Zeros(DType::kI32, {n, kTopK});
  expert_ids = s.Zeros(DType::kI32, {n, kExpertK});
  expert_weights = s.Zeros(DType::kF32, {n, kExpertK});
  gate_logits = s.Zeros(DType::kF32, {n, kExperts});
  acc = s.Zeros(DType::kF32, {n, kDim});
  logits = s.Zeros(DType::kF32, {n, kVocab});
  sampled = s.Zeros(DType::kI32, {n});
  spans.reserve(kSlots);
  sample_rows.reserve(kMaxTokens);
}

TestLayer::TestLayer(const ops::Numerics& numerics, int n_threads)
    : state_(std::make_unique<State>(numerics, n_threads)) {
  state_->BindWeights();
  state_->MakeCaches();
  const size_t bytes = state_->backend->WorkspaceBytes(Limits());
  const TensorView memory =
      state_->source.Zeros(DType::kU8, {static_cast<int64_t>(bytes)});
  BELAY_CHECK(
      state_->backend
          ->Plan(Limits(), {static_cast<std::byte*>(memory.data()), bytes})
          .ok());
}

TestLayer::~TestLayer() = default;
TestLayer::TestLayer(TestLayer&&) noexcept = default;

void TestLayer::Prepare(const std::vector<Piece>& pieces) {
  State& s = *state_;
  s.spans.clear();
  s.sample_rows.clear();
  int32_t t = 0;
  for (const Piece& piece : pieces) {
    s.spans.push_back({piece.slot, t, piece.n, piece.start, 0});
    for (int32_t i = 0; i < piece.n; ++i, ++t) {
      const int32_t position = piece.start + i;
      s.positions.row<int32_t>(t)[0] = position;
      s.slots.row<int32_t>(t)[0] = piece.slot;
      s.ids.row<int32_t>(t)[0] = (position * 37 + piece.slot * 11) % kVocab;
      s.row_ids.row<int32_t>(t)[0] = t;
      s.sample_rows.push_back({.temperature = position % 2 == 0 ? 0.8f : 0.0f,
                               .top_k = position % 3 == 0 ? 40 : 0,
                               .top_p = 0.95f,
                               .min_p = 0.01f,
                               .seed = 5,
                               .position = position});
    }
  }
  s.n_tokens = t;
}

void TestLayer::State::Attention(const ops::BatchView& batch, int64_t n) {
  ops::Backend& b = *backend;
  const ops::RopeTable rope = {freq};
  b.RmsNorm({.x = Rows(x, n), .weight = norm, .y = Rows(x, n)});
  b.QueryProject({.x = Rows(x, n),
                  .wq_a = wq_a.get(),
                  .q_norm = q_norm,
                  .wq_b = wq_b.get(),
                  .rope = rope,
                  .positions = batch.positions,
                  .qr = Rows(qr, n),
                  .q = Rows(q, n)});
  b.KvProject({.x = Rows(x, n),
               .wkv = wkv.get(),
               .kv_norm = kv_norm,
               .rope = rope,
               .positions = batch.positions,
               .format = window.format,
               .fresh = Rows(fresh, n)});
  b.KvCompress({.batch = batch,
                .x = Rows(x, n),
                .weights = kv_compressor,
                .overlap = true,
                .rope = rope,
                .state = kv_state,
                .cache = compressed,
                .raw = Rows(raw, n)});
  b.KvCompress({.batch = batch,
                .x = Rows(x, n),
                .weights = index_compressor,
                .overlap = true,
                .hadamard = true,
                .rope = rope,
                .state = index_state,
                .cache = index_keys,
                .raw = Rows(index_raw, n)});
  b.IndexerSelect({.batch = batch,
                   .x = Rows(x, n),
                   .qr = Rows(qr, n),
                   .wq_b = index_wq_b.get(),
                   .weights_proj = weights_proj.get(),
                   .n_index_heads = static_cast<int>(kIndexHeads),
                   .index_dim = static_cast<int>(kIndexDim),
                   .rope = rope,
                   .keys = index_keys,
                   .selection = Rows(selection, n),
                   .scores = {}});
  b.SparseAttention({.batch = batch,
                     .q = Rows(q, n),
                     .sink = sink,
                     .fresh = Rows(fresh, n),
                     .window = window,
                     .window_size = static_cast<int>(kWindow),
                     .compressed = compressed,
                     .selection = Rows(selection, n),
                     .o = Rows(o, n)});
  b.KvStore({.batch = batch, .fresh = Rows(fresh, n), .window = window});
  b.RopeTail({.positions = batch.positions,
              .rope = rope,
              .inverse = true,
              .x = Rows(o, n)});
  b.AttentionOut({.o = Rows(o, n).reshaped({n, kHeads * kHeadDim}),
                  .wo_a = wo_a.get(),
                  .n_groups = static_cast<int>(kGroups),
                  .wo_b = wo_b.get(),
                  .mid = Rows(mid, n),
                  .y = Rows(y, n)});
}

void TestLayer::State::Experts(int64_t n) {
  ops::Backend& b = *backend;
  b.Route({.x = Rows(x, n),
           .gate = gate.get(),
           .bias = gate_bias,
           .table = {},
           .token_ids = {},
           .route_scale = 1.5f,
           .experts = Rows(expert_ids, n),
           .weights = Rows(expert_weights, n),
           .logits = Rows(gate_logits, n),
           .scores = {}});
  b.RoutedExperts({.x = Rows(x, n),
                   .experts = experts.get(),
                   .ids = Rows(expert_ids, n),
                   .weights = Rows(expert_weights, n),
                   .acc = Rows(acc, n)});
  b.SharedExpert({.x = Rows(x, n),
                  .expert = shared.get(),
                  .acc = Rows(acc, n),
                  .y = Rows(y, n)});
}

void TestLayer::State::Head(int64_t n) {
  ops::Backend& b = *backend;
  b.HcHead({.h = Rows(h, n), .weights = hc_head, .x = Rows(x, n)});
  b.GatherRows(
      {.src = Rows(x, n), .rows = Rows(row_ids, n), .dst = Rows(last, n)});
  b.Logits(
      {.weight = head.get(), .x = Rows(last, n), .logits = Rows(logits, n)});
  b.Sample({.logits = Rows(logits, n),
            .rows = sample_rows,
            .ids = Rows(sampled, n),
            .logprobs = {},
            .top_ids = {},
            .top_logprobs = {}});
  b.AddBroadcast({.e = Rows(x, n), .hp = Rows(h, n), .h_out = Rows(h, n)});
}

void TestLayer::Step() {
  State& s = *state_;
  const int64_t n = s.n_tokens;
  ops::BatchView batch;
  batch.spans = s.spans;
  batch.n_tokens = n;
  batch.token_ids = s.Rows(s.ids, n);
  batch.positions = s.Rows(s.positions, n);
  batch.slots = s.Rows(s.slots, n);
  batch.page_table = s.page_table;
  ops::Backend& b = *s.backend;
  const auto pre = [&] {
    b.HcPre({.h = s.Rows(s.h, n),
             .weights = s.hc,
             .x = s.Rows(s.x, n),
             .post = s.Rows(s.post, n),
             .comb = s.Rows(s.comb, n)});
  };
  const auto post = [&] {
    b.HcPost({.h = s.Rows(s.h, n),
              .y = s.Rows(s.y, n),
              .post = s.Rows(s.post, n),
              .comb = s.Rows(s.comb, n),
              .h_out = s.Rows(s.h, n)});
  };
  b.Embed(
      {.token_ids = batch.token_ids, .table = s.table, .h = s.Rows(s.h, n)});
  pre();
  s.Attention(batch, n);
  post();
  pre();
  s.Experts(n);
  post();
  s.Head(n);
}

bool TestLayer::OutputsAreSound() const {
  for (int64_t t = 0; t < state_->n_tokens; ++t) {
    const float* row = state_->logits.row<float>(t);
    for (int64_t i = 0; i < kVocab; ++i) {
      if (!std::isfinite(row[i])) return false;
    }
    if (t > 0 && row[0] == state_->logits.row<float>(t - 1)[0]) return false;
  }
  return true;
}

std::vector<std::byte> TestLayer::Run(const std::vector<Piece>& pieces) {
  Prepare(pieces);
  Step();
  std::vector<std::byte> out;
  for (int64_t t = 0; t < state_->n_tokens; ++t) {
    for (const TensorView& view :
         {state_->h, state_->logits, state_->sampled}) {
      const std::byte* row = view.row<std::byte>(t);
      out.insert(out.end(), row, row + view.row_bytes());
    }
  }
  return out;
}

}  // namespace belay::cpu
