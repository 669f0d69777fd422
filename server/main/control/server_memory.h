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
#include <vector>

#include "absl/status/statusor.h"
#include "common/protocol/connect.h"
#include "common/rdma/device.h"
#include "common/rdma/memory.h"
#include "server/main/control/lock_memory.h"
#include "server/main/control/startup_answers.h"
#include "server/rpc/rail.h"

namespace gannet {

// The memory of a server that the NIC reaches: the region with index and heap, the lock words, and
// of a server that evicts, the heats of its items; of one that leases items, what clients READ of
// the leases. Allocated, touched, and registered with each device of its rails.
class ServerMemory {
 public:
  struct Options {
    std::vector<Device> devices;  // of each rail; the first is the lock rail's
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

  // Returns the rails' domains, in their order. Two rails of one device have the same.
  std::vector<ibv_pd*> pds() const;
  std::span<std::byte> region() const { return region_->bytes(); }
  std::span<uint64_t> lock_words() const;
  // Hands the lock words over. They are not this memory's any more.
  LockMemory TakeLocks() { return *std::exchange(locks_, std::nullopt); }
  // Empty: the server does not evict.
  std::span<std::byte> heats() const { return heats_ ? heats_->bytes() : std::span<std::byte>(); }

  // For the header and the words of leases on items. Empty: no item is leased.
  std::span<std::byte> item_leases() const;

  // Says in a grant where the region and the lock words are, and how locks are taken, for the lock
  // rail.
  void Describe(Grant* grant) const;
  // Says what the memory is called on the rail of this number, and how long items are leased.
  void DescribeOn(size_t rail, uint32_t lease_ms, Rail* described) const;

 private:
  // What is registered with one device.
  struct Registered {
    ibv_context* verbs = nullptr;
    // In the order of dependency.
    Handle<ibv_pd> pd;
    Handle<ibv_mr> region;
    Handle<ibv_mr> heats;        // nullptr: they could not be registered
    Handle<ibv_mr> item_leases;  // nullptr: there are none
  };

  explicit ServerMemory(Options options) : options_(std::move(options)) {}
  absl::Status Allocate(StartupAnswers* answers);
  absl::Status Register(const Device& device);
  absl::Status RegisterLocks();
  // Of the rail's device.
  const Registered& Of(size_t rail) const;
  HeatsReply DescribeHeats(const Registered& device) const;
  ItemLeasesReply DescribeItemLeases(const Registered& device, uint32_t lease_ms) const;

  const Options options_;
  LockMode lock_mode_ = LockMode::kNicCas;
  // In the order of dependency.
  std::optional<SharedMemory> region_;
  std::optional<SharedMemory> heats_;
  std::optional<SharedMemory> item_leases_;
  std::vector<Registered> devices_;
  std::optional<LockMemory> locks_;  // registered with the lock rail's device alone
};

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_CONTROL_SERVER_MEMORY_H_
