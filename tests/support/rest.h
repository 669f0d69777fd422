#ifndef GANNET_TESTS_SUPPORT_REST_H_
#define GANNET_TESTS_SUPPORT_REST_H_

#include <chrono>
#include <thread>

namespace test_support {

// What a loop does that waits for other threads or processes. A loop that spins takes a core from
// them, and from all tests that run beside it: a server that gets none seems dead.
inline void Rest() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

}  // namespace test_support

#endif  // GANNET_TESTS_SUPPORT_REST_H_
