#ifndef SOFTVERBS_TESTS_SUPPORT_FREE_PORT_H_
#define SOFTVERBS_TESTS_SUPPORT_FREE_PORT_H_

#include <cstdint>

namespace test_support {

// Returns a TCP port that nobody uses. While this process lives, nobody else gets it by chance: no
// connection, and no other test.
uint16_t FreePort();

}  // namespace test_support

#endif  // SOFTVERBS_TESTS_SUPPORT_FREE_PORT_H_
