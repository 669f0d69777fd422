#ifndef GANNET_TESTS_RDMA_TEST_DEVICE_H_
#define GANNET_TESTS_RDMA_TEST_DEVICE_H_

#include "common/rdma/device.h"

namespace gannet {

// The device that this test program runs on: --device=auto|soft|NAME, "auto" when it was not given.
// Started without an RDMA device and without softverbs, the program executes itself again on
// softverbs, as ours do. Linking test_device brings the main() that chooses and prints it.
const Device& TestDevice();

}  // namespace gannet

#endif  // GANNET_TESTS_RDMA_TEST_DEVICE_H_
