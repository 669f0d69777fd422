#include <gtest/gtest.h>

#include <string>

#include "softverbs/base/devices.h"
#include "softverbs/base/net_config.h"

// Which address belongs to which port.

namespace softverbs {
namespace {

DeviceMap Parsed(const char* count, const char* addresses, const char* ports = nullptr) {
  DeviceMap map;
  std::string error;
  EXPECT_TRUE(ParseDevices(count, ports, addresses, &map, &error)) << error;
  return map;
}

int PortAt(const DeviceMap& map, const char* address) {
  return map.PortOf(ParseHostAddress(address).value());
}

TEST(DeviceMapTest, OneDeviceHasAll) {
  const DeviceMap map = Parsed(nullptr, nullptr);
  EXPECT_EQ(map.count, 1);
  for (const char* address : {"127.0.0.1", "127.0.1.1", "10.0.1.1", "fd00::1"}) {
    EXPECT_EQ(PortAt(map, address), 0) << address;
  }
}

TEST(DeviceMapTest, LoopbackAddressesAreOfDevices) {
  const DeviceMap map = Parsed("3", "");
  EXPECT_EQ(PortAt(map, "127.0.0.9"), 0);
  EXPECT_EQ(PortAt(map, "127.0.1.1"), 1);
  EXPECT_EQ(PortAt(map, "127.0.2.255"), 2);
  for (const char* address : {"127.0.3.1", "127.1.1.1", "10.0.1.1", "fd00::1", "::1"}) {
    EXPECT_EQ(PortAt(map, address), 0) << address;
  }
}

TEST(DeviceMapTest, NamedAddressesAreOfTheirDevice) {
  const DeviceMap map = Parsed("2", "10.0.0.1,10.0.1.1+fd00::1+127.0.0.5");
  EXPECT_EQ(PortAt(map, "10.0.0.1"), 0);
  EXPECT_EQ(PortAt(map, "10.0.1.1"), 1);
  EXPECT_EQ(PortAt(map, "fd00::1"), 1);
  EXPECT_EQ(PortAt(map, "127.0.0.5"), 1);
  EXPECT_EQ(PortAt(map, "127.0.1.1"), 0);  // not named
}

TEST(DeviceMapTest, PortsAreCountedOverDevices) {
  const DeviceMap loopback = Parsed("2", nullptr, "2");
  EXPECT_EQ(PortAt(loopback, "127.0.0.1"), 0);
  EXPECT_EQ(PortAt(loopback, "127.0.3.1"), 3);
  EXPECT_EQ(PortAt(loopback, "127.0.4.1"), 0);
  const DeviceMap named = Parsed("1", "10.0.0.1,10.0.1.1", "2");
  EXPECT_EQ(PortAt(named, "10.0.1.1"), 1);
}

TEST(DeviceMapTest, RefusesWhatItDoesNotUnderstand) {
  DeviceMap map;
  std::string error;
  for (const char* count : {"0", "9", "x", "2 ", "-1", "10"}) {
    EXPECT_FALSE(ParseDevices(count, nullptr, nullptr, &map, &error)) << count;
    EXPECT_NE(error.find("SOFTVERBS_DEVICES"), std::string::npos) << error;
  }
  for (const char* ports : {"0", "3", "x", "2 ", "-1", "11"}) {
    EXPECT_FALSE(ParseDevices("2", ports, nullptr, &map, &error)) << ports;
    EXPECT_NE(error.find("SOFTVERBS_DEVICE_PORTS"), std::string::npos) << error;
  }
  for (const char* addresses :
       {"10.0.0.1", "10.0.0.1,10.0.1.1,10.0.2.1", "10.0.0.1,", "10.0.0.1,10.0.0.1",
        "10.0.0.1+,fd00::1", "10.0.0.1,10.0.1.1:80", "10.0.0.1,host", "0.0.0.0,10.0.1.1"}) {
    DeviceMap two;
    EXPECT_FALSE(ParseDevices("2", nullptr, addresses, &two, &error)) << addresses;
    EXPECT_NE(error.find("SOFTVERBS_DEVICE_ADDRESSES"), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace softverbs
