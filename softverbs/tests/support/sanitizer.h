#ifndef SOFTVERBS_TESTS_SUPPORT_SANITIZER_H_
#define SOFTVERBS_TESTS_SUPPORT_SANITIZER_H_

#if defined(__SANITIZE_THREAD__)
#define TEST_SUPPORT_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TEST_SUPPORT_TSAN 1
#endif
#endif

#if defined(__SANITIZE_ADDRESS__)
#define TEST_SUPPORT_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TEST_SUPPORT_ASAN 1
#endif
#endif

namespace test_support {

#ifdef TEST_SUPPORT_TSAN
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

// The preset includes UBSan.
#ifdef TEST_SUPPORT_ASAN
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif

inline constexpr bool kSanitizer = kThreadSanitizer || kAddressSanitizer;

// Returns how much of the work of a test on one thread is done under a sanitizer. What the test
// checks, it checks without one; what a sanitizer would find, a part of the work shows.
constexpr int Part(int n) { return kSanitizer ? (n + 3) / 4 : n; }

}  // namespace test_support

#endif  // SOFTVERBS_TESTS_SUPPORT_SANITIZER_H_
