#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

// What a program sees of the settings. Each case is a process of its own, as a process reads them
// once.

namespace softverbs {
namespace {

using Settings = std::vector<std::pair<const char*, const char*>>;

// Ends the process with the number of devices, or with 100 if one has not the name of its place.
[[noreturn]] void CountDevices(const Settings& settings) {
  for (const auto& [name, value] : settings) setenv(name, value, 1);
  int count = 0;
  ibv_device** list = ibv_get_device_list(&count);
  for (int number = 0; list[number] != nullptr; ++number) {
    if (ibv_get_device_name(list[number]) != "softverbs" + std::to_string(number)) _exit(100);
  }
  _exit(list[count] == nullptr ? count : 100);
}

class SettingsTest : public ::testing::Test {
 protected:
  SettingsTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(SettingsTest, ThereAreAsManyDevicesAsAskedFor) {
  for (const auto& [value, count] :
       {std::pair<const char*, int>{"", 1}, {"1", 1}, {"2", 2}, {"3", 3}, {"8", 8}}) {
    EXPECT_EXIT(CountDevices({{"SOFTVERBS_DEVICES", value}}), testing::ExitedWithCode(count), "")
        << value;
  }
}

TEST_F(SettingsTest, AnotherNumberEndsTheProgram) {
  for (const char* value : {"0", "9", "10", "-1", "two", "2 ", "1.5"}) {
    EXPECT_EXIT(CountDevices({{"SOFTVERBS_DEVICES", value}}), testing::ExitedWithCode(2),
                "SOFTVERBS_DEVICES is a number from 1 to 8")
        << value;
  }
}

TEST_F(SettingsTest, AddressesThatDoNotFitEndTheProgram) {
  EXPECT_EXIT(
      CountDevices({{"SOFTVERBS_DEVICES", "2"}, {"SOFTVERBS_DEVICE_ADDRESSES", "10.0.0.1"}}),
      testing::ExitedWithCode(2), "SOFTVERBS_DEVICE_ADDRESSES has an item for each");
}

TEST_F(SettingsTest, AnotherNumberOfPortsEndsTheProgram) {
  for (const char* value : {"0", "3", "two", "2 "}) {
    EXPECT_EXIT(CountDevices({{"SOFTVERBS_DEVICE_PORTS", value}}), testing::ExitedWithCode(2),
                "SOFTVERBS_DEVICE_PORTS is 1 or 2")
        << value;
  }
}

TEST_F(SettingsTest, EachDeviceHasAnAddressForHosts) {
  const std::pair<const char*, const char*> three{"SOFTVERBS_NET", "127.0.0.9,127.0.1.9,127.0.2.9"};
  EXPECT_EXIT(CountDevices({{"SOFTVERBS_DEVICES", "3"}, three}), testing::ExitedWithCode(3), "");
  EXPECT_EXIT(CountDevices({{"SOFTVERBS_DEVICES", "3"},
                            three,
                            {"SOFTVERBS_DEVICE_ADDRESSES", "127.0.1.9,127.0.0.9,127.0.2.9"}}),
              testing::ExitedWithCode(2), "each device has its address of SOFTVERBS_NET");
}

TEST_F(SettingsTest, OneAddressForHostsIsOfOneDevice) {
  EXPECT_EXIT(CountDevices({{"SOFTVERBS_DEVICES", "2"}, {"SOFTVERBS_NET", "127.0.0.9"}}),
              testing::ExitedWithCode(2), "SOFTVERBS_NET");
  EXPECT_EXIT(CountDevices({{"SOFTVERBS_DEVICE_PORTS", "2"}, {"SOFTVERBS_NET", "127.0.0.9"}}),
              testing::ExitedWithCode(2), "SOFTVERBS_NET");
}

}  // namespace
}  // namespace softverbs
