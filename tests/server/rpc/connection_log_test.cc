#include "server/rpc/connection_log.h"

#include <string>
#include <vector>

#include "common/base/boot_time.h"
#include "gtest/gtest.h"
#include "tests/common/base/boot_at.h"

namespace gannet {
namespace {

class ConnectionLogTest : public testing::Test {
 protected:
  std::vector<std::string> lines_;
  ConnectionLog log_{[this](const std::string& line) { lines_.push_back(line); }};
};

TEST_F(ConnectionLogTest, TellsASingleEventAtOnce) {
  log_.Came(BootAt(0), "one came");
  log_.Went(BootAt(ConnectionLog::kPeriodNs), "one went");
  EXPECT_EQ(lines_, (std::vector<std::string>{"one came", "one went"}));
  log_.Poll(BootAt(10 * ConnectionLog::kPeriodNs));
  EXPECT_EQ(lines_.size(), 2u) << "nothing more happened";
}

TEST_F(ConnectionLogTest, AStormIsOneLineASecond) {
  log_.Came(BootAt(0), "first");
  for (int i = 0; i < 10'000; ++i) {
    const BootTime now = BootAt(ConnectionLog::kPeriodNs * i / 10'000);
    log_.Came(now, "second");
    log_.Went(now, "second went");
  }
  EXPECT_EQ(lines_.size(), 1u);
  log_.Poll(BootAt(ConnectionLog::kPeriodNs - 1));
  EXPECT_EQ(lines_.size(), 1u);
  log_.Poll(BootAt(ConnectionLog::kPeriodNs));
  ASSERT_EQ(lines_.size(), 2u);
  EXPECT_EQ(lines_[1], "second (and 19999 more; in all 10000 came and 10000 went)");
}

}  // namespace
}  // namespace gannet
