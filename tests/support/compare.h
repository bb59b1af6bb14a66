// SPDX-License-Identifier: Apache-2.0
// How far two results are apart, in the measures that the limits use.
#ifndef BELAY_TESTS_SUPPORT_COMPARE_H_
#define BELAY_TESTS_SUPPORT_COMPARE_H_

#include <cstdint>

#include "tensor/view.h"

namespace belay::test {

// Rows of logits against golden ones. A value that is not finite makes
// max_abs infinite.
struct LogitDiff {
  int64_t n_rows = 0;
  double max_abs = 0;
  double kl_mean = 0;  // of softmax(golden) from softmax(got), nats
  double kl_max = 0;
  double top1 = 0;        // share of rows with the same best id
  double top1_clear = 1;  // the same, only rows whose golden lead is > 2e-4
};

// Both [.., vocab] f32 with as many elements.
LogitDiff CompareLogits(ConstTensorView golden, ConstTensorView got);

// Expert sets [L, n_tokens, k] i32 where margin [L, n_tokens] > floor; an empty
// margin: everywhere. The share that is equal, order aside.
double EqualExpertSets(ConstTensorView golden, ConstTensorView got,
                       ConstTensorView margin, float floor);

// Hidden states [n_tokens, ..] bf16.
struct HiddenDiff {
  double rel_rms = 0;      // of all
  double worst_token = 0;  // relative rms of the worst token
  double exact = 0;        // share of tokens equal in every bit
};
HiddenDiff CompareHidden(ConstTensorView golden, ConstTensorView got);

}  // namespace belay::test

#endif  // BELAY_TESTS_SUPPORT_COMPARE_H_
