// SPDX-License-Identifier: Apache-2.0
// What the conformance suite does not see: refusals, copies, memory, executors,
// sampling on the host.
#include "backends/cann/cann.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "backends/cann/backend.h"
#include "backends/cann/host_sample.h"
#include "base/error_ids.h"
#include "base/error_ids_cann.h"

namespace belay::cann {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

Options OnCannsim() {
  Options options;
  options.variable = [](const char* name) {
    return std::string(name) == "ASCEND_HOME_PATH" ? BELAY_CANNSIM : "";
  };
  return options;
}

std::unique_ptr<ops::Backend> Make() {
  auto backend = Create(ops::Numerics{}, OnCannsim());
  EXPECT_TRUE(backend.ok()) << backend.status();
  return std::move(backend).value();
}

ops::OpLimits SmallLimits() {
  ops::OpLimits limits;
  limits.n_tokens = 8;
  limits.n_context = 256;
  limits.dim = 64;
  limits.n_heads = 2;
  limits.head_dim = 64;
  limits.n_experts = 4;
  limits.n_experts_per_token = 2;
  limits.vocab = 100;
  return limits;
}

// A planned back end.
struct Planned {
  std::unique_ptr<ops::Backend> backend = Make();
  std::unique_ptr<ops::DeviceBuffer> workspace;
  std::vector<std::unique_ptr<ops::DeviceBuffer>> buffers;

  Planned() {
    workspace =
        backend->Allocate(backend->WorkspaceBytes(SmallLimits())).value();
    const Status planned = backend->Plan(
        SmallLimits(),
        {static_cast<std::byte*>(workspace->data()), workspace->bytes()});
    EXPECT_TRUE(planned.ok()) << planned;
  }
  TensorView Put(DType dtype, const Shape& shape, const void* host) {
    TensorView view(nullptr, dtype, shape);
    buffers.push_back(backend->Allocate(view.bytes()).value());
    view = TensorView(buffers.back()->data(), dtype, shape);
    backend->CopyIn(view, host);
    return view;
  }
};

TEST(CannTest, RefusesWhatItCannotTake) {
  ops::Numerics int8;
  int8.int8_activations = true;
  EXPECT_EQ(ErrorIdOf(Create(int8, OnCannsim()).status()), kBackUnsupported.id);
  ops::Numerics odd;
  odd.act_block = 0;
  EXPECT_EQ(ErrorIdOf(Create(odd, OnCannsim()).status()), kBackUnsupported.id);

  const auto backend = Make();
  std::vector<std::byte> bytes(34 * 4);
  ops::LinearSource source;
  source.weight = ConstTensorView(bytes.data(), DType::kU8, {4, 34});
  source.format = BlockFormat::kQ8_0;
  const Status blocks = backend->BindLinear(source).status();
  EXPECT_EQ(ErrorIdOf(blocks), kBackUnsupported.id);
  EXPECT_THAT(std::string(blocks.message()), HasSubstr("GGUF"));
  source.packed = bytes;
  EXPECT_EQ(ErrorIdOf(backend->BindLinear(source).status()), kPackNeedsCpu.id);
  EXPECT_EQ(
      ErrorIdOf(
          backend->BindTensor(ConstTensorView(bytes.data(), DType::kU8, {8}))
              .status()),
      kBackUnsupported.id);
}

TEST(CannTest, RefusesAPlanThatDoesNotHold) {
  const auto backend = Make();
  ops::OpLimits limits = SmallLimits();
  const size_t bytes = backend->WorkspaceBytes(limits);
  const auto memory = backend->Allocate(bytes).value();
  auto* start = static_cast<std::byte*>(memory->data());
  EXPECT_EQ(ErrorIdOf(backend->Plan(limits, {start, bytes / 2})),
            kBackUnsupported.id);
  limits.index_dim = 96;
  EXPECT_EQ(ErrorIdOf(backend->Plan(limits, {start, bytes})),
            kBackUnsupported.id);
}

TEST(CannTest, TooMuchMemorySaysWhatIsFree) {
  const Status status = Make()->Allocate(size_t{1} << 50).status();
  EXPECT_EQ(ErrorIdOf(status), kCannOutOfMemory.id);
  EXPECT_THAT(ErrorFactsOf(status).where, HasSubstr("are free"));
}

TEST(CannTest, WhatIsCopiedOutIsThereAfterTheWait) {
  Planned p;
  const std::vector<int32_t> in = {1, 2, 3, 4};
  const TensorView view = p.Put(DType::kI32, {4}, in.data());
  std::vector<int32_t> out(4, -7);
  p.backend->CopyOut(out.data(), view);
  EXPECT_EQ(out, std::vector<int32_t>(4, -7));
  ASSERT_TRUE(p.backend->Finish().ok());
  EXPECT_EQ(out, in);
}

// More than the pinned rings hold goes through in pieces.
TEST(CannTest, LargeCopiesArriveWhole) {
  Planned p;
  std::vector<int32_t> in(5 << 20);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<int32_t>(i * 7);
  const TensorView view =
      p.Put(DType::kI32, {static_cast<int64_t>(in.size())}, in.data());
  std::vector<int32_t> out(in.size());
  p.backend->CopyOut(out.data(), view);
  ASSERT_TRUE(p.backend->Finish().ok());
  EXPECT_TRUE(out == in);
}

TEST(CannTest, TheSameCallMakesNoNewExecutor) {
  Planned p;
  const std::vector<float> values(8 * 64, 0.5f);
  const TensorView x = p.Put(DType::kF32, {8, 64}, values.data());
  const TensorView w = p.Put(DType::kF32, {64}, values.data());
  const TensorView y = p.Put(DType::kF32, {8, 64}, values.data());
  const auto& cann = static_cast<const CannBackend&>(*p.backend);
  p.backend->RmsNorm({x, w, y});
  const size_t n = cann.n_executors();
  EXPECT_GE(n, 1u);
  for (int i = 0; i < 3; ++i) {
    p.backend->RmsNorm({x, w, y});
    ASSERT_TRUE(p.backend->Finish().ok());
  }
  EXPECT_EQ(cann.n_executors(), n);
  p.backend->RmsNorm({x.rows(0, 4), w, y.rows(0, 4)});
  EXPECT_GT(cann.n_executors(), n);
}

// An operator that is refused loses the step, with the operator's name; the
// next step is a new one.
TEST(CannTest, ARefusedOperatorEndsTheStepOnly) {
  Planned p;
  const std::vector<float> values(64, 1.0f);
  const TensorView x = p.Put(DType::kF32, {1, 64}, values.data());
  const TensorView wrong = p.Put(DType::kF32, {32}, values.data());
  const TensorView right = p.Put(DType::kF32, {64}, values.data());
  p.backend->RmsNorm({x, wrong, x});
  const Status status = p.backend->Finish();
  EXPECT_EQ(ErrorIdOf(status), kCannRefused.id);
  EXPECT_THAT(ErrorFactsOf(status).where, HasSubstr("RmsNorm"));
  p.backend->RmsNorm({x, right, x});
  EXPECT_TRUE(p.backend->Finish().ok());
}

TEST(CannTest, BuffersMayOutliveTheBackEnd) {
  auto backend = Make();
  auto buffer = backend->Allocate(1000).value();
  backend.reset();
  EXPECT_NE(buffer->data(), nullptr);
  buffer.reset();
  EXPECT_TRUE(Make()->Allocate(1000).ok());
}

TEST(CannTest, ExplainsEveryOperator) {
  std::set<std::string> chosen;
  for (const ops::Implementation& one : Make()->Explain()) {
    if (one.applies.ok()) {
      EXPECT_THAT(one.name, StartsWith("composed"));
      EXPECT_TRUE(chosen.insert(one.op).second) << one.op;
    } else {
      EXPECT_EQ(ErrorIdOf(one.applies), kBackUnsupported.id);
    }
  }
  EXPECT_EQ(chosen.size(), 21u);
}

// The largest logit on the device and on the host, with what is not finite.
TEST(CannTest, GreedyPassesOverWhatIsNotFinite) {
  Planned p;
  const float nan = std::nanf("");
  const float inf = HUGE_VALF;
  const std::vector<std::vector<float>> rows = {
      {1, 3, 3, 2},          {nan, -5, -4, inf}, {-inf, nan, inf, -inf},
      {-inf, -1, -inf, nan}, {0, -0.0f, 0, 0},
  };
  std::vector<float> flat;
  std::vector<int32_t> expected;
  for (const std::vector<float>& row : rows) {
    flat.insert(flat.end(), row.begin(), row.end());
    expected.push_back(SampleOnHost({}, row).id);
  }
  EXPECT_EQ(expected, (std::vector<int32_t>{1, 2, -1, 1, 0}));
  const TensorView logits = p.Put(DType::kF32, {5, 4}, flat.data());
  const std::vector<int32_t> none(5, -7);
  const TensorView ids = p.Put(DType::kI32, {5}, none.data());
  const std::vector<ops::SampleRow> greedy(5);
  ops::SampleParams params;
  params.logits = logits;
  params.rows = greedy;
  params.ids = ids;
  p.backend->Sample(params);
  std::vector<int32_t> got(5);
  p.backend->CopyOut(got.data(), ids);
  ASSERT_TRUE(p.backend->Finish().ok());
  EXPECT_EQ(got, expected);
}

}  // namespace
}  // namespace belay::cann
