#ifndef GANNET_SERVER_SESSIONS_SESSION_SESSION_COPIES_H_
#define GANNET_SERVER_SESSIONS_SESSION_SESSION_COPIES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "server/log/changes/change.h"
#include "server/log/changes/session_record.h"

namespace gannet {

// A session as the stream of a group tells of it: what SessionTable::Adopt needs.
struct SessionCopy {
  uint64_t token = 0;
  uint32_t id = 0;
  uint32_t key_id = 0;  // 0: none
  uint16_t credits = 0;
  bool read_only = false;
  uint64_t highest = 0;                // of the numbers that the stream told of
  std::vector<SessionAnswer> answers;  // in the order of their numbers, the last `credits` at most
};

// For a primary that begins while fewer members than the group wants have what the former one
// recorded: no answer says any more that a write is made. Each says kOutcomeUnknown.
void DoubtAnswers(std::vector<SessionCopy>* copies);

// The sessions of a group, made from the records of its stream (docs/group.md, "Sessions"). A
// backup feeds it with what it applies, and has the sessions if it takes over. The primary feeds it
// with what it appends, so it can tell a joiner of all sessions at any moment.
//
// Whoever has the sessions already may be told of them again. So the records for a joiner can go
// into the stream that all backups get, and other records may come between those of two sessions.
//
// A state machine. Thread safety: one thread.
class SessionCopies {
 public:
  // The next record of the stream. Each costs one lookup in a table.
  void Take(const Change& change) {
    if (change.session_token != 0) TakeAnswerOf(change);
    if (!undone_.empty() && change.kind == Change::Kind::kDelete) [[unlikely]]
      CountUndone(change.version);
  }
  // The same for many updates, which are PUTs (session_updates.h).
  class Updates;
  void Take(const SessionRecord& record);

  using Use = absl::FunctionRef<void(const SessionRecord&)>;
  // Calls `use` with records that tell of all sessions. A record is good during the call.
  void ForEachRecord(Use use) const;
  // The same in pieces: first RecordsOfUndone, then RecordsOf each token that there was then.
  std::vector<uint64_t> Tokens() const;
  void RecordsOf(uint64_t token, Use use) const;
  void RecordsOfUndone(Use use) const;

  // Returns all sessions, for a primary that begins.
  std::vector<SessionCopy> All() const;
  // What the former primary said of a deletion that nobody has does not count. Call it when the end
  // of a stream was taken.
  void ForgetUndone() { undone_.clear(); }

  size_t size() const { return copies_.size(); }

 private:
  // As Session, it has a place for each of the last `credits` numbers.
  struct Copy {
    uint32_t id = 0;
    uint32_t key_id = 0;
    uint16_t credits = 0;
    bool read_only = false;
    uint64_t highest = 0;                // of the numbers that the stream told of
    std::vector<SessionAnswer> answers;  // by number, modulo their count; number 0: none
    uint64_t mask = 0;                   // their count - 1; a power of two

    // Returns where the answer of this number goes, or nullptr if the number is over, as in
    // Session: if it is `credits` or more below the highest one.
    SessionAnswer* PlaceOf(uint64_t sequence) {
      if (sequence == 0 || sequence + credits <= highest) return nullptr;
      highest = std::max(highest, sequence);
      return &answers[sequence & mask];
    }
    void Remember(const SessionAnswer& answer);
    std::vector<SessionAnswer> InOrder() const;
  };
  struct Undone {
    uint64_t version = 0;  // of the deletion
    uint64_t token = 0;
    SessionAnswer answer{};
  };

  // The session that was asked for last. A client's requests come in a row, and then cost no
  // lookup.
  struct Recent {
    uint64_t token = 0;  // 0: none
    Copy* copy = nullptr;

    // It points into the map of the object that it is a part of, so it is neither copied nor moved.
    Recent() = default;
    Recent(const Recent&) {}
    Recent(Recent&& other) noexcept { other.token = 0; }
    Recent& operator=(const Recent&) {
      token = 0;
      return *this;
    }
    Recent& operator=(Recent&& other) noexcept {
      token = other.token = 0;
      return *this;
    }
  };

  // Returns nullptr if there is no such session.
  Copy* Find(uint64_t token);
  void TakeAnswerOf(const Change& change);
  void Begin(const SessionRecord& record);
  void CountUndone(uint64_t version);
  static void RecordsOf(uint64_t token, const Copy& copy, Use use);

  absl::flat_hash_map<uint64_t, Copy> copies_;  // by token
  Recent recent_;
  // Answers that count from a deletion on, which is the next one or soon comes. They are all of one
  // deletion, because the primary undoes one key at a time.
  std::vector<Undone> undone_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_SESSIONS_SESSION_SESSION_COPIES_H_
