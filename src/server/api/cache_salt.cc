// SPDX-License-Identifier: Apache-2.0
#include "server/api/cache_salt.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

namespace belay::server {
namespace {

class SipState {
 public:
  explicit SipState(const SipKey& key)
      : v_{key.low ^ 0x736f6d6570736575u, key.high ^ 0x646f72616e646f6du,
           key.low ^ 0x6c7967656e657261u, key.high ^ 0x7465646279746573u} {}

  void Add(uint64_t word) {
    v_[3] ^= word;
    Rounds(2);
    v_[0] ^= word;
  }
  uint64_t Finish() {
    v_[2] ^= 0xff;
    Rounds(4);
    return v_[0] ^ v_[1] ^ v_[2] ^ v_[3];
  }

 private:
  // One half of a round: two sums, each turned into the word beside it.
  void Mix(size_t a, size_t b, int turn) {
    v_[a] += v_[b];
    v_[b] = std::rotl(v_[b], turn) ^ v_[a];
  }
  void Rounds(int n) {
    for (; n > 0; --n) {
      Mix(0, 1, 13);
      v_[0] = std::rotl(v_[0], 32);
      Mix(2, 3, 16);
      Mix(0, 3, 21);
      Mix(2, 1, 17);
      v_[2] = std::rotl(v_[2], 32);
    }
  }

  std::array<uint64_t, 4> v_;
};

// At most 8 bytes, the first one lowest.
uint64_t WordOf(std::string_view bytes) {
  uint64_t word = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    word |= uint64_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
  }
  return word;
}

}  // namespace

uint64_t SipHash(const SipKey& key, std::string_view text) {
  SipState state(key);
  const size_t n_bytes = text.size();
  for (; text.size() >= 8; text.remove_prefix(8)) {
    state.Add(WordOf(text.substr(0, 8)));
  }
  state.Add(WordOf(text) | uint64_t{n_bytes} << 56);
  return state.Finish();
}

uint64_t CacheSalt(std::string_view api_key, std::string_view cache_salt) {
  if (api_key.empty() && cache_salt.empty()) return 0;
  // Two hashes make the 128 bits; their own keys only tell them apart.
  const SipKey key = {SipHash({0, 0}, api_key), SipHash({0, 1}, api_key)};
  return std::max<uint64_t>(SipHash(key, cache_salt), 1);
}

}  // namespace belay::server
