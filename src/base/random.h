// SPDX-License-Identifier: Apache-2.0
#ifndef BELAY_BASE_RANDOM_H_
#define BELAY_BASE_RANDOM_H_

#include <cstdint>

namespace belay {

// A counter-based random number: the same on every machine and back end, with
// no state to carry. SplitMix64's output function over a mix of both inputs
// (Steele, Lea, Flood 2014).
constexpr uint64_t RandomBits(uint64_t seed, uint64_t counter) {
  uint64_t z = seed * 0xd1342543de82ef95u + counter + 0x9e3779b97f4a7c15u;
  for (int round = 0; round < 2; ++round) {
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
  }
  return z;
}

// In [0, 1), 24 bits: exact in float32.
constexpr float UniformFrom(uint64_t seed, uint64_t counter) {
  return static_cast<float>(RandomBits(seed, counter) >> 40) * 0x1p-24f;
}

}  // namespace belay

#endif  // BELAY_BASE_RANDOM_H_
