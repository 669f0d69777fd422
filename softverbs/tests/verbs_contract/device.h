#ifndef SOFTVERBS_TESTS_VERBS_CONTRACT_DEVICE_H_
#define SOFTVERBS_TESTS_VERBS_CONTRACT_DEVICE_H_

#include <infiniband/verbs.h>
#include <sys/socket.h>

#include <cstring>
#include <string>

namespace verbs_contract {

// The device under test, what it reports about itself, and an address of this host that leads to
// it. Trivially copyable, because the processes that a test starts get it as bytes.
struct Device {
  char name[64];
  sockaddr_storage address;  // port 0
  ibv_transport_type transport;
  ibv_device_attr attr;
  bool over_tcp;  // softverbs with --over-tcp

  bool has_atomics() const { return attr.atomic_cap != IBV_ATOMIC_NONE; }
  // The kernel's Soft-RoCE or Soft-iWARP, by the names that `rdma link add` is given for them.
  bool is_of_kernel() const {
    return std::strncmp(name, "rxe", 3) == 0 || std::strncmp(name, "siw", 3) == 0;
  }
  // iWARP has no NAK, no RNR, no immediate data; its connections are TCP's.
  bool is_iwarp() const { return transport == IBV_TRANSPORT_IWARP; }
};

// REQUIRES: UseDevice or ChooseDevice succeeded.
const Device& TheDevice();
void UseDevice(const Device& device);

// Finds the device of this name, and whether this IPv4 address leads to it. An empty name is the
// first device, an empty address the first one of the device. Any other address stands for
// --over-tcp. On failure returns false and says why on stderr.
bool ChooseDevice(const std::string& name, const std::string& address);

#define SKIP_WITHOUT_ATOMICS() \
  if (!TheDevice().has_atomics()) GTEST_SKIP() << "its atomic_cap is IBV_ATOMIC_NONE"
#define SKIP_ON_IWARP(reason) \
  if (TheDevice().is_iwarp()) GTEST_SKIP() << "its transport is iWARP: " << (reason)

}  // namespace verbs_contract

#endif  // SOFTVERBS_TESTS_VERBS_CONTRACT_DEVICE_H_
