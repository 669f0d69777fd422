#include <gtest/gtest.h>

#include <string>

#include "softverbs/base/devices.h"
#include "softverbs/base/net_config.h"

// Which address belongs to which device.

namespace softverbs {
namespace {

DeviceMap Parsed(const char* count, const char* addresses) {
  DeviceMap map;
  std::string error;
  EXPECT_TRUE(ParseDevices(count, addresses, &map, &error)) << error;
  return map;
}

int DeviceAt(const DeviceMap& map, const char* address) {
  return map.DeviceOf(ParseHostAddress(address).value());
}

TEST(DeviceMapTest, OneDeviceHasAll) {
  const DeviceMap map = Parsed(nullptr, nullptr);
  EXPECT_EQ(map.count, 1);
  for (const char* address : {"127.0.0.1", "127.0.1.1", "10.0.1.1", "fd00::1"}) {
    EXPECT_EQ(DeviceAt(map, address), 0) << address;
  }
}

TEST(DeviceMapTest, LoopbackAddressesAreOfDevices) {
  const DeviceMap map = Parsed("3", "");
  EXPECT_EQ(DeviceAt(map, "127.0.0.9"), 0);
  EXPECT_EQ(DeviceAt(map, "127.0.1.1"), 1);
  EXPECT_EQ(DeviceAt(map, "127.0.2.255"), 2);
  for (const char* address : {"127.0.3.1", "127.1.1.1", "10.0.1.1", "fd00::1", "::1"}) {
    EXPECT_EQ(DeviceAt(map, address), 0) << address;
  }
}

TEST(DeviceMapTest, NamedAddressesAreOfTheirDevice) {
  const DeviceMap map = Parsed("2", "10.0.0.1,10.0.1.1+fd00::1+127.0.0.5");
  EXPECT_EQ(DeviceAt(map, "10.0.0.1"), 0);
  EXPECT_EQ(DeviceAt(map, "10.0.1.1"), 1);
  EXPECT_EQ(DeviceAt(map, "fd00::1"), 1);
  EXPECT_EQ(DeviceAt(map, "127.0.0.5"), 1);
  EXPECT_EQ(DeviceAt(map, "127.0.1.1"), 0);  // not named
}

TEST(DeviceMapTest, RefusesWhatItDoesNotUnderstand) {
  DeviceMap map;
  std::string error;
  for (const char* count : {"0", "9", "x", "2 ", "-1", "10"}) {
    EXPECT_FALSE(ParseDevices(count, nullptr, &map, &error)) << count;
    EXPECT_NE(error.find("SOFTVERBS_DEVICES"), std::string::npos) << error;
  }
  for (const char* addresses :
       {"10.0.0.1", "10.0.0.1,10.0.1.1,10.0.2.1", "10.0.0.1,", "10.0.0.1,10.0.0.1",
        "10.0.0.1+,fd00::1", "10.0.0.1,10.0.1.1:80", "10.0.0.1,host", "0.0.0.0,10.0.1.1"}) {
    DeviceMap two;
    EXPECT_FALSE(ParseDevices("2", addresses, &two, &error)) << addresses;
    EXPECT_NE(error.find("SOFTVERBS_DEVICE_ADDRESSES"), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace softverbs
