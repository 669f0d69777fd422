// Who comes to own a group's items otherwise than by a takeover or a hand-over takes no client as
// long as those of a former primary may answer from copies of its items (docs/item-leases.md).

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>

#include "tests/server/group/members/group_fixture.h"

namespace gannet {
namespace {

// So long that the time that the test takes does not count.
constexpr uint32_t kFormerLeasesMs = 1'000'000;
constexpr int64_t kFormerLeasesNs = kFormerLeasesMs * kNsPerMs;
// A member looks at such times in each Poll.
constexpr int kSteps = 100;

class FormerLeasesTest : public GroupPutTest {
 protected:
  FormerLeasesTest() {
    set_options_ = [](Server::Options* options) { options->former_leases_ms = kFormerLeasesMs; };
  }
  void TakeSteps() {
    for (int i = 0; i < kSteps; ++i) Step();
  }
  // Returns whether a server takes clients once it has waited for so long, and not before.
  testing::AssertionResult ServesOnceTheyAreOver(const Server& server) {
    if (!StepUntil([&] { return server.member()->Look().role == Member::Role::kPrimary; })) {
      return testing::AssertionFailure() << "it is not primary";
    }
    TakeSteps();
    skipped_ns_ += kFormerLeasesNs / 2;
    TakeSteps();
    if (server.serves()) return testing::AssertionFailure() << "it serves before they are over";
    skipped_ns_ += kFormerLeasesNs / 2;
    if (StepUntil([&] { return server.serves(); })) return testing::AssertionSuccess();
    return testing::AssertionFailure() << "it does not serve";
  }
  void StartTwo() {
    StartPrimary();
    ASSERT_TRUE(ServesOnceTheyAreOver(server()));
    Advance(kFormerLeasesNs);  // those of a former process of this server are over, too
    StartBackups(1);
    ASSERT_FALSE(backup(0).serves());
  }
  // Polls the backup alone: its primary is silent.
  void StepBackup() {
    backup(0).Poll(now());
    for (const auto& worker : backup(0).workers()) worker->Poll(now());
    backup(0).member()->Poll(lease_now());
  }
  // Takes steps, and some seconds for each. Returns whether the backup takes clients before such
  // leases could be over.
  bool BackupServesSoon(const std::function<void()>& step) {
    for (const int64_t end_ns = skipped_ns_ + kFormerLeasesNs / 2; skipped_ns_ < end_ns;) {
      if (backup(0).serves()) return true;
      skipped_ns_ += kNsPerSecond;
      for (int i = 0; i < kSteps; ++i) step();
    }
    return false;
  }
};

TEST_F(FormerLeasesTest, AGroupThatBeginsWaits) {
  StartPrimary();
  EXPECT_TRUE(ServesOnceTheyAreOver(server()));
}

TEST_F(FormerLeasesTest, AForcedPrimaryWaits) {
  StartTwo();
  shared().Force("n2", shared().terms().history + 1);
  EXPECT_TRUE(ServesOnceTheyAreOver(backup(0)));
}

TEST_F(FormerLeasesTest, WhoTakesOverDoesNotWait) {
  StartTwo();
  EXPECT_TRUE(BackupServesSoon([this] { StepBackup(); }));
}

TEST_F(FormerLeasesTest, WhoIsHandedOverToDoesNotWait) {
  StartTwo();
  EXPECT_TRUE(BackupServesSoon([this] {
    if (!shared().successor()) shared().WantSuccessor("n2");
    Step();
  }));
}

}  // namespace
}  // namespace gannet
