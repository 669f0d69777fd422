#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "softverbs/tests/devices/two_devices.h"
#include "softverbs/tests/support/temporary_directory.h"
#include "softverbs/tests/support/verbs_fixture.h"

// A folder whose files take down the ports of a running process. Each case is a process of its own,
// as a process reads the setting once.

namespace softverbs {
namespace {

void Touch(const std::string& path) { const std::ofstream file(path); }

void ExpectEvent(ibv_context* context, ibv_event_type type) {
  pollfd waits{context->async_fd, POLLIN, 0};
  ASSERT_EQ(poll(&waits, 1, 20'000), 1) << "no event";
  ibv_async_event event{};
  ASSERT_EQ(ibv_get_async_event(context, &event), 0);
  ibv_ack_async_event(&event);
  EXPECT_EQ(event.event_type, type);
}

// Ends a process of its own, with 0 if nothing has failed there.
[[noreturn]] void End() { _exit(testing::Test::HasFailure() ? 1 : 0); }

// Returns how a READ from a queue pair of the device to another one there ends.
ibv_wc_status Read(ibv_context* context) {
  Side client(context, {}), server(context, {});
  ConnectEach(client, server, {.retry_cnt = 3, .timeout = 10});
  EXPECT_EQ(client.Read(1, 0, 8, server.address(), 0), 0);
  return client.Next().status;
}

[[noreturn]] void GoDownAndUp(const std::string& folder) {
  setenv("SOFTVERBS_PORTS", folder.c_str(), 1);
  const Owned<ibv_context> first = OpenOfTwo(0), second = OpenOfTwo(1);
  for (int times = 0; times < 100; ++times) {
    Touch(folder + "/1.down");
    ExpectEvent(second.get(), IBV_EVENT_PORT_ERR);
    std::filesystem::remove(folder + "/1.down");
    ExpectEvent(second.get(), IBV_EVENT_PORT_ACTIVE);
  }
  Touch(folder + "/1.down");
  ExpectEvent(second.get(), IBV_EVENT_PORT_ERR);
  EXPECT_EQ(Read(second.get()), IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(Read(first.get()), IBV_WC_SUCCESS);
  std::filesystem::remove(folder + "/1.down");
  ExpectEvent(second.get(), IBV_EVENT_PORT_ACTIVE);
  EXPECT_EQ(Read(second.get()), IBV_WC_SUCCESS);
  End();
}

[[noreturn]] void BeginDown(const std::string& folder) {
  setenv("SOFTVERBS_PORTS", folder.c_str(), 1);
  Touch(folder + "/1.down");
  const Owned<ibv_context> second = OpenOfTwo(1);
  EXPECT_EQ(Read(second.get()), IBV_WC_RETRY_EXC_ERR);
  std::filesystem::rename(folder + "/1.down", folder + "/0.down");
  ExpectEvent(second.get(), IBV_EVENT_PORT_ACTIVE);
  EXPECT_EQ(Read(second.get()), IBV_WC_SUCCESS);
  End();
}

[[noreturn]] void Die(const std::string& folder) {
  setenv("SOFTVERBS_PORTS", folder.c_str(), 1);
  const Owned<ibv_context> first = OpenOfTwo(0), second = OpenOfTwo(1);
  Touch(folder + "/1.dead");
  ExpectEvent(second.get(), IBV_EVENT_DEVICE_FATAL);
  std::filesystem::remove(folder + "/1.dead");
  // What comes later is seen later.
  Touch(folder + "/0.down");
  ExpectEvent(first.get(), IBV_EVENT_PORT_ERR);
  EXPECT_EQ(Read(second.get()), IBV_WC_RETRY_EXC_ERR);
  End();
}

[[noreturn]] void OpenWith(const std::string& folder) {
  setenv("SOFTVERBS_PORTS", folder.c_str(), 1);
  OpenOfTwo(0);
  End();
}

class PortFolderTest : public ::testing::Test {
 protected:
  PortFolderTest() { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
  const test_support::TemporaryDirectory folder_;
};

TEST_F(PortFolderTest, AFileTakesAPortDownForAsLongAsItIsThere) {
  EXPECT_EXIT(GoDownAndUp(folder_.path()), testing::ExitedWithCode(0), "");
}

TEST_F(PortFolderTest, AFileThatWasThereBeforeIsSeen) {
  EXPECT_EXIT(BeginDown(folder_.path()), testing::ExitedWithCode(0), "");
}

TEST_F(PortFolderTest, AFileKillsADeviceForGood) {
  EXPECT_EXIT(Die(folder_.path()), testing::ExitedWithCode(0), "");
}

TEST_F(PortFolderTest, AFolderThatIsNotThereEndsTheProgram) {
  EXPECT_EXIT(OpenWith(folder_.path() + "/none"), testing::ExitedWithCode(2),
              "SOFTVERBS_PORTS: cannot watch the folder .*/none: No such file");
}

}  // namespace
}  // namespace softverbs
