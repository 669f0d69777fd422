#ifndef GANNET_SERVER_GROUP_MOVE_PARTITION_INTAKE_H_
#define GANNET_SERVER_GROUP_MOVE_PARTITION_INTAKE_H_

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <string_view>

#include "common/base/check.h"
#include "common/base/server_time.h"
#include "common/protocol/partition_map.h"
#include "server/group/members/group_context.h"
#include "server/group/members/join_target.h"
#include "server/group/move/clock_difference.h"
#include "server/log/changes/change.h"
#include "server/memory/store/store.h"
#include "server/writes/writes.h"

namespace gannet {

// Brings what a giver has of some partitions into a receiver's group: as writes, so its backups
// have it, too. It never has more than a bounded number of bytes that are not published, so that
// the writes of clients find room in the group's stream.
//
// What it takes expires by the giver's clock. It translates that to its own group's.
//
// One thread.
class PartitionIntake final : public JoinTarget, public ServerTimeSource {
 public:
  using Partitions = std::bitset<kPartitions>;
  static constexpr size_t kWaitingMax = 4096;
  static constexpr uint64_t kWaitingBytesMax = 1 << 20;  // or one value that is longer

  // Both outlive it.
  PartitionIntake(const GroupContext& context, Writes* writes)
      : context_(context), writes_(writes) {}

  // What it takes from now on. The giver's clock counts as equal until UseClock.
  void Begin(const Partitions& partitions);
  // Says how the giver's clock differs. REQUIRES: nothing was taken since Begin.
  void UseClock(const ClockDifference& clock) {
    GANNET_CHECK(items_ == 0 && waiting_.empty(), "what was taken expires by another clock");
    clock_ = clock;
  }
  const ClockDifference& clock() const { return clock_; }
  // Returns the giver's clock. Perhaps it shows less.
  ServerTime Time() const override { return clock_.ToGivers(context_.server->Time()); }
  // It takes no others than these any more.
  void Keep(const Partitions& partitions) { partitions_ &= partitions; }

  // A change of the giver's stream, of a partition that it takes. kTryAgain: later. kHeapFull: the
  // memory has no room.
  ReplyStatus Take(const Change& change);
  // Records that versions up to this one may have been given. kTryAgain: later.
  ReplyStatus TakeVersion(uint64_t version);
  // Sees what was published since.
  void Settle();
  // Whether all that was taken is published, so that it is committed. Call Settle before.
  bool settled() const { return waiting_.empty(); }
  // The same of what had been taken when last_ticket() returned this.
  bool settled(uint64_t ticket) const {
    return waiting_.empty() || waiting_.front().ticket > ticket;
  }
  uint64_t last_ticket() const { return waiting_.empty() ? 0 : waiting_.back().ticket; }
  // Whether a write was undone that had been taken: then something is missing.
  bool failed() const { return failed_; }
  // Whether nothing is taken now.
  bool full() const {
    return waiting_.size() >= kWaitingMax || waiting_bytes_ >= kWaitingBytesMax ||
           writes_->crowded();
  }
  bool evicts() const { return context_.store->evicts(); }

  // JoinTarget, for what is found by the walk, by Time().
  bool Wants(std::string_view key) const override { return partitions_[PartitionOf(key)]; }
  KeyHash HashOf(std::string_view key) const override { return context_.store->HashOf(key); }
  bool Has(std::string_view key, ServerTime giver) override {
    return context_.store->Get(key, {}, clock_.ToOwn(giver)).status != ReplyStatus::kNotFound;
  }
  ReplyStatus Insert(const Change& put, ServerTime giver) override;

  // Since Begin: changes that were brought, and the bytes of their keys and values.
  uint64_t items() const { return items_; }
  uint64_t bytes() const { return bytes_; }

 private:
  struct Waiting {
    uint64_t ticket;
    uint64_t bytes;
  };
  // Returns the change with an expiry by the own clock.
  Change Translated(const Change& change) const;
  ReplyStatus Note(const Writes::Decided& decided, uint64_t bytes);

  const GroupContext& context_;  // of the receiver's group
  Writes* const writes_;
  Partitions partitions_;
  ClockDifference clock_;
  std::deque<Waiting> waiting_;
  uint64_t waiting_bytes_ = 0;
  bool failed_ = false;
  uint64_t items_ = 0;
  uint64_t bytes_ = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MOVE_PARTITION_INTAKE_H_
