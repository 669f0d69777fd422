#ifndef GANNET_TESTS_RDMA_TEST_DEVICE_H_
#define GANNET_TESTS_RDMA_TEST_DEVICE_H_

#include <string>

#include "common/rdma/device.h"

namespace gannet {

// The device that this test program runs on: --device=auto|soft|NAME, "auto" when it was not given.
// Started without an RDMA device and without softverbs, the program executes itself again on
// softverbs, as ours do. Linking test_device brings the main() that chooses and prints it.
const Device& TestDevice();

// Where a server of a test listens, with a port of its own choice: "127.0.0.1:0" on softverbs, an
// address of the device otherwise, since an RDMA device is not reached through loopback. Ends the
// test program when the device has none.
std::string TestListenAddress();

// --server=HOST:PORT: a kvserver that runs already, perhaps on another host, and is to be tested
// instead of one of the test's own; empty when not given.
const std::string& TestServer();

// How many times slower than a real one this machine is (GANNET_TEST_SLOWNESS, 1 when not set): an
// emulated one gets larger values. Tests divide their counts by it, never what they check.
int TestSlowness();

}  // namespace gannet

#endif  // GANNET_TESTS_RDMA_TEST_DEVICE_H_
