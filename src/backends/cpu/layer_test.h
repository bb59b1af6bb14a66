// SPDX-License-Identifier: Apache-2.0
// A random transformer layer that calls every operator of a back end, with
// caches of its own: hyper-connections, indexed attention, experts, sampling.
#ifndef BELAY_BACKENDS_CPU_LAYER_TEST_H_
#define BELAY_BACKENDS_CPU_LAYER_TEST_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "backends/cpu/cpu.h"
#include "tensor/buffer.h"

namespace belay::cpu {

// Tokens [start, start + n) of the sequence in `slot`. Its token ids follow
// from slot and position alone.
struct Piece {
  int32_t slot;
  int32_t start;
  int32_t n;
};

class TestLayer {
 public:
  TestLayer(const ops::Numerics& numerics, int n_threads);
  ~TestLayer();
  TestLayer(TestLayer&&) noexcept;

  // One step; the output streams, logits and sampled ids of its tokens.
  std::vector<std::byte> Run(const std::vector<Piece>& pieces);

  // Whether the last step's logits are finite and differ from token to token,
  // so that equal bits mean something.
  bool OutputsAreSound() const;

  // The same in two parts: everything that may allocate, then the operators.
  void Prepare(const std::vector<Piece>& pieces);
  void Step();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace belay::cpu

#endif  // BELAY_BACKENDS_CPU_LAYER_TEST_H_
