#ifndef GANNET_SERVER_MAIN_CONTROL_SERVER_MEMORY_H_
#define GANNET_SERVER_MAIN_CONTROL_SERVER_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "common/protocol/connect.h"
#include "common/protocol/heats.h"
#include "common/protocol/item_leases_reply.h"
#include "common/rdma/device.h"
#include "common/rdma/memory.h"
#include "server/main/control/startup_answers.h"

namespace gannet {

// The memory of a server that the NIC reaches: the region with index and heap, the lock words, and
// of a server that evicts, the heats of its items; of one that leases items, what clients READ of
// the leases. Allocated, touched and registered.
class ServerMemory {
 public:
  struct Options {
    Device device;
    uint64_t region_bytes = 0;
    uint64_t lock_words = 0;
    bool heats = false;
    uint32_t leased_items = 0;  // 0: none is leased
    HugePages huge_pages = HugePages::kAuto;
    std::string file;  // that is the region; empty: none
    std::optional<LockMode> lock_mode;
    std::function<int(std::span<std::byte>)> touch;  // as that of Server::Options
  };
  // Logs what was touched and registered, and how long it took. Tells `answers` how much is ready;
  // null: nobody asks. ResourceExhausted: there is no such memory, or it may not be locked.
  static absl::StatusOr<std::unique_ptr<ServerMemory>> Create(const Options& options,
                                                              StartupAnswers* answers);

  ibv_pd* pd() const { return pd_.get(); }
  std::span<std::byte> region() const { return region_->bytes(); }
  uint32_t region_lkey() const { return region_mr_->lkey; }
  std::span<uint64_t> lock_words() const;
  // Empty: the server does not evict.
  std::span<std::byte> heats() const { return heats_ ? heats_->bytes() : std::span<std::byte>(); }

  // For the header and the words of leases on items. Empty: no item is leased.
  std::span<std::byte> item_leases() const;

  // Says in a grant where the region and the lock words are, and how locks are taken.
  void Describe(Grant* grant) const;
  // Returns where the heats are. All 0: there are none that clients can READ.
  HeatsReply DescribeHeats() const;
  // Returns where header and words of leases on items are. All 0: no item is leased.
  ItemLeasesReply DescribeItemLeases(uint32_t lease_ms) const;

 private:
  explicit ServerMemory(Options options) : options_(std::move(options)) {}
  absl::Status CreateRegionAndLocks(StartupAnswers* answers);
  absl::Status CreateHeats();
  absl::Status CreateItemLeases();

  const Options options_;
  LockMode lock_mode_ = LockMode::kNicCas;
  // In the order of dependency.
  std::optional<SharedMemory> region_;
  std::optional<SharedMemory> locks_;
  std::optional<SharedMemory> heats_;
  std::optional<SharedMemory> item_leases_;
  Handle<ibv_pd> pd_;
  Handle<ibv_mr> region_mr_;
  Handle<ibv_mr> locks_mr_;
  Handle<ibv_mr> heats_mr_;  // nullptr: they could not be registered
  Handle<ibv_mr> item_leases_mr_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_CONTROL_SERVER_MEMORY_H_
