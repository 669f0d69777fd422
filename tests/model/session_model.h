#ifndef GANNET_TESTS_MODEL_SESSION_MODEL_H_
#define GANNET_TESTS_MODEL_SESSION_MODEL_H_

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace gannet::model::session {

// Exactly-once across a fail-over (docs/group.md, "Sessions"). One client sends two requests of a
// session, one after the other, without waiting for replies. The primary executes them in their
// order, and streams what it did. Replies are lost with their connection, and then the client sends
// again what was not answered: to the same primary, or to the next one, which has any part of the
// stream that has what is committed. That one may be a member that joined.
//
// What is to hold: no request takes effect twice, or after a later one; an answer says what is
// there; a client whose session did not end is told what its requests did; and a backup forgets a
// session that ended.
struct SessionRules {
  bool answers_in_change = true;      // change and answer are one record, or two
  bool streams_refusals = true;       // while later requests of the connection are under way
  bool undo_has_numbers = true;       // a deletion that undoes a write says whose answer it changes
  bool sends_sessions = true;         // a joiner gets sessions and their answers first
  bool records_end = true;            // of a session
  bool refuses_unknown_token = true;  // or takes it for a new session
};

class SessionModel {
 public:
  static constexpr uint8_t kRequests = 2;
  static constexpr uint8_t kRecordsMax = 8;
  static constexpr uint8_t kNotJoined = 0xff;
  enum Operation : uint8_t { kIncrement, kDelete, kPut };
  enum Answer : uint8_t { kNoAnswer, kOk, kNotFound, kFull, kUnknown };
  enum class Kind : uint8_t { kNone, kChange, kChangeOnly, kAnswerOnly, kRefusal, kUndo, kEnd };

  struct Record {
    Kind kind;
    uint8_t request;
    uint8_t has_number;
  };
  // What a server makes of a stream.
  struct Server {
    std::array<uint8_t, kRequests> effects;  // how often each request is in the store
    std::array<Answer, kRequests> answers;   // that the session remembers
    uint8_t present;                         // the key
    uint8_t known;                           // the session
    uint8_t late;                            // a request took effect after a later one
  };
  struct State {
    Server primary;
    std::array<Record, kRecordsMax> log;
    uint8_t end;
    uint8_t committed;
    std::array<uint8_t, kRequests> answer_at;  // the answer may be sent when this is committed
    uint8_t joined_at;                         // where the joiner's stream begins
    std::array<uint8_t, kRequests> under_way;  // requests on their way to the primary
    std::array<uint8_t, kRequests> was_sent;
    std::array<Answer, kRequests> told;  // to the client
    uint8_t connected;
    uint8_t breaks_left;
    uint8_t failovers_left;
    uint8_t fulls_left;  // writes for which the index has no room
    uint8_t ends_left;   // of the session, by the server, as the client was silent
    uint8_t was_ended;
  };

  SessionModel(const SessionRules& rules, std::array<Operation, kRequests> operations)
      : rules_(rules), operations_(operations) {}

  using Emit = std::function<void(const char* label, const State&)>;
  std::vector<State> Initial() const;
  void Next(const State& state, const Emit& emit) const;
  const char* Broken(const State& state) const;
  const char* BrokenAtRest(const State&) const { return nullptr; }

 private:
  void ClientSteps(const State& state, const Emit& emit) const;
  void ServerSteps(const State& state, const Emit& emit) const;
  void EndSession(const State& state, const Emit& emit) const;
  void FailOver(const State& state, const Emit& emit) const;
  State Resume(State state) const;
  State Execute(State state, uint8_t request) const;
  uint8_t LastChange(const State& state) const;
  void Append(State* state, const Record& record) const;
  void Apply(Server* server, const Record& record, bool with_answer) const;
  Server Replay(const State& state, uint8_t end, bool joiner) const;

  const SessionRules rules_;
  const std::array<Operation, kRequests> operations_;
};

}  // namespace gannet::model::session

#endif  // GANNET_TESTS_MODEL_SESSION_MODEL_H_
