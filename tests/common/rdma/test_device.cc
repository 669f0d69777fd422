#include "tests/common/rdma/test_device.h"

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
#include "tests/support/server_process.h"

namespace gannet {
namespace {

Device test_device;

std::string test_server;

// `flag` is "--name=".
std::string FlagValue(int argc, char** argv, std::string_view flag, const char* otherwise) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with(flag)) return std::string(argument.substr(flag.size()));
  }
  return otherwise;
}

absl::StatusOr<std::string> ListenAddress() {
  if (test_device.kind == DeviceKind::kSoftverbs) return "127.0.0.1:0";
  absl::StatusOr<SocketAddress> address = OwnAddress(test_device);
  if (!address.ok()) return address.status();
  address->set_port(0);
  return address->ToString();
}

int Main(int argc, char** argv) {
  // GoogleTest removes its flags from the list, but a program that is executed again needs them
  // all.
  std::vector<char*> arguments(argv, argv + argc + 1);
  absl::StatusOr<Device> device =
      UseDevice(FlagValue(argc, argv, "--device=", "auto"), arguments.data());
  if (!device.ok()) {
    std::fprintf(stderr, "%s\n", std::string(device.status().message()).c_str());
    return 1;
  }
  test_device = *std::move(device);
  test_server = FlagValue(argc, argv, "--server=", "");
  SetServerPlace({test_device.name, ListenAddress().value_or(""), test_server});
  std::printf("device=%s kind=%s\n", test_device.name.c_str(),
              std::string(DeviceKindName(test_device.kind)).c_str());
  ::testing::InitGoogleMock(&argc, argv);
  return RUN_ALL_TESTS();
}

}  // namespace

const Device& TestDevice() { return test_device; }

std::string TestListenAddress() {
  const absl::StatusOr<std::string> address = ListenAddress();
  if (!address.ok()) std::fprintf(stderr, "%s\n", std::string(address.status().message()).c_str());
  GANNET_CHECK(address.ok(), "the device under test has no address");
  return *address;
}

const std::string& TestServer() { return test_server; }

int TestSlowness() {
  const char* given = std::getenv("GANNET_TEST_SLOWNESS");
  return given == nullptr ? 1 : std::max(1, std::atoi(given));
}

}  // namespace gannet

int main(int argc, char** argv) { return gannet::Main(argc, argv); }
