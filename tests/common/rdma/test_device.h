#ifndef GANNET_TESTS_COMMON_RDMA_TEST_DEVICE_H_
#define GANNET_TESTS_COMMON_RDMA_TEST_DEVICE_H_

#include <string>

#include "common/rdma/device.h"

namespace gannet {

// The device that this test program runs on: --device=auto|soft|NAME, by default "auto". Without an
// RDMA device and without softverbs, the program executes itself again on softverbs, as our
// programs do. test_device has the main() that chooses and prints the device.
const Device& TestDevice();

// Returns where a test's server listens, on a port that it chooses: "127.0.0.1:0" on softverbs,
// otherwise an address of the device, because an RDMA device cannot be reached through loopback.
// Ends the test program if the device has no address.
std::string TestListenAddress();

// Returns --server=HOST:PORT: a kvserver that already runs, perhaps on another host, and is tested
// instead of the test's own. Empty if not given.
const std::string& TestServer();

// Returns how many times slower than a real machine this one is (GANNET_TEST_SLOWNESS, by default
// 1). Emulated machines get larger values. Tests divide their counts by it, but never relax what
// they check.
int TestSlowness();

}  // namespace gannet

#endif  // GANNET_TESTS_COMMON_RDMA_TEST_DEVICE_H_
