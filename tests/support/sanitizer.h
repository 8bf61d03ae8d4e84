#pragma once

// Which sanitizer compiles this, g++'s or clang's: WEIR_TEST_ASAN, WEIR_TEST_TSAN.

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEIR_TEST_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define WEIR_TEST_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define WEIR_TEST_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define WEIR_TEST_TSAN 1
#endif
