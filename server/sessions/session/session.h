#ifndef GANNET_SERVER_SESSIONS_SESSION_SESSION_H_
#define GANNET_SERVER_SESSIONS_SESSION_SESSION_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "common/base/boot_time.h"
#include "common/base/check.h"
#include "common/base/data_path_checks.h"
#include "common/protocol/message.h"
#include "server/sessions/session/put_off_keys.h"
#include "server/sessions/session/requests_aside.h"
#include "server/sessions/session/session_copies.h"
#include "server/sessions/session/session_key.h"
#include "server/sessions/session/told_uses.h"

namespace gannet {

// What the server remembers of one client across its connections: the sequence numbers that are
// being executed, and the answers to the last `credits` numbers. So a request that is sent again
// after a break is executed exactly once.
//
// 1. A number is executed at most once while its answer is remembered. If the request comes again,
//    the reply is the recorded answer. Requests that change nothing are executed again instead,
//    because only headers are recorded, never values.
// 2. The window: a client keeps fewer than `credits` requests unanswered. So number n says that the
//    client is done with everything up to n - credits. Those numbers are never executed again.
// 3. Numbers may be skipped, by at most kSequenceJumpMax, for requests that a client gave up before
//    they arrived. Not so if the client said that it leaves none out (`aside`): then a number waits
//    for those before it, and is at most `credits` beyond the highest.
// 4. Adopted from a copy, it has the answers to writes and to no other requests. The numbers
//    without an answer are executed if they come. So nothing is executed twice, and nothing too
//    late: docs/group.md, "Sessions".
//
// Owner: the SessionTable of one worker. Thread safety: that worker's thread only.
class Session {
 public:
  static constexpr uint64_t kSequenceJumpMax = 1 << 20;

  // What to do with a request that arrived.
  enum class Admission : uint8_t {
    kExecute,  // new; it is now in progress: RecordAnswer, RecordRepeatable or Forget must follow
    kReplay,   // answered before: send the recorded header
    kInProgress,  // an earlier copy is still being executed
    kStale,       // below the window: the client said that it is over
    kOverrun,     // the client has more than `credits` unanswered, or skips too far
    kTooEarly,    // those before it come over other connections: set it aside
  };

  // REQUIRES: credits >= 1.
  Session(uint32_t id, uint64_t token, uint16_t credits);
  // The session of a former primary, in its group's next one. No connection of it is left.
  // REQUIRES: copy.credits >= 1, and each answer is one of the last `credits` numbers.
  explicit Session(const SessionCopy& copy);

  uint32_t id() const { return id_; }
  uint64_t token() const { return token_; }
  uint16_t credits() const { return credits_; }

  // Decides what to do with the request of this number. On kReplay, fills in `*recorded` with the
  // answer.
  Admission Admit(uint64_t sequence, ReplyHeader* recorded) {
    if (!IsNextInOrder(sequence)) [[unlikely]]
      return AdmitOutOfOrder(sequence, recorded);
    highest_ = sequence;
    return Begin(sequence);
  }
  // Returns whether this is the next number, and may begin while others are in progress: only the
  // number that it pushes out of the window may not.
  bool IsNextInOrder(uint64_t sequence) const {
    if (sequence != highest_ + 1) return false;
    if (in_progress_ == 0) return true;
    const uint64_t out = sequence - credits_;
    const Record& record = At(out);
    return record.sequence != out || record.state != State::kInProgress;
  }
  // Does Admit for such a number.
  void BeginNext(uint64_t sequence) {
    highest_ = sequence;
    Begin(sequence);
  }
  // Returns whether this is the usual case: the next number, with all numbers before it answered.
  bool IsNext(uint64_t sequence) const { return sequence == highest_ + 1 && in_progress_ == 0; }
  // Does Admit and RecordAnswer in one for the next request, which was executed and succeeded.
  // Returns its number. REQUIRES: IsNext of that number.
  uint64_t AnswerNext(Opcode opcode, uint64_t version, uint64_t slot) {
    GANNET_CHECK_DATA_PATH(IsNext(highest_ + 1), "requests are in progress");
    const uint64_t sequence = ++highest_;
    At(sequence) = {.sequence = sequence,
                    .words = {version, slot, 0},
                    .opcode = static_cast<uint8_t>(opcode),
                    .status = static_cast<uint8_t>(ReplyStatus::kOk),
                    .state = State::kAnswered};
    return sequence;
  }
  // Remembers the answer to a request in progress that changed something, or was refused after it
  // was admitted. Keeps opcode, status and AnswerWords of the header. Answers to such requests use
  // no other field.
  void RecordAnswer(uint64_t sequence, const ReplyHeader& reply) {
    Record& record = Finish(sequence, State::kAnswered);
    record.opcode = reply.opcode;
    record.status = reply.status;
    std::copy_n(reply.words.begin(), record.words.size(), record.words.begin());
  }
  // Does RecordAnswer for a request that succeeded.
  void AnswerInProgress(uint64_t sequence, Opcode opcode, uint64_t version, uint64_t slot) {
    Record& record = Finish(sequence, State::kAnswered);
    record = {.sequence = sequence,
              .words = {version, slot, 0},
              .opcode = static_cast<uint8_t>(opcode),
              .status = static_cast<uint8_t>(ReplyStatus::kOk),
              .state = State::kAnswered};
  }
  // Records that the request in progress is answered, and may be executed again.
  void RecordRepeatable(uint64_t sequence) { Finish(sequence, State::kRepeatable); }
  // Records that the request in progress was neither applied nor answered. If it is sent again, it
  // is executed.
  void Forget(uint64_t sequence) { Finish(sequence, State::kNone); }

  uint32_t in_progress() const { return in_progress_; }
  // Returns the requests in progress because of which Admit says kOverrun of this number. None if
  // it is for another reason.
  std::vector<uint64_t> InTheWayOf(uint64_t sequence) const;

  // Returns true if the client may know of the session, and so may come back to it.
  bool IsKnown() const { return established || highest_ > 0; }
  bool established = false;
  // Nobody finds it any more, and it goes with its last connection.
  bool ended = false;
  // Hash of the client's list of servers; 0 if the client did not tell it since it connected.
  uint64_t server_set = 0;
  // The client READs no index older than this generation.
  uint64_t index_generation = 0;

  // The client's reports, since the session began.
  struct Reported {
    uint64_t hits = 0;
    uint64_t misses = 0;
    uint64_t reads = 0;
    uint32_t get_p50_ns = 0;  // of the last report that had latencies of GETs
    uint32_t get_p99_ns = 0;
  };
  Reported reported;
  ToldUses told_uses;
  // The highest number of a request, and its opcode if the answer is remembered; 0 if not.
  uint64_t highest() const { return highest_; }
  uint8_t last_opcode() const {
    const Record& last = At(highest_);
    return last.sequence == highest_ && last.state == State::kAnswered ? last.opcode : uint8_t{0};
  }

  // What came too early. Null: the client may skip numbers.
  std::unique_ptr<RequestsAside> aside;

  // The keys of which writes are put off. Kept by Requests.
  PutOffKeys put_off;

  // How many connections the session has now. Kept by SessionTable.
  uint32_t connections = 0;
  // When the last connection went. Meaningful while connections == 0.
  BootTime detached_at;

  // The key under which the session was made; null: the server has no keys. Connections with
  // another key may not join the session, so it keeps its rights.
  std::shared_ptr<const SessionKey> key;
  // Returns true if a connection with this key, or null, may join the session. An adopted session
  // knows its key by the id only, and takes the first key that has this id and the same rights.
  bool TakesKey(const std::shared_ptr<const SessionKey>& its);
  bool read_only() const { return key != nullptr && key->key.read_only; }
  // Returns true if the key is no longer valid.
  bool revoked() const { return key != nullptr && key->revoked.load(std::memory_order_relaxed); }

  // Bytes of this object and its records.
  size_t MemoryBytes() const { return sizeof(*this) + (mask_ + 1) * sizeof(Record); }

 private:
  enum class State : uint8_t { kNone, kInProgress, kAnswered, kRepeatable };
  struct Record {
    uint64_t sequence = 0;
    ReplyHeader::AnswerWords words{};
    uint8_t opcode = 0;
    uint8_t status = 0;
    State state = State::kNone;
    uint8_t unused = 0;  // the last four bytes are written at once
  };

  // Numbers below this are over.
  uint64_t floor() const { return FloorAt(highest_); }
  uint64_t FloorAt(uint64_t highest) const {
    return highest >= credits_ ? highest - credits_ + 1 : 1;
  }
  Record& At(uint64_t sequence) { return records_[sequence & mask_]; }
  const Record& At(uint64_t sequence) const { return records_[sequence & mask_]; }
  Admission AdmitOutOfOrder(uint64_t sequence, ReplyHeader* recorded);
  Admission Begin(uint64_t sequence) {
    Record& record = At(sequence);
    record.sequence = sequence;
    record.state = State::kInProgress;
    ++in_progress_;
    return Admission::kExecute;
  }
  // REQUIRES: sequence > highest_. Subtracts instead of adding, so that a hostile number near 2^64
  // does not wrap.
  bool SkipsTooFar(uint64_t sequence) const {
    GANNET_CHECK_DATA_PATH(sequence > highest_, "the number is no later one");
    return sequence - highest_ > kSequenceJumpMax && !may_skip_any_;
  }
  // Returns true if a request with a number below `floor` is still being executed.
  bool AnyInProgressBelow(uint64_t floor) const;
  Record& Finish(uint64_t sequence, State state) {
    Record& record = At(sequence);
    GANNET_CHECK(record.sequence == sequence && record.state == State::kInProgress,
                 "a request that is not in progress");
    record.state = state;
    --in_progress_;
    return record;
  }

  struct AdoptedKey {
    uint32_t id;
    bool read_only;
  };

  const uint32_t id_;
  const uint64_t token_;
  const uint16_t credits_;
  const uint16_t mask_;                      // records - 1; their number is a power of two
  const std::unique_ptr<Record[]> records_;  // by sequence & mask_
  uint64_t highest_ = 0;                     // ever admitted
  uint32_t in_progress_ = 0;
  // After an adoption, until the next number that skips some: the former primary may have answered
  // any number of reads, of which nobody told.
  bool may_skip_any_ = false;
  std::optional<AdoptedKey> adopted_key_;  // until a connection with it came
};

}  // namespace gannet

#endif  // GANNET_SERVER_SESSIONS_SESSION_SESSION_H_
