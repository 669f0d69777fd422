#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "common/base/clocks.h"
#include "tests/server/group/members/group_fixture.h"

namespace gannet {
namespace {

// Has no change from when it is told to hold. So all that is decided later waits.
class HoldingConsumer : public ChangeConsumer {
 public:
  bool Take(const Change&, ChangePlace* place) override {
    end_ = place->end;
    return true;
  }
  uint64_t safe() const override { return holds_ ? held_at_ : UINT64_MAX; }
  void Hold() {
    holds_ = true;
    held_at_ = end_;
  }
  void Release() { holds_ = false; }

 private:
  bool holds_ = false;
  uint64_t end_ = 0;
  uint64_t held_at_ = 0;
};

class BackupJoinsTest : public GroupPutTest {
 protected:
  void StepBackupApart() { backup(0).member()->Poll(lease_now()); }
  void SendDelete(RawPeer& peer, const std::string& key) {
    RequestHeader header = peer.Header(Opcode::kDelete);
    header.key_bytes = static_cast<uint16_t>(key.size());
    ASSERT_TRUE(peer.Send(header, key));
  }
  // Steps until the primary has another change, and all of its stream is committed.
  void AwaitCommitted(uint64_t before) {
    EXPECT_TRUE(StepUntil([&] { return primary().end > before; }));
    EXPECT_TRUE(StepUntil([&] { return primary().committed == primary().end; }));
  }

  HoldingConsumer consumer_;
};

// A deletion is committed and not published yet, so the walk still finds its item. The backup
// applies it in the Poll in which it is welcomed.
TEST_F(BackupJoinsTest, ItsWalkHearsOfTheStreamFromTheWelcomeOn) {
  StartGroup(0);
  server().AddConsumer(&consumer_, ChangeStream::Need::kRequired);
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  ASSERT_EQ(peer.Put("deleted", "v"), ReplyStatus::kOk);
  ASSERT_EQ(peer.Put("stays", "v"), ReplyStatus::kOk);
  FollowApart();
  StartBackup(0);
  ASSERT_FALSE(HasFatalFailure());
  ASSERT_TRUE(StepUntil([&] {
    const bool welcomed = !primary().backups.empty();
    if (!welcomed) StepBackupApart();
    return welcomed;
  }));
  SkipLeaseTime(kLeaseNs / 4);  // a beacon says that all before the stream's begin is published
  consumer_.Hold();
  const uint64_t begin = primary().end;
  SendDelete(peer, "deleted");
  AwaitCommitted(begin);
  const uint64_t deleted = primary().end;
  Send(peer, "later");  // its record says that the deletion is committed
  AwaitCommitted(deleted);
  StepBackupApart();
  ASSERT_GE(backup(0).member()->Look().applied, deleted) << "the deletion was not applied";
  FollowAgain();
  ASSERT_TRUE(StepUntil([&] { return shared().now().configuration.in_sync.size() == 2; }));
  consumer_.Release();
  ASSERT_EQ(peer.Receive()->status(), ReplyStatus::kOk);
  ASSERT_EQ(peer.Receive()->status(), ReplyStatus::kOk);
  const auto has = [&](const char* key) {
    return backup(0).store().Get(key, {}, ServerClock::BeginsAt(MachineWallTime())).status !=
           ReplyStatus::kNotFound;
  };
  EXPECT_TRUE(StepUntil([&] { return has("later"); }));
  EXPECT_TRUE(has("stays"));
  EXPECT_FALSE(has("deleted")) << "the walk brought back what the stream had deleted";
}

}  // namespace
}  // namespace gannet
