#ifndef GANNET_TESTS_SIMULATION_SIMULATED_CLIENT_H_
#define GANNET_TESTS_SIMULATION_SIMULATED_CLIENT_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "client/engine/batch.h"
#include "client/engine/engine.h"
#include "tests/simulation/health.h"
#include "tests/simulation/history.h"
#include "tests/simulation/run.h"

namespace gannet::simulation {

// One client: an Engine, the random operations that it begins, the locks that it believes it holds,
// and the checks of its results.
class SimulatedClient {
 public:
  struct Options {
    uint32_t number = 0;
    std::string endpoint;
    uint32_t keys = 0;
    uint32_t depth = 1;
    uint32_t queue_pairs_max = 1;
    uint32_t signal_every = 0;
    uint32_t completions = 0;  // for reports of GETs; 0: as a Client does it
    bool nic_locks = true;
    bool server_clocks = true;  // false: GETs of items that expire go by RPC
    uint64_t location_cache_bytes = 0;
    // 0: it has no near cache. With one it often asks for the same key again and again, as only
    // then an item is copied.
    uint64_t near_cache_bytes = 0;
    // What it asks for again and again, and writes by PutHot alone; nullopt: any key.
    std::optional<uint32_t> hot_key;
    uint32_t value_bytes_max = 0;
    uint32_t hasty_percent = 0;   // of the operations have short deadlines
    uint32_t locks_percent = 0;   // of the operations lock or unlock
    uint32_t leases_percent = 0;  // of the locks have a lease
    uint32_t ttl_percent = 0;     // of the PUTs have a time to live
    // An item may expire sooner, as it gets another primary or group, and a little later, as the
    // clocks drift.
    bool loose_expiry = false;
    uint32_t groups = 1;  // of the cluster: it is ready when it is connected to each
    // Whether the cluster has a group of this name now; empty: those of `groups` stay.
    std::function<bool(std::string_view)> has_group;
    // Whether at some moment since then as many members were in sync as the group wants; empty:
    // nobody looks.
    std::function<bool(int64_t)> had_copies_since;
    // Locks end when their partition moves, so a call that takes one may fail.
    bool impatient_locks = false;
    bool tallies = true;  // adds to the counter and the growing value, which must last
    // If nothing is wrong, the slot of an operation that ended is free again after this time. In it
    // a client gives up a connection that answers nothing, and makes a new one.
    int64_t room_ns_max = 5 * kNsPerSecond;
    std::string auth_file;               // empty: it has no key
    const ClientClock* clock = nullptr;  // outlives the client; nullptr: the run's
  };

  // All outlive the client.
  SimulatedClient(const Options& options, Run* run, History* history, const Health* server);
  ~SimulatedClient();
  SimulatedClient(const SimulatedClient&) = delete;
  SimulatedClient& operator=(const SimulatedClient&) = delete;

  uint32_t number() const { return options_.number; }
  void Poll();
  // Begins some operations.
  void Act(bool patient);
  // Asks so many times for the hot key, as often as it acts.
  void ReadHot(uint64_t gets) { hot_gets_left_ = gets; }
  // Begins a PUT of the hot key as soon as there is room for it. REQUIRES: there is one.
  void PutHot();
  // Reads every key, for the end of a run.
  void ReadAll();
  // Deletes a key of Tallies. REQUIRES: idle().
  void DeleteTally(std::string_view key);
  // Begins `gets` GETs of a key that is in no history. Takes and releases what ends as a Client
  // does with the GETs of a MultiGet. REQUIRES: idle().
  void BeginBatch(std::string_view key, uint32_t gets);
  void Break();
  // Call it after everybody was stalled for `ns`.
  void Suspend(int64_t ns) { last_poll_ns_ += ns; }

  bool idle() const { return pending_count_ == 0; }
  // Whether it asks for a key again and again, and is to act again soon.
  bool hurries() const { return hot_gets_left_ > 0; }
  // Returns true if it is connected to every group.
  bool ready() const;
  // Returns true if its first attempt to connect failed. It will not try again.
  bool dead() const { return engine_->servers().session(0).dead(); }
  // Of a cluster: returns the incarnation of the server whose memory it believes for keys of this
  // partition if it READs them now; nullopt: none, as it has no lease, or nobody serves them by its
  // map.
  std::optional<uint64_t> Believes(uint16_t partition) const;
  // READs that ended under no lease, and were not believed.
  uint64_t disbelieved() const;
  // READs of the GETs that ended, and their number.
  uint64_t reads() const { return reads_; }
  uint64_t gets() const { return gets_; }
  // GETs that were answered from copies.
  uint64_t near_answers() const { return near_answers_; }
  bool remembers_places() const { return options_.location_cache_bytes > 0; }
  uint32_t credits() const { return ready() ? grant().credits : 0; }
  const Grant& grant() const { return engine_->servers().session(0).grant(); }
  // Returns true if it believes that it holds a lock by this word, and the lease is not over.
  bool Holds(uint64_t word) const;
  // Returns how many resources are taken and requests wait: 0 if nothing is under way.
  uint32_t busy() const { return engine_->busy(); }
  // At the end of a run: fails it if the client has something that is not free, or is not
  // connected. Returns whether it is connected.
  bool CheckIsBack() const;

 private:
  // Returns whether operations may begin. A Client and an AsyncClient wait for the map, too.
  bool HasStarted();
  // An operation under way.
  struct Pending {
    bool used = false;
    OpType type = OpType::kGet;
    uint32_t key = 0;
    Operation operation;
    std::string value;           // of a PUT
    std::vector<std::byte> out;  // of a GET
    uint64_t ttl_ms = 0;         // of a lock: its lease
    uint64_t known_version = 0;  // of a GetIfChanged
    uint64_t number = 0;         // among this client's writes
    size_t acquisition = 0;      // of an unlock, or a write under a lock
    bool under_lock = false;
    bool tallied = false;   // an operation on a key of Tallies
    bool in_batch = false;  // a GET of BeginBatch
    uint64_t connects = 0;  // at its begin; 0: it was not ready
    int64_t timeout_ns = 0;
    int64_t begun_ns = 0;
    int64_t deadline_ns = 0;  // 0: before its first Poll
  };
  struct Held {
    uint64_t word = 0;
    size_t acquisition = 0;
    int64_t lease_end_ns = INT64_MAX;  // at the latest, by the server's clock
    std::string server;                // its name (ServerName)
  };
  struct Connection {
    uint32_t id = 0;  // 0: none
    int64_t since_ns = 0;
  };
  struct Known {
    uint64_t version = 0;  // 0: absent
    uint32_t id = 0;
  };
  // The result of a finished operation.
  struct Result {
    Outcome outcome = Outcome::kOk;
    bool found = false;
    ItemInfo info;
    uint64_t lock_word = 0;
    int64_t number = 0;  // of an increment
    uint32_t server = 0;
    std::string_view value;
    bool whole = false;  // `value` is not truncated
  };

  // simulated_client.cc
  std::string WithoutPort(std::string_view text) const;
  void WatchConnections();
  void WatchConnection(uint32_t server);
  // What a server is known by. The engine's numbers change when a group is dropped.
  std::string ServerName(uint32_t server) const;
  void WatchDeadlines();
  void WatchRoom(bool began);
  void TakeFinished(uint32_t op);
  void CountGet(const OpCost& cost) {
    ++gets_;
    reads_ += cost.reads;
    near_answers_ += cost.from_near_cache;
  }
  void TakeBatch();
  void Finish(size_t i, const Result& result);
  void OnRead(Pending& p, const Result& result);
  void OnWrite(Pending& p, const Result& result);
  void OnLock(Pending& p, const Result& result);
  void OnUnlock(Pending& p, const Result& result);
  void OnTally(Pending& p, const Result& result);
  void Abandon(const Pending& p);
  void AddExpiry(const Pending& p);
  void CheckPatience(const Pending& p, Outcome outcome);
  int64_t calm_ns() const;

  // client_acts.cc
  bool ActOnHotKey(bool patient);
  bool BeginOne(bool patient);
  bool AnswerNear(size_t i, std::string_view key);
  bool BeginGet(uint32_t key, bool share);
  bool BeginMultiGet();
  bool BeginHeadRead(uint32_t key);
  bool BeginMultiExists();
  bool BeginMultiDelete();
  bool BeginPut(uint32_t key);
  bool BeginDelete(uint32_t key);
  bool BeginLockOp(uint32_t key);
  bool BeginUnlock(uint32_t key);
  bool BeginOther();
  bool BeginTally();
  bool Begin(Pending p, absl::StatusOr<OpRequest> request);
  static bool Writes(OpType type) { return type == OpType::kPut || type == OpType::kDelete; }
  // Returns true if the operation is recorded in the history of its key.
  static bool InHistory(const Pending& p) {
    return !p.tallied && !p.in_batch &&
           (Writes(p.type) || p.type == OpType::kGet || p.type == OpType::kLockAndGet ||
            ReadsHead(p.type));
  }
  int64_t Timeout(bool patient);
  uint32_t ValueBytes();
  Pending Write(linearizability::Kind kind, OpType type, uint32_t key);

  const Options options_;
  Run* const run_;
  History* const history_;
  const Health* const server_;
  std::unique_ptr<Engine> engine_;
  Health health_;
  int64_t last_poll_ns_;
  int64_t timeout_ns_ = 0;  // of the operation that is being begun
  std::vector<Pending> pending_;
  bool started_ = false;
  uint32_t pending_count_ = 0;
  Batch batch_;
  std::vector<uint32_t> ended_of_batch_;  // and not taken
  uint64_t writes_ = 0;
  std::map<uint32_t, Known> known_;  // by key
  // By key. Of two calls that lock a key at once, both may have it, one after the other: the first
  // one's lease is over before it is told of its lock. Only the server knows which one has it now.
  std::multimap<uint32_t, Held> held_;
  std::map<std::string, Connection> connections_;  // by server
  uint64_t connects_ = 0;  // grows with each connection that is made or lost
  uint64_t reads_ = 0;
  uint64_t gets_ = 0;
  uint64_t near_answers_ = 0;
  uint64_t hot_gets_left_ = 0;  // of hot_key_
  bool puts_hot_ = false;       // once there is room
  uint32_t hot_key_ = 0;
  int64_t no_room_since_ns_ = 0;  // 0: there is room
};

// Returns a key's name, which stays valid for ever. REQUIRES: key < kKeysMax.
inline constexpr uint32_t kKeysMax = 8;
const std::string& KeyName(uint32_t key);

}  // namespace gannet::simulation

#endif  // GANNET_TESTS_SIMULATION_SIMULATED_CLIENT_H_
