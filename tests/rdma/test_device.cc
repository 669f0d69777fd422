#include "tests/rdma/test_device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/check.h"
#include "common/rdma/device_choice.h"
#include "common/rdma/loopback.h"

namespace gannet {
namespace {

Device test_device;

std::string DeviceFlag(int argc, char** argv) {
  constexpr std::string_view kFlag = "--device=";
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with(kFlag)) return std::string(argument.substr(kFlag.size()));
  }
  return "auto";
}

int Main(int argc, char** argv) {
  // GoogleTest takes its flags out of the list; a program that is executed again needs them all.
  std::vector<char*> arguments(argv, argv + argc + 1);
  absl::StatusOr<Device> device = UseDevice(DeviceFlag(argc, argv), arguments.data());
  if (!device.ok()) {
    std::fprintf(stderr, "%s\n", std::string(device.status().message()).c_str());
    return 1;
  }
  test_device = *std::move(device);
  std::printf("device=%s kind=%s\n", test_device.name.c_str(),
              std::string(DeviceKindName(test_device.kind)).c_str());
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}

}  // namespace

const Device& TestDevice() { return test_device; }

std::string TestListenAddress() {
  if (test_device.kind == DeviceKind::kSoftverbs) return "127.0.0.1:0";
  absl::StatusOr<SocketAddress> address = OwnAddress(test_device);
  if (!address.ok()) std::fprintf(stderr, "%s\n", std::string(address.status().message()).c_str());
  GANNET_CHECK(address.ok(), "the device under test has no address");
  address->set_port(0);
  return address->ToString();
}

int TestSlowness() {
  const char* given = std::getenv("GANNET_TEST_SLOWNESS");
  return given == nullptr ? 1 : std::max(1, std::atoi(given));
}

}  // namespace gannet

int main(int argc, char** argv) { return gannet::Main(argc, argv); }
