#ifndef GANNET_TESTS_SERVER_GROUP_MOVE_RECEIVER_FIXTURE_H_
#define GANNET_TESTS_SERVER_GROUP_MOVE_RECEIVER_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/clocks.h"
#include "server/group/members/group_context.h"
#include "server/group/move/partition_receiver.h"
#include "tests/server/group/move/fake_giver.h"
#include "tests/server/group/move/fake_member_server.h"
#include "tests/server/memory/store/store_fixture.h"

namespace gannet {

// Positions are 1, 2, 3 ...; the last change is kept.
struct OwnStream : ChangeSink, ChangeRecorder {
  std::optional<ChangePlace> Reserve(const Change& change) override {
    if (refuses) return std::nullopt;
    last_version = change.version;
    last_kind = change.kind;
    return ChangePlace{.end = ++end};
  }
  std::optional<ChangePlace> ReserveUndo(const Change& deletion,
                                         std::span<const SessionRecord>) override {
    return Reserve(deletion);
  }
  void Fill(const Change&, const ChangePlace&) override {}
  bool BeginUpdates(UpdateLane*) override { return false; }
  void EndUpdates(UpdateLane*) override {}
  void RecordSession(const SessionRecord&) override {}
  bool Record(const Change& change) override { return Reserve(change).has_value(); }

  bool refuses = false;
  uint64_t end = 0;
  uint64_t last_version = 0;
  Change::Kind last_kind = Change::Kind::kPut;
};

// A receiver of partitions, between a giver and a register that the test sets.
class PartitionReceiverTest : public testing::Test,
                              public FakeMemberServer,
                              public MoveSourceMaker {
 protected:
  void SetUp() override {
    store_->UseSink(&stream_);
    store_.writes().WaitFor(&stream_);
    Start();
  }
  // A process becomes primary.
  void Start() { receiver_.emplace(context_, &store_.writes(), this); }
  ServerTime Time() const override { return At(clock_ms_); }
  void Publish() override {
    if (commits_) store_.writes().Publish(stream_.end);
  }
  std::unique_ptr<MoveSource> MakeSource(const std::string&, const std::string&,
                                         BootTime) override {
    return std::make_unique<FakeSource>(&giver_);
  }
  void Turn(int64_t ns = kNsPerMs) {
    now_ = now_ + ns;
    receiver_->Poll(now_, {.revision = map_.group_, .configuration = {}});
  }
  // Polls until it is so, for at most `seconds`.
  template <class Done>
  bool Until(Done done, int seconds = 4) {
    for (int i = 0; i < seconds * 1000 && !done(); ++i) Turn();
    return done();
  }
  // Lets the first half of a move happen, until the partitions are closed.
  void CloseAll() {
    ASSERT_TRUE(Until([&] { return giver_.made > 0; }));
    giver_.copied = true;
    ASSERT_TRUE(Until([&] { return map_.closed(kPartition); }));
  }
  void End(uint64_t lsn = 50, uint64_t version_next = 9'000) {
    giver_.ended = NewMoveEnded();
    giver_.ended->revision = map_.map_.config.revision;
    giver_.ended->lsn = lsn;
    giver_.ended->version_next = version_next;
    giver_.taken = lsn;
  }
  bool Has() const { return map_.owner(kPartition) == "g2" && !map_.closed(kPartition); }
  // A key of the partition.
  static std::string Key(int i = 0) {
    for (int n = 0;; ++n) {
      std::string key = absl::StrCat("key", n);
      if (PartitionOf(key) == kPartition && i-- == 0) return key;
    }
  }
  ReplyStatus Take(std::string_view key, uint64_t version) {
    return receiver_->intake()->Take({.version = version, .key = key, .value = "value"});
  }

  static constexpr uint16_t kPartition = 5;
  FakeMap map_;
  GiverState giver_;
  OwnStream stream_;
  TestStore store_{16 << 20, 1000, /*index_grows=*/true};
  const GroupContext context_{.group = {.directory = &map_, .map_store = &map_, .name = "g2"},
                              .server = this,
                              .store = &*store_,
                              .clocks = {.wall = MachineWallTime, .boot = [this] { return now_; }}};
  bool commits_ = true;
  std::optional<PartitionReceiver> receiver_;
  BootTime now_ = BootTime::FromNs(kNsPerSecond);
  uint64_t clock_ms_ = 1'000;  // by which items expire
};

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_GROUP_MOVE_RECEIVER_FIXTURE_H_
