// SPDX-License-Identifier: Apache-2.0
// What an answer may be, token by token: the seam of constrained decoding. The
// engine knows bits and ids only; grammars and text live with who implements
// this.
#ifndef BELAY_ENGINE_CONSTRAINT_H_
#define BELAY_ENGINE_CONSTRAINT_H_

#include <cstdint>
#include <span>

namespace belay::engine {

// Called on the engine's thread, inside Step(), between the forward pass and
// the draw: an implementation should neither block nor allocate.
class TokenConstraint {
 public:
  virtual ~TokenConstraint() = default;

  // Fills `bits`: token id t may come next iff bit t % 64 of bits[t / 64] is
  // set. ceil(vocab / 64) words, whatever they held before; bits beyond the
  // vocabulary are ignored. Called once before each draw. A stop id must be
  // allowed where the answer may end. With no bit set the request ends with
  // kError.
  virtual void Allowed(std::span<uint64_t> bits) = 0;

  // `token` was drawn, an allowed one; called once for each generated token, in
  // order. A request that is preempted and resumed is not told its tokens
  // again.
  virtual void Accept(int32_t token) = 0;

  // True when nothing can follow: the request ends with kStop after the token
  // that was accepted last.
  virtual bool Done() const = 0;
};

}  // namespace belay::engine

#endif  // BELAY_ENGINE_CONSTRAINT_H_
