#ifndef GANNET_TESTS_SOFTVERBS_SUPPORT_SANITIZER_H_
#define GANNET_TESTS_SOFTVERBS_SUPPORT_SANITIZER_H_

#if defined(__SANITIZE_THREAD__)
#define SOFTVERBS_TEST_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SOFTVERBS_TEST_TSAN 1
#endif
#endif

#if defined(__SANITIZE_ADDRESS__)
#define SOFTVERBS_TEST_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SOFTVERBS_TEST_ASAN 1
#endif
#endif

namespace softverbs {

#ifdef SOFTVERBS_TEST_TSAN
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

// The preset includes UBSan.
#ifdef SOFTVERBS_TEST_ASAN
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif

}  // namespace softverbs

#endif  // GANNET_TESTS_SOFTVERBS_SUPPORT_SANITIZER_H_
