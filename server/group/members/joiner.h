#ifndef GANNET_SERVER_GROUP_MEMBERS_JOINER_H_
#define GANNET_SERVER_GROUP_MEMBERS_JOINER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/auth/auth_file.h"
#include "common/base/boot_time.h"
#include "common/base/clock.h"
#include "common/base/clocks.h"
#include "common/base/server_time.h"
#include "common/layout/item.h"
#include "common/layout/slot.h"
#include "common/lookup/index_walk.h"
#include "common/lookup/walk_driver.h"
#include "common/rdma/address.h"
#include "common/rdma/device.h"
#include "common/rdma/handle.h"
#include "common/rdma/idler.h"
#include "common/rdma/memory.h"
#include "server/group/members/join_filter.h"
#include "server/group/members/join_target.h"
#include "server/group/members/walk_session.h"
#include "server/log/changes/change.h"

namespace gannet {

// Copies items of a primary by one-sided READs: all, into the store of a backup that joins its
// group (docs/group.md, "Joining"), or those of some partitions, for another group
// (docs/partitions.md). The primary's CPU only answers heartbeats.
//
//   open the stream, which begins behind record S
//   auto joiner = Joiner::Begin(options);
//   for each record that is applied to the store, from S on: joiner->OnApplied(change)
//   once the primary has published all up to S: joiner->BeginWalk()
//   until kDone or kFailed: joiner->Poll(now)
//
// After kDone the target has every item that it wants, that the primary had at S, and that did not
// change since; what changed since comes by the stream. So the target has what the primary has once
// the stream was applied up to where it was when Poll returned kDone. After kFailed it is of no
// use. Either way, destroy the joiner soon: its session sends no more heartbeats.
//
// 1. An item is inserted only if the stream brought nothing for its key: the key has no item, and
//    the filter does not know it. An expired item is not inserted.
// 2. The item of a slot is believed by its own proof; a long value if its commit word is the same
//    after it was READ.
// 3. The caller's thread applies the stream, calls OnApplied and Poll. So nothing is applied
//    between the look at the filter and the insertion.
//
// One Poll inserts at most kReadsMax items, and READs at most kValueBytesPerPoll of long values, so
// that the caller gets back to its beacons. A value of 64 MiB is inserted at once, though.
//
// Owner thread only.
class Joiner : private WalkReader {
 public:
  static constexpr size_t kFilterHashesMax = 1 << 24;  // takes up to 300 MB
  static constexpr int64_t kStuckNsMax = 30 * kNsPerSecond;

  struct Options {
    Device device;
    ibv_pd* pd = nullptr;  // of the device, and outlives the joiner; nullptr: it makes its own
    SocketAddress primary;
    // Other rails, over which the walk goes on if this one is lost. Then the pd is its own.
    std::vector<WalkSession::Way> other_ways = {};
    AuthFile* keys = nullptr;      // outlives the joiner; nullptr: no key
    JoinTarget* target = nullptr;  // outlives the joiner
    const ServerTimeSource* server_time = nullptr;
    Clocks clocks;  // the wall clock is the session's; Poll's argument is read from the other one
    BootTime now;
    Idler* idle = nullptr;  // of the session
    size_t filter_hashes_max = kFilterHashesMax;
    // Whether the target may lose what the stream brought, as a store does that evicts.
    bool target_evicts = false;
    // If the walk does not advance for so long, it fails.
    int64_t stuck_ns_max = kStuckNsMax;
  };
  enum class Step : uint8_t { kGoesOn, kDone, kFailed };

  // The errors of WalkSession::Begin and RegisteredBuffer::Create.
  static absl::StatusOr<std::unique_ptr<Joiner>> Begin(Options options);

  // Takes note that the stream brought this, and that it was applied.
  void OnApplied(const Change& change);
  // REQUIRES: the primary has published all that is not in the stream.
  void BeginWalk() { may_walk_ = true; }

  Step Poll(BootTime now);
  // Why it failed. ResourceExhausted: the store has no room, or too many keys were deleted
  // meanwhile. Aborted: the primary's index changes too fast. And WalkSession::status.
  const absl::Status& status() const { return status_; }

  // To sleep: Poll; PrepareToSleep; if that returns true, sleep until one of the descriptors of
  // AddFds is readable or until deadline().
  bool PrepareToSleep(BootTime now);
  void AddFds(std::vector<int>* fds) const;
  BootTime deadline() const { return deadline_; }

  // What was inserted: items, and the bytes of their keys and values.
  uint64_t items() const { return items_; }
  uint64_t bytes() const { return bytes_; }
  // The share of the primary's homes that were walked through.
  double done() const { return walk_ ? walk_->done() : 0; }
  uint64_t retries() const { return walk_ ? walk_->retries() : 0; }
  // Above all versions that were seen, of items and of records.
  uint64_t version_next() const { return version_max_ + 1; }
  const WalkSession& session() const { return *session_; }

 private:
  static constexpr uint32_t kBuffers = WalkSession::kReadsMax;
  static constexpr uint32_t kBufferBytes = WalkDriver::kPlaceBytes;
  static constexpr uint64_t kValuesBytesMin = 4 << 20;  // of the buffer for long values
  static constexpr uint32_t kPieceBytes = 1 << 20;      // of a long value, in one READ
  static constexpr uint64_t kValueBytesPerPoll = 4 << 20;
  static constexpr int64_t kTryAgainNs = kNsPerMs;

  // A long item whose value is to be READ.
  struct Long {
    uint32_t item;
    ItemHeader header;
    std::string key;
    uint64_t at;  // of its value in the session's memory
  };
  // What is READ of the run's long values.
  enum class LongReads : uint8_t { kNothing, kValues, kCommits };

  explicit Joiner(Options options)
      : options_(std::move(options)), filter_(options_.filter_hashes_max, options_.target_evicts) {}
  static constexpr WalkSession::Memory kItems = WalkSession::Memory::kItems;
  static constexpr WalkSession::Memory kValues = WalkSession::Memory::kValues;
  const std::byte* buffer(uint32_t i) const {
    return session_->data(kItems) + uint64_t{i} * kBufferBytes;
  }
  Step Fail(absl::Status status);
  void WalkOn(BootTime now);
  void CheckAdvance(BootTime now);

  // WalkReader. A place is a buffer.
  bool BeginReads(std::span<const PlacedRead> reads) override;
  int64_t PostedNs() const override { return posted_at_.ns(); }
  int64_t NowNs() const override { return options_.clocks.boot.Now().ns(); }
  const std::byte* CopyAt(uint32_t place) const override { return buffer(place); }
  Taken OnItem(size_t i, const IndexWalk::Item& item) override;
  bool FinishItems() override;
  void OnRunBegins() override;
  bool WantIndex() override;

  // Begins to READ as many of the run's next long values as there is room for. Returns false if
  // there are none, or if there is no memory.
  bool BeginBatch();
  void ReadValues();
  // Returns false if an item cannot be inserted now. Then it goes on from there when called again.
  bool TakeValues();
  void OnLongHead(uint32_t item, const IndexWalk::Item& head);
  bool Insert(const ItemHeader& header, std::string_view key, std::string_view value);
  bool IsExpired(const ItemHeader& header) const { return run_began_.IsPast(header.expiry()); }
  absl::Status MakeRoomForValue(uint64_t bytes);

  const Options options_;
  JoinFilter filter_;
  Step step_ = Step::kGoesOn;
  absl::Status status_;
  bool may_walk_ = false;
  BootTime deadline_;
  ServerTime run_began_;
  uint64_t run_generation_ = 0;  // of the index that lookups began at when the run began
  BootTime look_again_;          // for an index that is wanted
  bool waits_for_slot_ = false;

  std::unique_ptr<WalkSession> session_;
  std::optional<IndexWalk> walk_;
  std::optional<WalkDriver> driver_;  // of `walk_`

  BootTime now_;        // of this Poll
  BootTime posted_at_;  // READs of the walk
  LongReads long_reads_ = LongReads::kNothing;
  std::vector<Long> longs_;  // of the run
  // The values of longs_ from batch_begin_ to batch_end_ are READ together.
  size_t batch_begin_ = 0;
  size_t batch_end_ = 0;
  size_t next_long_ = 0;     // of which a piece is to be READ
  uint64_t next_piece_ = 0;  // where in its value that begins
  size_t next_taken_ = 0;    // of the batch, to be inserted

  uint64_t items_ = 0;
  uint64_t bytes_ = 0;
  uint64_t version_max_ = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MEMBERS_JOINER_H_
