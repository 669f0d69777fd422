// Two cards of InfiniBand with two ports each, which have alternate paths. The lock rail lives as
// long as one port of its card is up.

#include <softverbs/control.h>

#include <vector>

#include "gtest/gtest.h"
#include "tests/common/rdma/test_device.h"
#include "tests/server/rpc/server_fixture.h"

namespace gannet {
namespace {

constexpr uint32_t kSilenceMs = 2000;

class LockRailPortsTest : public ServerTest {
 protected:
  void SetUp() override {
    // ctest sets SOFTVERBS_DEVICES=2, SOFTVERBS_DEVICE_PORTS=2 and SOFTVERBS_LINK_LAYER=infiniband.
    ASSERT_EQ(TestDevice().name, "softverbs0");
    StartServer([](Server::Options* options) {
      options->more_rails = {*Resolve("127.0.1.1:0", 0), *Resolve("127.0.2.1:0", 0)};
      options->silence_ms = kSilenceMs;
    });
    ASSERT_EQ(rails()[0].device.verbs, rails()[1].device.verbs);
    ASSERT_NE(rails()[0].device.verbs, rails()[2].device.verbs);
  }
  void TearDown() override {
    for (int port = 0; port < 4; ++port) ASSERT_EQ(softverbs_set_port(port, 1), 0);
    ServerTest::TearDown();
  }
  const std::vector<Rail>& rails() { return server().context().rails; }
  // Takes a port down, and waits for longer than the lock rail may be without one.
  void LosePort(int port) {
    ASSERT_EQ(softverbs_set_port(port, 0), 0);
    for (int part = 0; part < 8; ++part) {
      Pass(kSilenceMs * kNsPerMs / 4);
      Step();
    }
  }
};

TEST_F(LockRailPortsTest, TheLockRailLivesAsLongAsOnePortOfItsCardIsUp) {
  const uint64_t* const words = &server().context().lock_words[0];
  LosePort(0);
  EXPECT_EQ(&server().context().lock_words[0], words) << "locks were lost though the card can swap";
  LosePort(1);
  EXPECT_TRUE(StepUntil([&] { return &server().context().lock_words[0] != words; }));
}

}  // namespace
}  // namespace gannet
