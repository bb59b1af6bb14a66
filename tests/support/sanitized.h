// SPDX-License-Identifier: Apache-2.0
// Whether this is a sanitizer's build, in which everything is ten times slower.
// Sanitizers look at what the code touches, not at the figures: long tests of
// figures may take a part of their data there.
#ifndef BELAY_TESTS_SUPPORT_SANITIZED_H_
#define BELAY_TESTS_SUPPORT_SANITIZED_H_

namespace belay::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace belay::test

#endif  // BELAY_TESTS_SUPPORT_SANITIZED_H_
