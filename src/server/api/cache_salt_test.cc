// SPDX-License-Identifier: Apache-2.0
#include "server/api/cache_salt.h"

#include <set>
#include <string>

#include "gtest/gtest.h"

namespace belay::server {
namespace {

// The example of the paper's appendix: key and text count up from 0.
TEST(CacheSaltTest, IsSipHash) {
  std::string text;
  for (char c = 0; c < 15; ++c) text.push_back(c);
  const SipKey key = {0x0706050403020100u, 0x0f0e0d0c0b0a0908u};
  EXPECT_EQ(SipHash(key, text), 0xa129ca6149be45e5u);
  EXPECT_NE(SipHash(key, ""), SipHash(key, std::string(1, '\0')));
}

TEST(CacheSaltTest, EveryKeyAndSaltHasItsOwn) {
  EXPECT_EQ(CacheSalt("", ""), 0u);
  std::set<uint64_t> seen = {0};
  for (const std::string api_key :
       {"", "0123456789abcdef", "0123456789abcdeg", "0123456789abcdef0"}) {
    for (const std::string salt : {"", "a", "b", "0", "0123456789abcdef"}) {
      if (api_key.empty() && salt.empty()) continue;
      EXPECT_TRUE(seen.insert(CacheSalt(api_key, salt)).second)
          << api_key << " " << salt;
      EXPECT_EQ(CacheSalt(api_key, salt), CacheSalt(api_key, salt));
    }
  }
}

}  // namespace
}  // namespace belay::server
