#ifndef GANNET_SERVER_MAIN_CONTROL_SERVER_H_
#define GANNET_SERVER_MAIN_CONTROL_SERVER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/boot_time.h"
#include "common/base/clocks.h"
#include "common/base/random_source.h"
#include "common/base/server_time.h"
#include "common/base/wake_up.h"
#include "common/rdma/idler.h"
#include "server/main/control/admission_control.h"
#include "server/main/control/item_lease_keeper.h"
#include "server/main/control/lock_rail.h"
#include "server/main/control/rail_watch.h"
#include "server/main/control/server_disk.h"
#include "server/main/control/server_group.h"
#include "server/main/control/server_memory.h"
#include "server/main/control/server_tier.h"
#include "server/main/control/server_workers.h"
#include "server/main/control/startup_answers.h"
#include "server/main/control/store_tidier.h"

namespace gannet {

// A whole server. It makes its parts, in order, and polls those of the connection thread:
//
//   ServerMemory      the memory that the NIC reaches
//   ServerDisk        the directory where the items are kept
//   ServerTier        the disk behind the memory, if there is one
//   ServerWorkers     the workers, and what they share
//   ServerGroup       its place in a group, if it has one
//   RailWatch         the ports and devices of several rails
//   AdmissionControl  who may connect, and to which worker
//   StoreTidier       the store's idle work
//   ItemLeaseKeeper   the leases on its most popular items, if it leases any
//   LockRail          which rail serves locks, if there are several
//
// It starts no thread but a tier's: the workers are to be polled too, by one thread or by many
// (ServerThreads).
//
// Stopping: BeginStop; Poll and the workers go on until each worker is closed(); destroy.
//
// Thread safety: Poll, BeginStop and destruction belong to one thread, each worker to one, which
// may be the same. Stats from any thread.
class Server final : private ServerControl {
 public:
  struct Options {
    SocketAddress listen;
    Device device;
    // Further addresses, each of which is a rail on the device that has it. With any, `listen` is
    // of `device`, too. At most kRailsMax - 1.
    std::vector<SocketAddress> more_rails;
    // A file of keys (AuthFile), one of which clients must have; empty: everybody may connect. It
    // is read again when it changes.
    std::string auth_file;
    // The machine's, which all parts are handed. By its wall clock connection requests must be
    // fresh, because the server's clock does not see that somebody set the machine's. Leases, and
    // the member, go by its CLOCK_BOOTTIME.
    Clocks clocks;
    std::string name;  // the name for clients (IsServerName); empty: they take its address
    uint64_t memory_bytes = 1ull << 30;  // of the region: index and heap
    uint64_t index_slots = 0;            // at the start; 0 = by memory
    bool index_grows = true;
    bool evict = false;  // whether to evict when the memory is full, instead of refusing writes
    // Leases of popular items, of which clients may keep copies so long (docs/item-leases.md); 0:
    // none. At most kItemLeaseMsMax.
    uint32_t item_lease_ms = 0;
    uint32_t leased_items = 1024;  // at most, at once
    // No client is taken for so long: those of a process before may still answer from such copies.
    // Nor by the primary of a group that neither took over nor was handed over to.
    uint32_t former_leases_ms = 0;
    DiskOptions disk;
    TierOptions tier;  // only with `evict`, for a server that is alone and without disk.data
    std::optional<GroupOptions> group;  // nullopt: the server is alone
    uint64_t lock_words = 65536;
    uint32_t workers = 1;
    HugePages huge_pages = HugePages::kAuto;
    std::string memory_file;  // a file that is the region, and outlives the process; empty: none
    int64_t session_grace_ns = 30'000'000'000;
    // A peer that is silent for this long is dead; kSilenceMsMin to 65,535.
    uint32_t silence_ms = kSilenceMsDefault;
    uint32_t connections_max = 2048;     // of each worker
    uint16_t credits = kCreditsDefault;  // of each session: the most unanswered requests
    uint32_t lock_requests_max = 1024;   // of each worker: the most waiting lock requests by RPC
    uint32_t receives = 1024;  // of each worker: the most requests that it has not looked at yet
    uint32_t reply_buffers = 512;  // of each worker: the most replies with values on their way
    // Overrides the mode that suits the device. kNicCas and kRpcLoopback need its atomics.
    std::optional<LockMode> lock_mode;
    // If true, Create starts a thread that refuses those who connect before it returns, with the
    // reason. Otherwise they wait until Poll is called.
    bool answer_while_starting = false;
    // Whether consumers hear of sessions, too: for a group's stream.
    bool streams_sessions = false;
    // Requests that take the server this long are remembered (server/rpc/slow_log.h); 0 = none.
    int64_t slow_ns = 0;
    // For tests: replaces asking the kernel for a piece of the region's pages; see PrefaultHooks.
    std::function<int(std::span<std::byte>)> touch;
    // The first version of the items that this run writes; 0 = by the wall clock, as
    // common/layout/version.h says.
    uint64_t first_version = 0;
    // For incarnation, hash seed and session tokens. Outlives the server; null: the kernel's.
    RandomSource* random = nullptr;
    // The server's place in its group, which outlives the server; null: it is in none.
    const GroupStanding* standing = nullptr;
    // While Create or the destructor wait for the device. Outlives the server; null: they sleep.
    Idler* idle = nullptr;
  };

  // Logs what was touched and registered, and how long it took. The errors' texts say what to do.
  // InvalidArgument: the name is not valid, or there is too little memory for the index.
  // ResourceExhausted: there is no such memory, or it may not be locked. FailedPrecondition: the
  // port is in use, a device does not work or has not the address, or the clock is not set. And the
  // errors of AuthFile::Open.
  static absl::StatusOr<std::unique_ptr<Server>> Create(const Options& options);
  // REQUIRES: every worker is closed(), or was never polled.
  ~Server();

  // Returns the address, with the port that was chosen.
  SocketAddress address() const { return listener_->address(); }
  const Device& device() const { return options_.device; }
  const Clocks& clocks() const { return options_.clocks; }

  // Handles the connection manager's events, and does a step of idle work. Returns true if there
  // was an event.
  bool Poll(const Now& now);
  // What to sleep on, and when Poll must be called at the latest.
  int fd() const { return listener_->fd(); }
  BootTime deadline() const {
    const BootTime leases_due = lease_keeper_ ? lease_keeper_->due() : BootTime::Never();
    const BootTime locks_due = lock_rail_ ? lock_rail_->due() : BootTime::Never();
    return std::min({tidier_->due(), next_look_, admission_->due(), leases_due, locks_due});
  }
  // Whether clients may still answer from copies of items.
  bool HasLeases(ServerTime now) const { return leases_ && now < leases_->end(); }
  // Sleep on this as well: it is readable when a write wants the store to be tidied.
  int tidy_fd() const { return tidy_wanted_->fd(); }

  // Makes Poll read the auth file again within a second, even if it seems unchanged. From any
  // thread, a signal handler included.
  void RequestReload() { admission_->RequestReload(); }

  // Refuses new connections from now on and tells the workers to close theirs.
  void BeginStop();
  // Not OK: the devices were lost, and nothing more can be served.
  const absl::Status& status() const { return rail_watch_->status(); }

  // Returns nullptr if the items are in memory only. One thread polls it, from when the server
  // serves until every worker is closed().
  DiskLog* disk() const { return disk_->log(); }
  const ServerTier* tier() const { return tier_.get(); }  // nullptr: there is none
  // Returns nullptr if the server is alone. One thread polls it, from when the server serves.
  Member* member() const { return group_ ? group_->member() : nullptr; }
  // Whether clients are taken: always, if the server is alone.
  bool serves() const { return admission_->serves(); }
  // Where the clock by which items expire has to begin; ServerTime(): where the machine's is. An
  // earlier run has seen what is later.
  ServerTime clock_begins_at() const { return clock_begins_at_; }
  // The clock by which items expire, which follows the primary's. Call it before the server serves.
  void UseClock(ServerClock* clock) {
    if (group_) group_->UseClock(clock);
  }
  // How many requests to connect wait for a primary.
  size_t waiting() const { return admission_->waiting(); }
  // Asked when a write waits for disk() or for member() to be polled.
  WakeUp* sync_wanted() const { return sync_wanted_.get(); }
  // The same of a member's disk, whose thread is another one.
  WakeUp* disk_sync_wanted() const { return disk_sync_wanted_.get(); }
  // For tools that fill the store without a network.
  Store& store() { return *store_; }
  Writes& writes() { return *writes_; }
  // Tells somebody, who outlives the server, of each change. kRequired: writes wait until it has
  // them. Call it before the server serves.
  void AddConsumer(ChangeConsumer* consumer, ChangeStream::Need need = ChangeStream::Need::kHears);
  const std::vector<std::unique_ptr<Worker>>& workers() const { return workers_->all(); }
  // The workers with what they share. Who runs them wakes them.
  const ServerWorkers& all_workers() const { return *workers_; }
  StatsReply Stats(const Now& now) const override;
  // For observers. What it points to is thread safe.
  const ServerContext& context() const { return workers_->context(); }

 private:
  explicit Server(const Options& options);

  void AskForSync() override;
  uint64_t Storage(bool snapshot, StorageReply* reply) override;

  absl::Status CreateAll(Authenticator authenticator);
  absl::Status CreateMemory();
  absl::Status CreateStore();
  void FindClock();
  absl::Status JoinStream(const ServerDisk::Run& run);
  absl::Status CreateWorkers();
  absl::Status StartTier();
  absl::Status CreateMember();
  std::unique_ptr<ServerContext> MakeContext();
  Grant GrantTemplate() const;

  // Immutable after Create, in the order of dependency.
  const Options options_;
  KernelRandom kernel_random_;
  RandomSource& random_;
  const BootTime started_at_;
  uint64_t incarnation_;
  uint64_t hash_seed_;
  uint64_t first_version_;
  ServerTime clock_begins_at_;
  std::vector<Device> devices_;  // of each rail
  std::unique_ptr<ServerMemory> memory_;
  std::unique_ptr<WakeUp> tidy_wanted_;
  std::unique_ptr<WakeUp> sync_wanted_;
  std::unique_ptr<WakeUp> disk_sync_wanted_;
  std::unique_ptr<WakeUp> tier_wanted_;  // nullptr: there is no tier
  ChangeStream changes_;
  std::optional<ItemLeases> leases_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Writes> writes_;
  std::unique_ptr<ServerDisk> disk_;
  std::unique_ptr<ServerTier> tier_;  // nullptr: there is none
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<StartupAnswers> startup_answers_;  // while Create works
  std::unique_ptr<ServerWorkers> workers_;
  std::optional<ServerGroup> group_;

  // Owner thread only.
  std::optional<RailWatch> rail_watch_;
  std::optional<AdmissionControl> admission_;
  std::optional<StoreTidier> tidier_;
  std::optional<ItemLeaseKeeper> lease_keeper_;
  std::optional<LockRail> lock_rail_;  // nullopt: there is one rail, or the CPU swaps lock words
  BootTime next_look_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_CONTROL_SERVER_H_
