// SPDX-License-Identifier: Apache-2.0
// Every back end against ref on random operands of odd sizes, in float32
// outputs, so that the bound is one of float32 sums and not of bf16. Bounds
// come from norms and machine epsilon; each is written where it is used.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "base/float_formats.h"
#include "tests/conformance/attention_layer.h"
#include "tests/conformance/compare.h"
#include "tests/conformance/device.h"
#include "tests/conformance/goldens.h"
#include "tests/conformance/random_data.h"

namespace belay::conformance {
namespace {

class AgainstRefTest : public BackendTest {
 protected:
  // The back end under test and ref, with the same numerics.
  struct Pair {
    std::unique_ptr<Device> tested, ref;
  };
  Pair MakePair(const ops::Numerics& numerics) {
    return {Make(numerics), MakeDevice("ref", numerics)};
  }

  // Runs `fn(device)` on both and holds |a - b| <= bound(i).
  template <typename Fn, typename Bound>
  static void Compare(const Pair& pair, const Fn& fn, const Bound& bound) {
    const std::vector<float> a = fn(*pair.tested);
    const std::vector<float> b = fn(*pair.ref);
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      ASSERT_TRUE(std::abs(static_cast<double>(a[i]) - b[i]) <= bound(i))
          << "value " << i << ": " << a[i] << ", ref " << b[i] << ", bound "
          << bound(i);
    }
  }
};

struct LinearCase {
  WeightForm form;
  int64_t n_tokens, n_out, n_in;
};

std::vector<LinearCase> LinearCases() {
  std::vector<LinearCase> cases;
  for (const WeightForm form : kWeightForms) {
    if (BlockValues(FormatOf(form)) == 256) {
      for (const int64_t n_out : {1, 5, 130}) {
        cases.push_back({form, 1, n_out, 256});
        cases.push_back({form, 17, n_out, 768});
      }
      continue;
    }
    if (FormatOf(form) != BlockFormat::kNone) {
      cases.push_back({form, 3, 7, 32});
      cases.push_back({form, 17, 6, 96});
    }
    for (const int64_t n_out : {1, 5, 33, 130}) {
      cases.push_back({form, 1, n_out, 128});
      cases.push_back({form, 3, n_out, 384});
      cases.push_back({form, 17, n_out, 256});
    }
    if (form > WeightForm::kF16) continue;
    cases.push_back({form, 3, 7, 1});
    cases.push_back({form, 1, 9, 7});
    cases.push_back({form, 17, 6, 100});
  }
  return cases;
}

TEST_P(AgainstRefTest, Linear) {
  Random random(1);
  for (const bool official : {true, false}) {
    const Pair pair = MakePair(official ? Official() : Exact());
    for (const LinearCase& c : LinearCases()) {
      const bool in_blocks = FormatOf(c.form) != BlockFormat::kNone;
      if (in_blocks && !pair.tested->takes_blocks()) continue;
      const Shape shape = {c.n_tokens, c.n_out, c.n_in};
      SCOPED_TRACE(NameOf(c.form) + " " + shape.ToString());
      const RandomWeight weight(random, c.form, c.n_out, c.n_in);
      const std::vector<float> x = random.Values(c.n_tokens * c.n_in);
      const auto run = [&](Device& device) {
        const TensorView y = device.Zeros(DType::kF32, {c.n_tokens, c.n_out});
        const DType dtype = device.ops().numerics().act_dtype();
        device.ops().Linear({.weight = device.Bind(weight.source()),
                             .x = device.Put(dtype, {c.n_tokens, c.n_in}, x),
                             .y = y});
        return device.Get(y);
      };
      // Quantised inputs are the same numbers on both sides, and their norm is
      // at most 1/16 larger.
      Compare(pair, run, [&](size_t i) {
        const auto t = static_cast<int64_t>(i) / c.n_out;
        return DotBound(
            c.n_in, 1.0625 * Norm(&x[static_cast<size_t>(t * c.n_in)], c.n_in),
            weight.row_norm(static_cast<int64_t>(i) % c.n_out));
      });
    }
  }
}

TEST_P(AgainstRefTest, RmsNorm) {
  Random random(2);
  const Pair pair = MakePair(Exact());
  for (const int64_t n : {1, 3, 7, 64, 100, 257}) {
    SCOPED_TRACE(n);
    const std::vector<float> x = random.Values(5 * n, 3.0f);
    const std::vector<float> w = random.Values(n);
    const auto run = [&](Device& device) {
      const TensorView y = device.Zeros(DType::kF32, {5, n});
      device.ops().RmsNorm({.x = device.Put(DType::kF32, {5, n}, x),
                            .weight = device.Put(DType::kBF16, {n}, w),
                            .y = y});
      return device.Get(y);
    };
    // The mean of squares has no cancellation: relative sqrt(n) eps, halved by
    // the root; then five roundings. |y| <= |w| sqrt(n).
    const double rel = (std::sqrt(static_cast<double>(n)) + 16) * kEps;
    Compare(pair, run, [&](size_t i) {
      const size_t c = i % static_cast<size_t>(n);
      return rel * std::abs(w[c]) * std::sqrt(static_cast<double>(n));
    });
  }
}

struct HcCase {
  std::vector<float> h, fn, base, scale, y;
  int64_t dim = 0;
  static constexpr int64_t kTokens = 3;

  HcCase(Random& random, int64_t n) : dim(n) {
    h = random.Values(kTokens * 4 * dim);
    fn = random.Values(24 * 4 * dim, 0.1f);
    base = random.Values(24);
    scale = {0.7f, 1.3f, 2.0f};
    y = random.Values(kTokens * dim);
  }
};

// [x, post, comb, h_out], joined.
std::vector<float> RunHc(Device& device, const HcCase& c) {
  const int64_t n = HcCase::kTokens;
  const TensorView h = device.Put(DType::kF32, {n, 4, c.dim}, c.h);
  const TensorView x = device.Zeros(DType::kF32, {n, c.dim});
  const TensorView post = device.Zeros(DType::kF32, {n, 4});
  const TensorView comb = device.Zeros(DType::kF32, {n, 4, 4});
  device.ops().HcPre(
      {.h = h,
       .weights = {.fn = device.Put(DType::kF32, {24, 4 * c.dim}, c.fn),
                   .base = device.Put(DType::kF32, {24}, c.base),
                   .scale = device.Put(DType::kF32, {3}, c.scale)},
       .x = x,
       .post = post,
       .comb = comb});
  const TensorView out = device.Zeros(DType::kF32, {n, 4, c.dim});
  device.ops().HcPost({.h = h,
                       .y = device.Put(DType::kF32, {n, c.dim}, c.y),
                       .post = post,
                       .comb = comb,
                       .h_out = out});
  const TensorView head = device.Zeros(DType::kF32, {n, c.dim});
  const std::vector<float> head_fn(c.fn.begin(), c.fn.begin() + 16 * c.dim);
  device.ops().HcHead(
      {.h = h,
       .weights = {.fn = device.Put(DType::kF32, {4, 4 * c.dim}, head_fn),
                   .base = device.Put(DType::kF32, {4}, {0, 1, -1, 0.5f}),
                   .scale = device.Put(DType::kF32, {1}, {0.9f})},
       .x = head});
  std::vector<float> all;
  for (const TensorView& view : {x, post, comb, out, head}) {
    const std::vector<float> values = device.Get(view);
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

TEST_P(AgainstRefTest, HyperConnections) {
  Random random(3);
  const Pair pair = MakePair(Exact());
  for (const int64_t dim : {1, 3, 7, 64, 130, 250}) {
    SCOPED_TRACE(dim);
    const HcCase c(random, dim);
    // The mixes carry the error of a sum of 4 dim terms, their rows of norm
    // 0.1 sqrt(4 dim) against unit rms; the sinkhorn iterations do not enlarge
    // it by more than their number; the values summed stay below about 5.
    const double sums =
        DotBound(4 * dim, std::sqrt(4.0 * static_cast<double>(dim)), 0.1);
    const double bound = 20 * (sums + 20 * kEps);
    Compare(
        pair, [&](Device& device) { return RunHc(device, c); },
        [&](size_t) { return bound; });
  }
}

TEST_P(AgainstRefTest, RopeTail) {
  Random random(4);
  const Pair pair = MakePair(Exact());
  for (const int64_t rope : {2, 6, 64}) {
    for (const bool inverse : {false, true}) {
      SCOPED_TRACE(rope);
      const int64_t dim = rope + 5;
      const std::vector<float> x = random.Values(3 * 7 * dim);
      std::vector<float> freq;
      for (int64_t i = 0; i < rope / 2; ++i) freq.push_back(random.Uniform());
      const auto run = [&](Device& device) {
        const TensorView y = device.Put(DType::kF32, {3, 7, dim}, x);
        device.ops().RopeTail(
            {.positions = device.PutInts({3}, {0, 1000, 1048575}),
             .rope = {.freq = device.Put(DType::kF32, {rope / 2}, freq)},
             .inverse = inverse,
             .x = y});
        return device.Get(y);
      };
      // The angle is the same float32 number; cos, sin, two products, one sum.
      Compare(pair, run, [&](size_t) { return 8 * kEps * 5.0; });
    }
  }
}

// Whole attention sublayers without rounding: each operator's error stays at
// float32's, so that 20 sums in a row of at most 1024 terms stay below 1e-5.
TEST_P(AgainstRefTest, AttentionModules) {
  for (const int layer : {0, 1, 5}) {
    SCOPED_TRACE(layer);
    const Pair pair = MakePair(Exact());
    const auto run = [&](Device& device) {
      AttentionLayer attention(&device, layer,
                               AttentionLayer::DefaultFormats(device.ops()));
      return attention.Run({{1, 0, 141, false}});
    };
    const std::vector<float> a = run(*pair.tested);
    const std::vector<float> b = run(*pair.ref);
    double rms = 0.0;
    for (const float v : b) rms += static_cast<double>(v) * v;
    rms = std::sqrt(rms / static_cast<double>(b.size()));
    EXPECT_TRUE(NearF32(a, b, 1e-5, 1e-5 * rms));
  }
}

struct AttentionCase {
  int64_t n_heads, head_dim;
  int window_size, ratio;
  int64_t topk;  // 0: no selection
};

// Two spans: 3 tokens at position 150 of slot 1, 5 at 0 of slot 0; caches full
// of random rows.
std::vector<float> RunAttention(Device& device, const AttentionCase& c) {
  Random random(static_cast<uint64_t>(c.head_dim + c.window_size + c.topk));
  const std::vector<ops::Span> spans = {{1, 0, 3, 150, 0}, {0, 3, 5, 0, 0}};
  const int64_t n = 8;
  const ops::RowFormat format = {ops::RowKind::kF32,
                                 static_cast<int>(c.head_dim), 0, 0};
  const auto n_bytes = static_cast<int64_t>(format.bytes());
  const auto rows = [&](const Shape& shape) {
    const TensorView values =
        device.Put(DType::kF32, {shape.n_elements(), c.head_dim},
                   random.Values(shape.n_elements() * c.head_dim));
    Shape bytes = shape;
    bytes.push_back(n_bytes);
    return TensorView(values.data(), DType::kU8, bytes);
  };
  ops::SparseAttentionParams p;
  p.batch.spans = spans;
  p.batch.n_tokens = n;
  p.batch.positions = device.PutInts({n}, {150, 151, 152, 0, 1, 2, 3, 4});
  p.batch.slots = device.PutInts({n}, {1, 1, 1, 0, 0, 0, 0, 0});
  p.batch.page_table = device.PutInts({2, 2}, {3, 0, 2, 1});
  p.q = device.Put(DType::kF32, {n, c.n_heads, c.head_dim},
                   random.Values(n * c.n_heads * c.head_dim));
  p.sink = device.Put(DType::kF32, {c.n_heads}, random.Values(c.n_heads));
  const TensorView fresh = rows({n});
  p.fresh = fresh;
  p.window = {.rows = rows({2, c.window_size + 3}), .format = format};
  p.window_size = c.window_size;
  if (c.ratio > 0) {
    p.compressed = {.rows = rows({4, ops::kPageTokens / c.ratio}),
                    .format = format,
                    .ratio = c.ratio};
  }
  std::vector<int32_t> selection;
  for (int64_t i = 0; i < n * c.topk; ++i) {
    const int32_t last = i / c.topk < 3 ? 38 : 1;
    selection.push_back(random.Below(last + 1) - 1);
  }
  if (c.topk > 0) p.selection = device.PutInts({n, c.topk}, selection);
  p.o = device.Zeros(DType::kF32, p.q.shape());
  device.ops().SparseAttention(p);
  return device.Get(p.o);
}

TEST_P(AgainstRefTest, SparseAttention) {
  const Pair pair = MakePair(Exact());
  const AttentionCase cases[] = {{1, 64, 5, 0, 0},      {3, 40, 128, 0, 0},
                                 {8, 128, 1, 4, 7},     {5, 96, 16, 4, 130},
                                 {4, 512, 128, 128, 0}, {16, 64, 64, 4, 0},
                                 {2, 128, 0, 4, 9}};
  for (const AttentionCase& c : cases) {
    SCOPED_TRACE(c.head_dim);
    // s has the error of a dot product of norms ~ sqrt(d), times d^-0.5; it
    // enters exp as a relative error of each weight; values stay below 5.
    const auto d = static_cast<double>(c.head_dim);
    const double s_error =
        DotBound(c.head_dim, 1.5 * std::sqrt(d), 1.5 * std::sqrt(d)) /
        std::sqrt(d);
    const double bound = 5.0 * (2 * s_error + 32 * kEps);
    Compare(
        pair, [&](Device& device) { return RunAttention(device, c); },
        [&](size_t) { return bound; });
  }
}

struct ExpertCase {
  WeightForm form;
  int64_t n_tokens, dim, inter;
};

TEST_P(AgainstRefTest, Experts) {
  const Pair pair = MakePair(Exact());
  const ExpertCase cases[] = {{WeightForm::kFp4, 3, 128, 64},
                              {WeightForm::kFp4, 17, 256, 160},
                              {WeightForm::kFp8, 1, 384, 128},
                              {WeightForm::kBf16, 5, 100, 33}};
  for (const ExpertCase& c : cases) {
    SCOPED_TRACE(NameOf(c.form));
    Random random(5);
    std::vector<std::unique_ptr<RandomWeight>> weights;
    std::vector<ops::ExpertSource> experts;
    for (int e = 0; e < 5; ++e) {
      const auto add = [&](int64_t n_out, int64_t n_in) {
        weights.push_back(
            std::make_unique<RandomWeight>(random, c.form, n_out, n_in));
        return weights.back()->source();
      };
      experts.push_back({.w1 = add(c.inter, c.dim),
                         .w2 = add(c.dim, c.inter),
                         .w3 = add(c.inter, c.dim)});
    }
    const std::vector<float> x = random.Values(c.n_tokens * c.dim, 0.3f);
    std::vector<int32_t> ids;
    for (int64_t t = 0; t < c.n_tokens; ++t) {
      const int32_t first = random.Below(4);
      ids.insert(ids.end(), {4, first, (first + 2) % 4});
    }
    const auto run = [&](Device& device) {
      const Shape shape = {c.n_tokens, c.dim};
      const TensorView dx = device.Put(DType::kF32, shape, x);
      const TensorView acc = device.Zeros(DType::kF32, shape);
      const std::vector<float> weight(ids.size(), 0.4f);
      device.ops().RoutedExperts(
          {.x = dx,
           .experts = device.Bind(experts),
           .ids = device.PutInts({c.n_tokens, 3}, ids),
           .weights = device.Put(DType::kF32, {c.n_tokens, 3}, weight),
           .acc = acc});
      const TensorView y = device.Zeros(DType::kF32, shape);
      device.ops().SharedExpert(
          {.x = dx, .expert = device.Bind({experts[1]}), .acc = acc, .y = y});
      return device.Get(y);
    };
    // The inner values are at most 10 * 10 (the clamps); g and u carry the
    // error of a dot product, of at most `inner`; then a product of K = inter
    // terms that carry it on, and four of these are added.
    double row = 0.0;
    for (const auto& w : weights) {
      for (int64_t r = 0; r < w->source().weight.n_rows(); ++r) {
        row = std::max(row, w->row_norm(r));
      }
    }
    double x_norm = 0.0;
    for (int64_t t = 0; t < c.n_tokens; ++t) {
      x_norm =
          std::max(x_norm, Norm(&x[static_cast<size_t>(t * c.dim)], c.dim));
    }
    const double inner = DotBound(c.dim, x_norm, row);
    const double root = std::sqrt(static_cast<double>(c.inter));
    const double bound = 4 * (20 * inner * root * row / root * 4 +
                              DotBound(c.inter, 100 * root, row));
    Compare(pair, run, [&](size_t) { return bound; });
  }
}

TEST_P(AgainstRefTest, Route) {
  Random random(6);
  const Pair pair = MakePair(Official());
  for (const int64_t n_experts : {3, 16, 13}) {
    const RandomWeight gate(random, WeightForm::kBf16, n_experts, 130);
    const std::vector<float> x = random.Values(17 * 130, 0.2f);
    const std::vector<float> bias = random.Values(n_experts, 0.1f);
    const auto run = [&](Device& device) {
      ops::RouteParams p;
      p.x = device.Put(DType::kBF16, {17, 130}, x);
      p.gate = device.Bind(gate.source());
      p.bias = device.Put(DType::kF32, {n_experts}, bias);
      p.experts = device.Zeros(DType::kI32, {17, 3});
      p.weights = device.Zeros(DType::kF32, {17, 3});
      p.logits = device.Zeros(DType::kF32, {17, n_experts});
      p.scores = device.Zeros(DType::kF32, {17, n_experts});
      device.ops().Route(p);
      std::vector<float> all = device.Get(p.weights);
      for (const int32_t e : device.GetInts(p.experts)) {
        all.push_back(static_cast<float>(e));
      }
      const std::vector<float> scores = device.Get(p.scores);
      all.insert(all.end(), scores.begin(), scores.end());
      return all;
    };
    // Random scores do not tie; experts must be equal (bound < 1).
    Compare(pair, run, [&](size_t) { return 1e-5; });
  }
}

// No arithmetic, or the same arithmetic: equal bits.
TEST_P(AgainstRefTest, CopiesAndSamplesAreEqual) {
  Random random(7);
  const Pair pair = MakePair(Official());
  for (const int64_t n : {1, 3, 31, 33, 1000}) {
    SCOPED_TRACE(n);
    const std::vector<float> h = random.Values(3 * 4 * n);
    const std::vector<float> e = random.Values(3 * n);
    const std::vector<float> logits = random.Values(3 * n, 4.0f);
    std::vector<ops::SeenToken> seen = {{0, 3}};
    if (n > 1) seen.push_back({static_cast<int32_t>(n) / 2, 1});
    const std::vector<ops::SampleRow> rows = {{.temperature = 0.8f,
                                               .top_p = 0.95f,
                                               .seed = 3,
                                               .position = 5,
                                               .repetition_penalty = 1.3f,
                                               .seen = seen,
                                               .n_top = 7},
                                              {.temperature = 1.5f,
                                               .top_k = 20,
                                               .min_p = 0.01f,
                                               .seed = 4,
                                               .presence_penalty = 0.3f,
                                               .frequency_penalty = 0.7f,
                                               .seen = seen},
                                              {.n_top = 7}};
    const auto run = [&](Device& device) {
      const TensorView hp = device.Put(DType::kBF16, {3, 4, n}, h);
      const TensorView out = device.Zeros(DType::kBF16, {3, 4, n});
      device.ops().AddBroadcast(
          {.e = device.Put(DType::kBF16, {3, n}, e), .hp = hp, .h_out = out});
      const TensorView picked = device.Zeros(DType::kBF16, {2, 4, n});
      device.ops().GatherRows(
          {.src = out, .rows = device.PutInts({2}, {2, 0}), .dst = picked});
      const TensorView embedded = device.Zeros(DType::kBF16, {2, 4, n});
      device.ops().Embed({.token_ids = device.PutInts({2}, {1, 9}),
                          .table = device.Put(DType::kBF16, {3, n}, e),
                          .h = embedded});
      const TensorView ids = device.Zeros(DType::kI32, {3});
      const TensorView logprobs = device.Zeros(DType::kF32, {3});
      const TensorView top_ids = device.Zeros(DType::kI32, {3, 7});
      const TensorView top_logprobs = device.Zeros(DType::kF32, {3, 7});
      device.ops().Sample({.logits = device.Put(DType::kF32, {3, n}, logits),
                           .rows = rows,
                           .ids = ids,
                           .logprobs = logprobs,
                           .top_ids = top_ids,
                           .top_logprobs = top_logprobs});
      std::vector<float> all = device.Get(picked);
      for (const float v : device.Get(logprobs)) all.push_back(v);
      for (const float v : device.Get(top_logprobs)) all.push_back(v);
      for (const int32_t id : device.GetInts(top_ids)) {
        all.push_back(static_cast<float>(id));
      }
      for (const float v : device.Get(embedded)) all.push_back(v);
      for (const int32_t id : device.GetInts(ids)) {
        all.push_back(static_cast<float>(id));
      }
      return all;
    };
    EXPECT_TRUE(SameBits(run(*pair.tested), run(*pair.ref)));
  }
}

// ref against itself would prove nothing.
std::vector<std::string> AllButRef() {
  std::vector<std::string> names = BackendNames();
  std::erase(names, "ref");
  return names;
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(AgainstRefTest);
INSTANTIATE_TEST_SUITE_P(Backends, AgainstRefTest,
                         ::testing::ValuesIn(AllButRef()), NameOfBackend);

}  // namespace
}  // namespace belay::conformance
