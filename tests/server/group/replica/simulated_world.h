#ifndef GANNET_TESTS_SERVER_GROUP_REPLICA_SIMULATED_WORLD_H_
#define GANNET_TESTS_SERVER_GROUP_REPLICA_SIMULATED_WORLD_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "server/group/replica/group_times.h"
#include "server/log/stream/ring_reader.h"
#include "server/log/stream/ring_writer.h"
#include "tests/server/group/replica/simulated_config.h"
#include "tests/server/group/replica/simulated_time.h"

namespace gannet {

class SimulatedMember;

// The stream's connection between a primary and a backup.
struct SimulatedLink {
  struct Flight {
    int64_t lands;
    RingWriter::Shipment shipment;
  };
  SimulatedMember* primary = nullptr;
  SimulatedMember* backup = nullptr;
  std::vector<uint64_t> ring;  // the backup's
  bool fenced = false;         // by the backup
  bool closed = false;         // by the primary
  bool broken = false;         // as the backup knows
  bool welcomed = false;
  bool counted = false;  // its backup has been
  RingWriter::LinkId id = 0;
  std::deque<Flight> flights;  // in order, as those of one queue pair are
  int64_t cut_since = -1;
};

// What the members of a simulated group share: time, network, register, clients and what is to
// hold.
struct SimulatedWorld {
  static constexpr size_t kNodes = 3;
  static constexpr size_t kRingBytes = 2 * kRingRecordBytesMax;

  explicit SimulatedWorld(uint64_t seed);
  ~SimulatedWorld();

  static RingRecord RecordOf(const std::string& key) {
    return RingRecord::Of({.version = 1, .key = key, .value = "value"});
  }
  static std::string KeyOf(uint64_t write) { return std::to_string(10'000'000 + write); }
  // All records are as long as each other, so an LSN is that times a number.
  static uint64_t NumberOf(uint64_t lsn) {
    static const uint64_t bytes = RecordOf(KeyOf(0)).bytes();
    return lsn / bytes;
  }
  static std::span<std::byte> BytesOf(std::vector<uint64_t>* words) {
    return std::as_writable_bytes(std::span(*words));
  }

  void Wrong(const std::string& what) {
    if (wrong.empty()) wrong = what;
  }
  // The record at `number` is committed: it is the same for everybody, and each write is there
  // once.
  void OnCommitted(uint64_t number, const std::string& key);
  // A backup applies it.
  void OnApplied(const std::string& key, uint64_t lsn);

  SimulatedTime time;
  const GroupTimes times{.lease_ns = 600'000'000};
  const uint32_t min_copies;  // of the group: 1 or 2
  SimulatedRegister shared;
  std::array<std::array<bool, kNodes>, kNodes> cut{};  // from, to
  std::array<int64_t, kNodes> rates{};                 // of the clocks: -1, 0, 1
  std::vector<std::unique_ptr<SimulatedMember>> members;
  uint64_t incarnations = 0;
  uint64_t streams = 0;

  std::vector<std::string> committed;
  std::unordered_map<std::string, uint64_t> number_of;  // of those
  std::set<uint64_t> unanswered;                        // writes
  uint64_t writes = 0;
  int64_t primary_clock_ms = 0;  // the highest by which a primary served

  // What happened.
  struct Tallies {
    int takeovers = 0;
    int hand_overs = 0;
    int removals = 0;
    int joins = 0;
    int leaves = 0;  // of backups that were told to stop
    int crashes = 0;
    int late_copies = 0;  // that completed at the primary after the fence
    int rests = 0;        // survivors' that the next stream had not ended
    int unknown = 0;
    int lost_groups = 0;  // nobody in sync lived
    // Of these: by a transaction that was executed when the member that had sent it was dead.
    int late_transactions = 0;
    uint64_t committed = 0;
    uint64_t applied_records = 0;
    int64_t back_ms = 0;  // how long it took until all were back
    friend bool operator==(const Tallies&, const Tallies&) = default;
  };
  Tallies tallies;
  std::string wrong;
};

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_GROUP_REPLICA_SIMULATED_WORLD_H_
