#ifndef GANNET_TESTS_SERVER_GROUP_MOVE_FAKE_GIVER_H_
#define GANNET_TESTS_SERVER_GROUP_MOVE_FAKE_GIVER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/server_time.h"
#include "common/cluster/map_changes.h"
#include "server/group/move/move_source.h"
#include "server/group/replica/group_directory.h"
#include "server/group/replica/map_store.h"
#include "tests/server/memory/store/at.h"

namespace gannet {

// The register, as a member sees it at once. Two groups: g1 has all partitions, and g2 none.
class FakeMap : public MapStore, public GroupDirectory {
 public:
  // What becomes of the next transaction.
  enum class Fate : uint8_t { kAnswered, kExecutedAndUnknown, kLostAndUnknown };

  FakeMap() {
    map_.config.groups = {"g1", "g2"};
    map_.config.partitions.assign(kPartitions, 0);
    map_.mod_revision = 1;
  }

  void Txn(const MapTxn& txn) override {
    ++txns_;
    sent_ = txn;
    const Fate fate = std::exchange(fate_, Fate::kAnswered);
    const bool won = fate != Fate::kLostAndUnknown && Execute(txn);
    result_ = fate != Fate::kAnswered ? Result::kUnknown : (won ? Result::kWon : Result::kLost);
  }
  std::optional<Result> Poll() override { return std::exchange(result_, std::nullopt); }
  const SeenMap* Seen() const override { return &map_; }

  GroupTerms terms() const override { return {}; }
  void Announce(const GroupMember&, std::string_view, uint64_t) override {}
  std::optional<std::string> AddressOf(const GroupMember&) const override { return std::nullopt; }
  std::optional<std::string> WantedSuccessor() const override { return std::nullopt; }
  void ForgetWantedSuccessor() override {}
  const SeenMap* Config() const override { return &map_; }
  const PartitionMoveWishes* Moves() const override { return &wishes_; }
  std::optional<std::string> PrimaryOf(std::string_view) const override { return "giver:1"; }

  // As kvcli does: a stop writes the map, too.
  void Wish(uint16_t partition, std::string to = "g2", bool stop = false) {
    if (stop) Change(map_.config);
    wishes_[partition] = {.to = std::move(to), .stop = stop, .mod_revision = ++revision_};
  }
  void Forget(uint16_t partition) { wishes_.erase(partition); }
  void Change(ClusterConfig config) {
    map_.config = std::move(config);
    map_.mod_revision = ++revision_;
  }
  bool closed(uint16_t partition) const { return IsClosed(map_.config, partition); }
  std::string owner(uint16_t partition) const {
    return map_.config.groups[map_.config.partitions[partition]];
  }

  SeenMap map_;
  PartitionMoveWishes wishes_;
  uint64_t group_ = 7;  // the register's revision
  Fate fate_ = Fate::kAnswered;
  int txns_ = 0;
  std::optional<MapTxn> sent_;  // the last one

 private:
  bool Execute(const MapTxn& txn) {
    if (txn.map_revision != map_.mod_revision || (txn.group && *txn.group != group_)) return false;
    for (const auto& [partition, revision] : txn.ended) {
      const auto wish = wishes_.find(partition);
      if (wish == wishes_.end() || wish->second.mod_revision != revision) return false;
    }
    for (const auto& [partition, revision] : txn.ended) wishes_.erase(partition);
    Change(txn.wanted);
    return true;
  }

  int64_t revision_ = 100;
  std::optional<Result> result_;
};

// What a test sets is what the giver says.
struct GiverState {
  absl::Status status;
  bool copied = false;
  double walked = 0;
  uint64_t behind = 0;
  uint64_t taken = 0;
  std::optional<MoveEnded> ended;
  ServerTime clock_behind_end = At(1);
  std::optional<uint64_t> stop_at;
  int told_closing = 0;
  int made = 0;
  int alive = 0;
};

class FakeSource : public MoveSource {
 public:
  static constexpr int64_t kLeaseNs = 600'000'000;

  explicit FakeSource(GiverState* giver) : giver_(giver) {
    ++giver_->made;
    ++giver_->alive;
  }
  ~FakeSource() override { --giver_->alive; }

  void Poll(BootTime now) override { next_at_ = now; }
  const absl::Status& status() const override { return giver_->status; }
  bool copied() const override { return giver_->copied; }
  double walked() const override { return giver_->copied ? 1 : giver_->walked; }
  uint64_t behind() const override { return giver_->behind; }
  bool HasUpTo(uint64_t lsn) const override { return giver_->taken >= lsn; }
  void TellClosing() override { ++giver_->told_closing; }
  int64_t lease_ns() const override { return kLeaseNs; }
  void StopAt(uint64_t lsn) override { giver_->stop_at = lsn; }
  const std::optional<MoveEnded>& ended() const override { return giver_->ended; }
  ServerTime clock_behind_end() const override { return giver_->clock_behind_end; }
  void BeginEnd() override { ending_ = true; }
  bool over() const override { return ending_; }
  void Arm(BootTime) override {}
  void Woken() override {}
  void AddFds(std::vector<int>*) const override {}
  BootTime next_at() const override { return next_at_; }

 private:
  GiverState* const giver_;
  bool ending_ = false;
  BootTime next_at_;
};

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_GROUP_MOVE_FAKE_GIVER_H_
