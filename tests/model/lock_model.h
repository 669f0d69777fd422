#ifndef GANNET_TESTS_MODEL_LOCK_MODEL_H_
#define GANNET_TESTS_MODEL_LOCK_MODEL_H_

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace gannet::model::lock {

// Two clients read, modify and write one key under its lock, while plain PUTs come in between. The
// connection of the first client may die at any moment (and be opened again), and a janitor breaks
// the locks of dead connections.
//
// A client posts a compare-and-swap (CAS) and a READ of the item together. The READ may be sampled
// at any time from then on, even before the CAS. The NIC executes a CAS at any time after its post,
// also after its connection died. A write carries the lock word and the version that was READ. One
// of the server's two workers loads the lock word, compares, and applies. These are two steps,
// between which the NIC may change the lock word again.
//
// A lock may get a lease: the server remembers the lock word that it found. When the lease is over,
// which may be at any time, it posts a CAS that breaks the lock. A client may have the lease
// extended: the server loads the lock word, compares it, and remembers that the lock has a lease
// from now on. A client that was told so counts on the lock until that lease is over.
//
// "Serial" and "owner" below are the model's own knowledge, which no program has. They distinguish
// acquisitions and connections, whatever bits those use.
struct LockRules {
  bool compare_version = true;
  bool compare_lock_word = true;
  bool compare_under_mutex = true;    // from the load of the lock word to the end of the apply
  bool new_connection_ids = true;     // a reconnected client never gets an earlier id again
  bool count_acquisitions = true;     // the lock word has the connection's own count
  bool break_again_and_again = true;  // or one look at the locks for each dead connection
  bool break_by_cas = true;           // or by a store of the server's CPU
  bool lease_breaks_its_word = true;  // or whatever the lock word is when the lease is over
  bool release_by_cas = true;         // or by a store, which may come late
  bool extend_compares_word = true;   // or whoever asks gets more time
  bool breaking_is_final = true;      // or a lease is extended whose lock is being broken
  // The second client only reads under the lock, and believes what it READ: it must be at least as
  // new as the item was when the lock was taken. Its READ is posted after the CAS completed, or
  // with it.
  bool second_only_reads = false;
  bool read_after_cas = true;
};

struct LockScenario {
  uint8_t attempts = 2;  // to lock, per client
  uint8_t plain_puts = 1;
  uint8_t deaths = 1;   // of the first client's connection
  uint8_t leases = 0;   // that the server gives
  uint8_t extends = 0;  // and extends
};

class LockModel {
 public:
  static constexpr int kClients = 2;
  static constexpr int kCasMax = 8;
  static constexpr int kRequestsMax = 6;
  static constexpr uint8_t kNobody = 0xff;

  enum class Phase : uint8_t { kIdle, kLocking, kWriting, kReleasing, kDisconnected };
  enum class CasResult : uint8_t { kNone, kPosted, kTaken, kFailed };
  enum class ReadResult : uint8_t { kNone, kPosted, kSampled, kDone };
  enum class CasKind : uint8_t { kNone, kAcquire, kRelease, kExpire, kBreak };
  enum class Progress : uint8_t { kNone, kReceived, kLockLoaded };
  enum class Breach : uint8_t {
    kNothing,
    kLostUpdate,
    kLateHolder,
    kLivingLockBroken,
    kLaterLockBroken,
    kExtendedTooLate,
    kExtendedLockBroken,
    kStaleRead
  };

  struct Client {
    Phase phase;
    uint8_t connection;  // id in its lock words
    uint8_t owner;       // which connection this really is
    uint8_t count;
    uint8_t attempts_left;
    uint8_t word;    // of the acquisition under way
    uint8_t serial;  // of that acquisition
    CasResult cas;
    ReadResult read;
    uint8_t version;  // that the READ sampled
    uint8_t version_when_taken;
  };
  // On its way in the NIC.
  struct Cas {
    CasKind kind;
    uint8_t word;    // acquire: 0 -> word; release, expire and break: word -> 0
    uint8_t owner;   // connection that posted it
    uint8_t client;  // that waits for it; kNobody: its connection died
  };
  // A write on its way through a worker.
  struct Request {
    Progress progress;
    uint8_t word;
    uint8_t version;
    uint8_t serial;
    uint8_t client;  // that waits for the reply; kNobody
    uint8_t accepted;
  };
  struct State {
    uint8_t lock_word;
    uint8_t lock_serial;  // of the acquisition that holds it
    uint8_t lock_owner;   // connection that took it
    uint8_t version;      // of the item
    std::array<Client, kClients> clients;
    std::array<Cas, kCasMax> cas;
    std::array<Request, kRequestsMax> requests;
    uint8_t dead_connections;  // ids, a bit each: what the server knows
    uint8_t dead_owners;       // connections, a bit each
    uint8_t swept;             // ids, a bit each: whose locks the janitor that looks once broke
    uint8_t next_connection;
    uint8_t next_owner;
    uint8_t next_serial;
    uint8_t plain_puts_left;
    uint8_t deaths_left;
    uint8_t leases_left;
    uint8_t leased_word;  // that the server remembers; 0: none
    uint8_t extends_left;
    uint8_t extended_word;  // of that lease, whose end its holder relies on; 0: of none
    Breach breach;
  };

  LockModel(const LockRules& rules, const LockScenario& scenario)
      : rules_(rules), scenario_(scenario) {}

  using Emit = std::function<void(const char* label, const State&)>;
  std::vector<State> Initial() const;
  void Next(const State& state, const Emit& emit) const;
  const char* Broken(const State& state) const;
  const char* BrokenAtRest(const State& state) const;

 private:
  void ClientSteps(const State& state, uint8_t i, const Emit& emit) const;
  void NicSteps(const State& state, const Emit& emit) const;
  void WorkerSteps(const State& state, const Emit& emit) const;
  void JanitorSteps(const State& state, const Emit& emit) const;
  void LeaseSteps(const State& state, const Emit& emit) const;
  void ExtendSteps(const State& state, const Emit& emit) const;
  void ConnectionSteps(const State& state, const Emit& emit) const;

  State PostLock(State state, uint8_t i) const;
  State Decide(State state, uint8_t i) const;
  State DoCas(State state, int i) const;
  State LoadLock(State state, int i) const;
  State Apply(State state, int i) const;
  State PostBreak(State state) const;
  State Die(State state, bool requests_received) const;
  State Reconnect(State state) const;
  // The item's version changes: each READ under way may have sampled the old one, or not.
  void WithNewVersion(State state, const char* label, const Emit& emit) const;
  bool MutexHeld(const State& state) const;

  const LockRules rules_;
  const LockScenario scenario_;
};

}  // namespace gannet::model::lock

#endif  // GANNET_TESTS_MODEL_LOCK_MODEL_H_
