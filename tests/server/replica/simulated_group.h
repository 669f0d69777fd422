#ifndef GANNET_TESTS_SERVER_REPLICA_SIMULATED_GROUP_H_
#define GANNET_TESTS_SERVER_REPLICA_SIMULATED_GROUP_H_

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "server/replica/commit.h"
#include "server/replica/primary_lease.h"
#include "server/replica/primary_watch.h"
#include "server/stream/ring_reader.h"
#include "server/stream/ring_writer.h"

namespace gannet {

// A primary and two backups until the first takeover, in virtual time, from a seed. Their rings,
// their lease, their commits and their watches are the real ones. Beacons, answers and WRITEs are
// late or lost; parties stop and go on, the primary also between polling completions and counting
// them; clocks run at different rates. The register takes a transaction if its revision is still
// the newest.
//
// A WRITE that was posted before the fence may complete at the primary without having landed, as
// that of a primary which was stopped in the middle of a copy. One that was posted later never
// completes.
class SimulatedGroup {
 public:
  static constexpr int kBackups = 2;

  explicit SimulatedGroup(uint64_t seed);
  // Runs for ten seconds, or for three after a takeover. Returns what went wrong, or "" if nothing
  // did.
  std::string Run();

  // What happened.
  struct Tallies {
    int takeovers = 0;
    int removals = 0;
    int late_copies = 0;  // that completed at the primary after the fence
    uint64_t committed = 0;
    uint64_t applied_records = 0;
    friend bool operator==(const Tallies&, const Tallies&) = default;
  };
  const Tallies& tallies() const { return tallies_; }

 private:
  struct Backup {
    std::vector<uint64_t> ring;
    std::optional<RingReader> reader;
    std::optional<PrimaryWatch> watch;
    std::optional<RingTail> tail;  // once it has fenced
    RingWriter::LinkId link = 0;
    int64_t lands_at = 0;    // the newest WRITE
    uint64_t committed = 0;  // as beacons and records said
    uint64_t next_record = 0;
    bool linked = true;
    bool in_sync = true;
    bool sent_takeover = false;
    int64_t stopped_until = 0;
  };

  uint64_t Below(uint64_t n) { return random_() % n; }
  bool OneIn(uint64_t n) { return Below(n) == 0; }
  int64_t Delay();
  void At(int64_t time, std::function<void()> what) { events_.emplace(time, std::move(what)); }
  // Clocks: of the primary, and of a backup.
  int64_t Clock(int who) const { return 1'000'000'000LL * who + now_ + now_ / 512 * rates_[who]; }
  static uint64_t Name(int i) { return 100 + static_cast<uint64_t>(i); }

  void PrimaryTurn();
  void SendBeacons();
  void Append();
  void Ship();
  void Remove();
  void BackupTurn(int i);
  void Apply(Backup* backup);
  void TakeOver(int i);
  void Check();
  void Wrong(const std::string& what) {
    if (wrong_.empty()) wrong_ = what;
  }

  std::mt19937_64 random_;
  const GroupTimes times_{.lease_ns = 600'000'000};
  int64_t now_ = 0;
  std::multimap<int64_t, std::function<void()>> events_;
  std::array<int64_t, kBackups + 1> rates_{};

  // The primary.
  std::vector<uint64_t> ring_;
  RingWriter writer_;
  PrimaryLease lease_;
  Commit commit_;
  uint64_t committed_ = 0;
  uint64_t appended_ = 0;  // records
  std::vector<std::function<void()>> inbox_;
  bool counts_next_ = false;  // it has polled, and was stopped before it counted
  bool ended_ = false;
  bool removing_ = false;
  uint64_t known_revision_ = 0;
  int64_t stopped_until_ = 0;
  int64_t beacon_at_ = 0;

  std::array<Backup, kBackups> backups_;
  uint64_t revision_ = 0;
  int successor_ = -1;
  int64_t taken_over_at_ = 0;
  std::array<bool, kBackups> cut_{};  // its network is away

  std::string wrong_;
  Tallies tallies_;
};

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_REPLICA_SIMULATED_GROUP_H_
