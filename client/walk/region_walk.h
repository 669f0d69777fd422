#ifndef GANNET_CLIENT_WALK_REGION_WALK_H_
#define GANNET_CLIENT_WALK_REGION_WALK_H_

#include <gannet/walker.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/session/client_session.h"
#include "client/walk/hot_places.h"
#include "client/walk/read_pace.h"
#include "common/base/client_clock.h"
#include "common/lookup/index_walk.h"
#include "common/lookup/walk_driver.h"
#include "common/protocol/message.h"

namespace gannet {

// What a walk asks the map of a cluster that it goes by. ClusterWalk is one.
class MapOfWalk {
 public:
  // Returns whether a key is shown.
  virtual bool Shows(std::string_view key) const = 0;
  // Called whenever the server gives leases only to those who have a later map. Nothing that is
  // READ counts until it has called SetMapRevision.
  virtual absl::Status OnOldMap() = 0;

 protected:
  ~MapOfWalk() = default;
};

// A walk over one server's region. It has a session of its own, posts the READs that a WalkDriver
// plans, waits for them, and keeps the pace. Blocks.
//
// One thread.
class RegionWalk final : public SessionOwner, private WalkReader {
 public:
  // Connects; waits at most for Options::connect_timeout. `clock` outlives it.
  static absl::StatusOr<std::unique_ptr<RegionWalk>> Connect(const std::string& endpoint,
                                                             const Options& options,
                                                             const WalkOptions& walk,
                                                             const ClientClock& clock);
  ~RegionWalk() override;

  // As Walker's.
  absl::Status Walk(absl::FunctionRef<bool(const WalkedItem&)> show);
  // As Walker's, but positions are hashes, of which at most the upper `bits_max` bits are set.
  absl::StatusOr<uint64_t> WalkPart(const WalkPartOptions& part,
                                    absl::FunctionRef<void(const WalkedItem&)> show, int bits_max);
  absl::StatusOr<std::vector<HotKey>> HotKeys(size_t count, absl::FunctionRef<bool()> goes_on);
  WalkProgress progress() const;
  absl::Status ReadOnce(uint32_t bytes);
  int64_t ServerClockAheadMs() const;

  // Until it is called, the walk shows all that the server has, whichever partitions are its
  // group's. `map` outlives the walk.
  void GoByMap(uint64_t revision, MapOfWalk* map) {
    map_ = map;
    SetMapRevision(revision);
  }
  void SetMapRevision(uint64_t revision) { session_->SetMapRevision(revision); }
  // Whether the server's group gives leases only to those who have a later map.
  bool map_is_old() const { return session_->heartbeats().map_is_old(); }
  // Asks for a piece of the map (partition_map.h). NotFound, Unimplemented: the server has none.
  absl::StatusOr<std::string> AskForMap(uint64_t position);
  bool in_group() const { return session_->ready() && session_->grant().history != 0; }
  bool ready() const { return session_->ready(); }
  std::string address() const { return session_->attempts().address().ToString(); }
  const std::string& endpoint() const { return session_->endpoint(); }
  // Lets time pass, while the session stays alive.
  absl::Status WaitFor(int64_t ns);

 private:
  // Memory of the server other than its region.
  struct Elsewhere {
    uint64_t address;
    uint32_t rkey;
  };
  struct Answer {
    ReplyStatus status;
    std::string value;
  };
  // With the item's offset and its commit word.
  using ShowAt = absl::FunctionRef<bool(const WalkedItem&, uint64_t offset, uint64_t commit)>;
  using TakePiece = absl::FunctionRef<void(uint64_t first, std::span<const std::byte> piece)>;

  // Buffers of the session that READs go to. One takes a run of buckets or a sealed item's block.
  static constexpr uint32_t kReadsMax = 32;
  static constexpr uint32_t kBufferBytes = WalkDriver::kPlaceBytes;
  static_assert(kBufferBytes >= kLargeHeadBytes);
  static constexpr int64_t kSleepNsMax = 5 * kNsPerMs;

  RegionWalk(int64_t deadline_ns, const WalkOptions& walk, const ClientClock& clock)
      : clock_(clock), deadline_ns_(deadline_ns), pace_(walk.reads_per_second) {}

  absl::Status WaitUntilReady(int64_t connect_timeout_ns);
  absl::Status TakeBuffers();
  // Continues walk_ until it is done, or between() returns false. That is called before each step
  // of the walk.
  absl::Status GoOn(ShowAt show, absl::FunctionRef<bool()> between);
  absl::Status Read(std::span<const PlacedRead> reads,
                    std::optional<Elsewhere> elsewhere = std::nullopt);
  absl::StatusOr<std::string> Ask(const RequestHeader& header);
  absl::StatusOr<HeatsReply> AskForHeats();
  // READs so many bytes from elsewhere, and hands them to `take` in pieces, in order.
  absl::Status ReadPieces(const Elsewhere& from, uint64_t bytes, absl::FunctionRef<bool()> goes_on,
                          TakePiece take);
  // Returns the words of all items that are leased; nullopt: the server leases none.
  absl::StatusOr<std::optional<std::unordered_set<uint64_t>>> ReadLeases();
  void Poll();
  void Sleep(int64_t ns_max);
  const std::byte* buffer(size_t i) const { return buffers_[i].data; }

  // WalkReader. A place is a buffer.
  bool BeginReads(std::span<const PlacedRead> reads) override;
  int64_t PostedNs() const override { return posted_ns_; }
  int64_t NowNs() const override { return clock_.MonotonicNs(); }
  const std::byte* CopyAt(uint32_t place) const override { return buffer(place); }
  Taken OnItem(size_t i, const IndexWalk::Item& item) override;
  bool WantIndex() override;

  // SessionOwner.
  void OnDoorbell(uint32_t) override {}
  void OnWorksDone(uint32_t, std::span<const InFlightWork::Work> works, bool) override {
    reading_ -=
        static_cast<uint32_t>(std::ranges::count_if(works, [](const InFlightWork::Work& it) {
          return it.kind() == InFlightWork::Kind::kRead;
        }));
  }
  void OnReply(RequestWindow::Entry*, const ReplyView& reply) override {
    answer_ = {static_cast<ReplyStatus>(reply.header.status), std::string(reply.value)};
  }
  absl::Status OnNamed(uint32_t, std::string_view) override { return absl::OkStatus(); }
  void OnReady(uint32_t, Comeback, std::span<const uint32_t>) override {}
  void OnLost(uint32_t) override { reading_ = 0; }

  const ClientClock& clock_;
  const int64_t deadline_ns_;  // the longest time without progress
  ReadPace pace_;
  std::unique_ptr<ClientSession> session_;
  std::vector<LentBuffer> buffers_;  // of the session
  MapOfWalk* map_ = nullptr;         // nullptr: it goes by no map
  std::optional<IndexWalk> walk_;
  std::optional<WalkDriver> driver_;  // of `walk_`
  const ShowAt* show_ = nullptr;      // of the walk that goes on
  absl::Status failed_;               // why the reader cannot go on
  std::optional<Answer> answer_;      // to the last request
  uint32_t reading_ = 0;              // READs that are not done
  int64_t posted_ns_ = 0;
  WalkProgress progress_;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_WALK_REGION_WALK_H_
