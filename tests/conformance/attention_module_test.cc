// SPDX-License-Identifier: Apache-2.0
// Whole attention sublayers of the tiny checkpoint, their compressed rows and
// selections; and that chunks, batches and earlier users of a slot change
// nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/float_formats.h"
#include "tests/conformance/attention_layer.h"
#include "tests/conformance/compare.h"
#include "tests/conformance/device.h"
#include "tests/conformance/goldens.h"

namespace belay::conformance {
namespace {

constexpr int32_t kTokens = 141;
const Piece kWhole = {.slot = 1, .start_pos = 0, .n_tokens = kTokens};

class AttentionModuleTest : public BackendTest {
 protected:
  static AttentionLayer Layer(Device& device, int layer) {
    return AttentionLayer(&device, layer,
                          AttentionLayer::DefaultFormats(device.ops()));
  }

  // Runs one step a piece and joins the results.
  static std::vector<float> RunSteps(AttentionLayer& layer,
                                     const std::vector<Piece>& pieces) {
    std::vector<float> all;
    for (const Piece& piece : pieces) {
      const std::vector<float> y = layer.Run({piece});
      all.insert(all.end(), y.begin(), y.end());
    }
    return all;
  }
};

TEST_P(AttentionModuleTest, Golden) {
  for (const int layer : {0, 1, 5}) {
    SCOPED_TRACE(layer);
    const auto device = Make(Official());
    AttentionLayer attention = Layer(*device, layer);
    const std::vector<float> golden =
        GoldenFloats("attn_module." + std::to_string(layer) + ".y");
    const std::vector<float> y = attention.Run({kWhole});
    EXPECT_TRUE(NearModule(y, golden, AttentionLayer::kDim));
    EXPECT_GE(EqualShare(y, golden), 0.9);
  }
}

TEST_P(AttentionModuleTest, CompressedRows) {
  const auto device = Make(Official());
  AttentionLayer hca = Layer(*device, 0);
  hca.Run({kWhole});
  EXPECT_TRUE(NearQuantised(hca.CompressedRows(1, 1),
                            GoldenFloats("compressor128.rows"), 0.125));
  AttentionLayer csa = Layer(*device, 1);
  csa.Run({kWhole});
  EXPECT_TRUE(NearQuantised(csa.CompressedRows(1, 35),
                            GoldenFloats("compressor4.rows"), 0.125));
  EXPECT_TRUE(NearQuantised(csa.IndexRows(1, 35),
                            GoldenFloats("indexer_compressor4.rows"), 1.0));
}

// score(j) = bf(sum_h bf(relu(bf(q_h . k_j)) w_h)) from the golden q, k and w.
std::vector<float> ScoresOfGoldens() {
  const std::vector<float> q = GoldenFloats("indexer.q_fp4");
  const std::vector<float> w = GoldenFloats("indexer.weights");
  const std::vector<float> k = GoldenFloats("indexer_compressor4.rows");
  std::vector<float> scores;
  for (size_t t = 0; t < kTokens; ++t) {
    for (size_t j = 0; j < 35; ++j) {
      double sum = 0.0;
      for (size_t h = 0; h < 4; ++h) {
        double dot = 0.0;
        for (size_t d = 0; d < 128; ++d) {
          dot += static_cast<double>(q[(t * 4 + h) * 128 + d]) * k[j * 128 + d];
        }
        const float relu = std::max(RoundF64ToBf16(dot), 0.0f);
        sum += RoundToBf16(relu * w[t * 4 + h]);
      }
      scores.push_back(j < (t + 1) / 4
                           ? RoundF64ToBf16(sum)
                           : -std::numeric_limits<float>::infinity());
    }
  }
  return scores;
}

TEST_P(AttentionModuleTest, Indexer) {
  const std::vector<float> golden = GoldenFloats("indexer.scores_bf16");
  EXPECT_TRUE(SameValues(ScoresOfGoldens(), golden));

  const auto device = Make(Official());
  AttentionLayer layer = Layer(*device, 1);
  layer.Run({kWhole});
  EXPECT_TRUE(NearBf16(layer.qr(), GoldenFloats("indexer.qr")));
  const std::vector<float> scores = layer.scores();
  ASSERT_EQ(scores.size(), golden.size());
  EXPECT_GE(EqualShare(scores, golden), 0.98);
  const std::vector<int32_t> selection = layer.selection();
  const auto topk = Golden("indexer.topk").as<int32_t>();
  int n_same = 0;
  for (size_t t = 0; t < kTokens; ++t) {
    // The same scores select the same rows in the same order.
    const bool same =
        std::equal(&scores[t * 35], &scores[t * 35 + 35], &golden[t * 35]);
    n_same += same;
    for (size_t i = 0; same && i < 8; ++i) {
      ASSERT_EQ(selection[t * 8 + i], topk[t * 8 + i]) << t << " " << i;
    }
  }
  EXPECT_GE(n_same, kTokens * 8 / 10);
}

TEST_P(AttentionModuleTest, ChunksChangeNothing) {
  for (const ops::Numerics& numerics : {Official(), Exact()}) {
    for (const int layer : {0, 1, 5}) {
      SCOPED_TRACE(layer);
      const auto device = Make(numerics);
      AttentionLayer attention = Layer(*device, layer);
      const std::vector<float> whole = attention.Run({kWhole});
      for (const int32_t n : {1, 3, 17, 64}) {
        SCOPED_TRACE(n);
        Piece other_slot = kWhole;
        other_slot.slot = 2;
        EXPECT_TRUE(SameBits(RunSteps(attention, CutUp(other_slot, n)), whole));
      }
    }
  }
}

// Another sequence in the same step, before or after, changes nothing.
TEST_P(AttentionModuleTest, BatchesChangeNothing) {
  for (const int layer : {0, 1, 5}) {
    SCOPED_TRACE(layer);
    const auto device = Make(Official());
    AttentionLayer alone = Layer(*device, layer);
    const std::vector<float> whole = alone.Run({kWhole});
    AttentionLayer mixed = Layer(*device, layer);
    std::vector<float> y;
    for (const Piece& piece : CutUp(kWhole, 47)) {
      // Slot 0 brings 9 other tokens a step, slot 2 one.
      const int32_t step = piece.start_pos / 47;
      const Piece nine = {0, step * 9, 9, true};
      const Piece one = {2, step, 1, true};
      const bool last = step % 2 == 1;
      const std::vector<float> all =
          last ? mixed.Run({one, nine, piece}) : mixed.Run({piece, nine, one});
      const auto first = all.begin() + (last ? 10 * AttentionLayer::kDim : 0);
      y.insert(y.end(), first, first + piece.n_tokens * AttentionLayer::kDim);
    }
    EXPECT_TRUE(SameBits(y, whole));
  }
}

// A slot that another sequence has used needs no clearing, even for a prompt
// shorter than a block.
TEST_P(AttentionModuleTest, SlotsAreReused) {
  for (const int layer : {0, 1, 5}) {
    for (const int32_t n : {2, 6, kTokens}) {
      SCOPED_TRACE(layer);
      const auto device = Make(Official());
      AttentionLayer layer_new = Layer(*device, layer);
      const std::vector<Piece> steps = CutUp({1, 0, n, false}, 4);
      const std::vector<float> fresh = RunSteps(layer_new, steps);
      AttentionLayer used = Layer(*device, layer);
      used.Run({{1, 0, 139, true}});
      EXPECT_TRUE(SameBits(RunSteps(used, steps), fresh)) << n;
    }
  }
}

// Tokens that were only drafted leave no trace.
TEST_P(AttentionModuleTest, DraftsAreTakenBack) {
  for (const int layer : {0, 1, 5}) {
    SCOPED_TRACE(layer);
    const auto device = Make(Official());
    AttentionLayer attention = Layer(*device, layer);
    std::vector<float> whole = attention.Run({kWhole});
    Piece head = {2, 0, 126, false};
    Piece draft = {2, 126, AttentionLayer::kDraft, true};
    Piece tail = {2, 126, kTokens - 126, false};
    attention.Run({head});
    attention.Run({draft});
    whole.erase(whole.begin(), whole.begin() + 126 * AttentionLayer::kDim);
    EXPECT_TRUE(SameBits(attention.Run({tail}), whole));
  }
}

// bf16 rows hold the quantised values: the FP8 and FP4 rows lose nothing.
TEST_P(AttentionModuleTest, RowFormatsAreLossless) {
  for (const int layer : {0, 1, 5}) {
    SCOPED_TRACE(layer);
    const auto device = Make(Official());
    AttentionLayer packed = Layer(*device, layer);
    AttentionLayer plain(device.get(), layer,
                         {ops::RowKind::kBf16, ops::RowKind::kBf16});
    EXPECT_TRUE(SameBits(plain.Run({kWhole}), packed.Run({kWhole})));
    AttentionLayer f32(device.get(), layer,
                       {ops::RowKind::kF32, ops::RowKind::kF32});
    EXPECT_TRUE(SameBits(f32.Run({kWhole}), packed.Run({kWhole})));
  }
}

BELAY_CONFORMANCE_SUITE(AttentionModuleTest);

}  // namespace
}  // namespace belay::conformance
