#ifndef GANNET_PROXY_JOBS_JOB_H_
#define GANNET_PROXY_JOBS_JOB_H_

#include <gannet/async_client.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proxy/jobs/counters.h"
#include "proxy/protocol/command.h"

namespace gannet::proxy {

class Job;

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
  };

  Job* job = nullptr;
  Kind kind = Kind::kGet;
  bool wants_value = true;  // kGet, kGetAndTouch
  uint32_t server = 0;      // kFlush, kStats
  std::string_view key;     // of the job's bytes, as `value` may be
  std::string_view value;
  PutOptions put;  // of all writes: flags, ttl and conditions, as far as they apply
  int64_t delta = 0;

  // The answer.
  absl::StatusCode code = absl::StatusCode::kOk;
  std::string refusal;  // kInvalidArgument: why
  bool found = false;
  ItemInfo info;
  int64_t number = 0;
  ServerStats stats;
  std::string out;  // buffer of the value, which may be longer than that

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
  bool closing = false;  // a command asked to end the connection
};

// Which operations of one connection may be under way at once. The store sees that a client's
// writes of a key happen in their order, and that a Get sees those before it. It does not see that
// a write waits for Gets before it, or for a job of several steps.
enum class Access : uint8_t {
  kNothing,  // uses no key
  kRead,     // one Get for each key
  kWrite,    // one write for each key
  kSteps,    // several operations, one after another
  kAll,      // all keys
};

// One command of a connection, from its bytes to its reply. It runs in stages: a stage is a
// function that begins operations and says which stage comes next. That one is called when all of
// them are answered. A stage that begins none is the last one.
//
// A stage sees the answers to the operations of the stage before it until its own first Begin,
// which replaces them.
class Job {
 public:
  using Stage = void (*)(Job&);

  // Makes the job anew, with a copy of the command. `bytes` has all that the command has views of.
  void Reset(std::string_view bytes, const Command& from);
  // Gives back what is long, before the job is kept for another command.
  void Trim();

  // A stage's means.
  Operation& Begin(Operation::Kind kind, std::string_view key);
  void Then(Stage stage) { next = stage; }
  std::span<Operation> answers() { return {operations_.data(), used_}; }
  Operation& answer() { return operations_[0]; }
  // Begins one operation for each server.
  void BeginOnEach(Operation::Kind kind);
  // Whether another try of a read and a conditional write is left.
  bool TryAgain() { return ++tries_ < kTriesMax; }

  const std::vector<std::string_view>& words() const { return command_.words; }
  std::string_view data() const { return command_.data; }
  bool has_data() const { return command_.has_data; }

  // Of the connection.
  void* owner = nullptr;          // who gets the reply; nullptr: nobody, the connection is closed
  ClientState* client = nullptr;  // valid only while the command is prepared
  const Service* service = nullptr;
  Counters* counters = nullptr;
  bool resp3 = false;

  // Set by whoever prepares the command.
  Stage next = nullptr;
  Access access = Access::kNothing;
  std::vector<std::string_view> keys;
  bool silent = false;  // its reply is not sent
  std::string reply;

  // What stages of a command tell one another.
  struct {
    PutOptions put;
    bool over = false;  // the time to live is over already
    bool is_meta = false;
    bool is_subtraction = false;
    bool is_prefix = false;
    bool with_version = false;  // reply with cas uniques
    bool keeps_ttl = false;
    bool returns_old = false;
    bool creates = false;
    uint64_t delta = 0;
    uint64_t initial = 0;
    std::chrono::milliseconds ttl{0};
    std::string value;
    std::string old_value;
    bool had_old = false;
    std::string decoded_key;
  } scratch;

  // For the queue that runs it.
  uint32_t waiting = 0;  // operations that are not answered
  bool began = false;    // the stage that runs has begun operations
  bool finished = false;
  size_t value_bytes = 0;            // of all buffers
  std::vector<uint64_t> key_hashes;  // for the connection that keeps the order

 private:
  static constexpr int kTriesMax = 100;

  std::string bytes_;
  Command command_;
  std::vector<Operation> operations_;
  size_t used_ = 0;
  int tries_ = 0;
};

}  // namespace gannet::proxy

#endif  // GANNET_PROXY_JOBS_JOB_H_
