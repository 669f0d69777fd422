#ifndef GANNET_TESTS_SUPPORT_FREE_PORT_H_
#define GANNET_TESTS_SUPPORT_FREE_PORT_H_

#include <cstdint>

namespace test_support {

// Returns a TCP port that nobody uses at this moment. Another process may take it before the caller
// does.
uint16_t FreePort();

}  // namespace test_support

#endif  // GANNET_TESTS_SUPPORT_FREE_PORT_H_
