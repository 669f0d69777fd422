#ifndef GANNET_PROXY_JOBS_JOB_H_
#define GANNET_PROXY_JOBS_JOB_H_

#include <gannet/async_client.h>
#include <gannet/walker.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <forward_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proxy/jobs/counters.h"
#include "proxy/jobs/database.h"
#include "proxy/jobs/memory_limit.h"
#include "proxy/jobs/transaction.h"
#include "proxy/protocol/parsed_command.h"

namespace gannet::proxy {

class Job;
struct Execution;
struct ScriptRun;

// One operation at the store, and its answer.
struct Operation {
  enum class Kind : uint8_t {
    kGet,
    kPut,
    kDelete,
    kAppend,
    kPrepend,
    kIncr,
    kTouch,
    kGetAndTouch,
    kFlush,
    kStats,
    kWalk,
    kMemory,  // nothing but `brings`
    kTurn,    // `delta` is a number: until the job ends, no other one of the thread gets it
  };

  static constexpr size_t kWalkRoomMin = 1 << 20;
  static constexpr size_t kWalkRoomMax = 64 << 20;

  Job* job = nullptr;
  Kind kind = Kind::kGet;
  bool wants_value = true;  // kGet, kGetAndTouch
  uint32_t server = 0;      // kFlush, kStats, kWalk
  std::string_view key;     // lies in the job's bytes, as `value` may
  std::string_view value;
  PutOptions put;  // for all writes: flags, ttl and conditions, as far as they apply
  int64_t delta = 0;
  WalkPartOptions part;  // kWalk, whose key is a pattern; the answer has the next position
  Database database;     // kWalk: whose names are wanted

  // The answer.
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string refusal;  // kInvalidArgument: why
  bool found = false;
  ItemInfo info;
  int64_t number = 0;
  ServerStats stats;
  std::vector<std::string> keys;  // kWalk: their names
  std::string out;                // buffer of the value, which may be longer than that
  size_t room = 0;    // bytes that the value is known to need; kWalk: that the keys may have
  size_t brings = 0;  // bytes that the job makes of the answer, beyond as many as the answer has
  Charge charge;      // for this buffer, for as much of a reply, and for `brings`

  // Returns whether a write of an item that was read found that others have written the item since.
  bool others_wrote() const {
    return code == absl::StatusCode::kFailedPrecondition ||
           (code == absl::StatusCode::kOk && !found);
  }
  std::string_view found_value() const { return std::string_view(out).substr(0, info.value_bytes); }
  // How long the item will live, for a Put in its place; 0 = for ever.
  std::chrono::milliseconds ttl_left() const {
    if (info.expiry_ms == 0) return {};
    return std::max(info.ttl_left, std::chrono::milliseconds(1));
  }
};

// What a connection remembers from one command to the next.
struct ClientState {
  uint64_t id = 0;
  std::string name;
  bool resp3 = false;
  bool closing = false;  // a command asked for the end of the connection
  bool authenticated = true;
  bool in_script = false;  // a script calls the commands
  Database database;
  Transaction transaction;
};

// How a job uses its keys. It decides which jobs of one connection may be under way at once. The
// store keeps the order of a client's writes of a key, and lets a Get see the writes before it. But
// it does not make a write wait for Gets before it, or for a job of several steps.
enum class Access : uint8_t {
  kNothing,  // uses no key
  kRead,     // one Get for each key
  kWrite,    // one write for each key
  kSteps,    // several operations, one after another
  kAll,      // all keys
};

// Returns the new value for the item that was read. The options of its Put begin with the item's
// flags and time to live, and the function may change them. Returns nullopt if it has replied and
// nothing is to be written. The value is a view of the job's command, or of its scratch.
using Modify = std::optional<std::string_view> (*)(Job& job, const Operation& got,
                                                   PutOptions& options);

// One command of a connection, from its bytes to its reply. It runs in stages: a stage is a
// function that begins operations and says which stage comes next. That one is called when all of
// them are answered. A stage that begins none is the last one.
//
// A stage sees the answers to the operations of the stage before it until its own first Begin,
// which replaces them.
class Job {
 public:
  Job();
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  using Stage = void (*)(Job&);

  // Makes the job anew, with a copy of the command. The command's views all lie in `bytes`.
  void Reset(std::string_view bytes, const ParsedCommand& from);
  // The same, but takes the bytes themselves.
  void Reset(std::string&& bytes, const ParsedCommand& from);
  // Gives back what the job holds, and frees long buffers, before the job is kept for another
  // command. `keep_one`: one of each kind may stay.
  void Trim(bool keep_one);

  // Keeps a key that is not in the command's bytes.
  std::string_view KeepKey(std::string key) { return kept_keys_.emplace_front(std::move(key)); }

  // What a stage may call.
  Operation& Begin(Operation::Kind kind, std::string_view key);
  void Then(Stage stage) { next = stage; }
  std::span<Operation> answers() { return {operations_.data(), used_}; }
  Operation& answer() { return operations_[0]; }
  // Takes the value that answer() found, without a copy.
  void TakeValue(std::string* to) {
    *to = std::exchange(answer().out, {});
    to->resize(answer().info.value_bytes);
  }
  // Begins one operation for each server that there is now; walks for each one that is listed, as
  // one group of a cluster stands for all.
  void BeginOnEach(Operation::Kind kind);
  // Begins operations for the next keys, a bounded number of them: begin(place) begins one for the
  // key of that place. Empty keys are left out. REQUIRES: the last one is not empty.
  template <class BeginOne>
  void BeginOnNextKeys(BeginOne begin) {
    constexpr size_t kAtOnce = 4096;
    for (size_t begun = 0; next_key_ < keys.size() && begun < kAtOnce; ++next_key_) {
      if (keys[next_key_].empty()) continue;
      begin(next_key_);
      ++begun;
    }
  }
  bool has_more_keys() const { return next_key_ < keys.size(); }
  // In a transaction, a stage writes a key only once. So of equal keys all but the last are
  // emptied.
  void DropEqualKeys();
  // Returns whether a read and a conditional write may be tried once more. Returns false if a
  // transaction made the write conditional.
  bool TryAgain() { return (guard == nullptr || !guard->conflict()) && ++tries_ < kTriesMax; }
  // Runs a command of this transaction. The next stage runs when that is finished. REQUIRES: the
  // stage begins nothing else.
  void BeginPart(Job& part) {
    part.parent = this;
    part_ = &part;
  }
  Job* TakePart() { return std::exchange(part_, nullptr); }

  // The bytes of the command.
  std::string_view bytes() const { return bytes_; }
  // Takes them. Then there are no words any more.
  std::string TakeBytes() { return std::exchange(bytes_, {}); }
  const std::vector<std::string_view>& words() const { return command_.words; }
  std::string_view data() const { return command_.data; }
  bool has_data() const { return command_.has_data; }

  // Charges the reply for what it has become. The buffers of the answers count no more than they
  // are, so their values must be in the reply.
  void ChargeReply();
  // Frees all buffers but the reply. For a job that is finished.
  void KeepOnlyReply();
  // The connection is closed, so nobody will take the reply. From now on `orphans` holds what the
  // job holds.
  void Orphan(Holder* orphans);

  // What the job's connection and thread lend it.
  Holder* holder = nullptr;       // nullptr: nobody counts
  void* owner = nullptr;          // who gets the reply; nullptr: the connection is closed
  ClientState* client = nullptr;  // valid only while the command is prepared
  const Service* service = nullptr;
  Counters* counters = nullptr;
  uint32_t servers = 0;  // how many the thread's client has now, when a stage runs
  bool resp3 = false;

  // Set by whoever prepares the command.
  Stage next = nullptr;
  Access access = Access::kNothing;
  std::vector<std::string_view> keys;
  bool silent = false;  // its reply is not sent
  std::string reply;
  Charge charge;  // of the command and the reply; that of an operation is its own

  Job* parent = nullptr;              // the transaction that this is a part of
  TransactionGuard* guard = nullptr;  // of the parent
  std::unique_ptr<Execution> execution;
  std::unique_ptr<ScriptRun> script;

  // What the stages of a command pass on to each other.
  struct {
    PutOptions put;
    bool over = false;  // the time to live is over already
    bool is_meta = false;
    bool is_binary = false;
    bool is_subtraction = false;
    bool is_prefix = false;
    bool with_version = false;  // reply with cas uniques
    bool keeps_ttl = false;
    bool asks_ttl = false;  // the reply tells what is left of it
    bool returns_old = false;
    bool creates = false;
    uint64_t delta = 0;
    uint64_t initial = 0;
    std::chrono::milliseconds ttl{0};
    std::chrono::milliseconds wanted_ttl{0};  // ma: T
    size_t brings = 0;                        // of the Get of ReadModifyWrite
    std::string value;
    std::string old_value;
    bool had_old = false;
    Database database;
    std::vector<std::string> found_keys;
    std::shared_ptr<Watches> watches;
    std::string_view word;  // of the command
    // What ReadModifyWrite was called with.
    Modify modify = nullptr;
    Stage written = nullptr;
  } scratch;

  // For the queue that runs the job.
  uint32_t waiting = 0;  // operations that are not answered
  bool began = false;    // the stage that runs has begun operations
  bool finished = false;
  std::vector<uint64_t> turns;       // that it has
  size_t value_bytes = 0;            // of all buffers
  std::vector<uint64_t> key_hashes;  // by which the connection keeps the order of the keys' jobs

 private:
  static constexpr int kTriesMax = 100;

  void Clear();
  void ReleaseCharges();

  std::string bytes_;
  ParsedCommand command_;
  std::forward_list<std::string> kept_keys_;
  std::vector<Operation> operations_;
  size_t used_ = 0;
  size_t next_key_ = 0;
  int tries_ = 0;
  Job* part_ = nullptr;
};

// A transaction that EXEC runs.
struct Execution {
  explicit Execution(Transaction from)
      : commands(std::move(from.commands)),
        charge(std::move(from.charge)),
        guard(std::move(from.watches)) {}

  std::vector<std::string> commands;
  Charge charge;  // of them
  TransactionGuard guard;
  ClientState client;  // a copy: the connection may be gone
  Job part;            // the command that runs
  size_t next = 0;     // of commands
  size_t answers = 0;  // in the reply
};

}  // namespace gannet::proxy

#endif  // GANNET_PROXY_JOBS_JOB_H_
