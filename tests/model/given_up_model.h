#ifndef GANNET_TESTS_MODEL_GIVEN_UP_MODEL_H_
#define GANNET_TESTS_MODEL_GIVEN_UP_MODEL_H_

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace gannet::model::given_up {

// What a client gives up with its connection (docs/protocol.md, "Sessions and sequence numbers").
// One client sends writes of one key, as many at a time as it has credits. The primary decides them
// in their order, and holds the replies until they are committed, which may take long. A client
// that loses its connection may give up what it waits for, and has the credits for it again. So the
// next request may push a number out of the session's window that still waits here. The primary
// then gives up that number's reply, as long as few wait so, and puts off the request when they are
// many. A server that notices the loss of a connection later than the client is not in this model:
// it closes the new one, and the client comes back.
//
// What is to hold: no request takes effect twice, or after a later one; an answer is the request's
// own; what waits has a bound; no client that keeps to its credits is dropped, or waits for ever.
struct GivenUpRules {
  bool gives_up = true;           // or the number stays in progress
  bool only_in_the_way = true;    // or all that waits of the session
  bool records_no_answer = true;  // of what was given up
  bool bounded = true;            // what was given up and still waits
  bool puts_off = true;           // a request beyond the bound; or drops the client
  bool in_order = true;           // what is behind one that is put off is put off, too
  bool first_alone = true;        // the client sends again the first one only, and nothing behind
};

class GivenUpModel {
 public:
  static constexpr uint8_t kRequests = 8;  // numbers 1 to kRequests
  static constexpr uint8_t kCredits = 2;
  static constexpr uint8_t kGivenUpPerCredit = 1;

  enum class Client : uint8_t { kUnsent, kWaits, kTold, kGivenUp };
  enum class Progress : uint8_t { kNone, kInProgress, kAnswered };

  enum class Again : uint8_t { kNo, kToSend, kSent };  // the client was told that it is put off
  // A request on its way. number 0: none.
  struct Message {
    uint8_t number;
    uint8_t sent_again;  // its client was told that it is put off
  };
  // What the session remembers of a number.
  struct Record {
    uint8_t number;
    Progress progress;
    uint8_t answer_of;  // whose answer it is
  };
  struct Held {
    uint8_t number;
    uint8_t given_up;
    uint8_t lost;  // its connection is gone
  };
  struct State {
    std::array<Client, kRequests + 1> client;
    std::array<Again, kRequests + 1> again;
    std::array<Message, kCredits> under_way;  // oldest first
    uint8_t connected;
    uint8_t breaks_left;
    std::array<Record, kCredits> records;  // by number % kCredits
    uint8_t highest;
    uint8_t put_off;                               // the lowest number that is; 0: none
    std::array<uint8_t, kRequests + 1> tells_off;  // a reply that says so is on its way
    std::array<Held, kRequests> held;              // oldest first
    uint8_t held_size;
    std::array<uint8_t, kRequests + 1> effects;
    uint8_t last;      // the highest number that took effect
    uint8_t late;      // a request took effect after a later one
    uint8_t mistaken;  // an answer was another request's
    uint8_t dropped;   // the client was
  };

  explicit GivenUpModel(const GivenUpRules& rules) : rules_(rules) {}

  using Emit = std::function<void(const char* label, const State&)>;
  std::vector<State> Initial() const;
  void Next(const State& state, const Emit& emit) const;
  const char* Broken(const State& state) const;
  const char* BrokenAtRest(const State&) const { return nullptr; }
  bool Settled(const State& state) const;

 private:
  enum class Admission : uint8_t { kExecute, kReplay, kRedirected, kPutOff, kDropped };

  void ClientSends(const State& state, const Emit& emit) const;
  void ClientComesBack(const State& state, const Emit& emit) const;
  void ServerSteps(const State& state, const Emit& emit) const;
  State Arrive(State state) const;
  Admission Admit(State* state, Message message) const;
  Admission GiveUpInTheWayOf(State* state, uint8_t number) const;
  State Commit(State state) const;
  static void Send(State* state, uint8_t number, bool again);
  static void TellOff(State* state, uint8_t number);
  static void Tell(State* state, uint8_t number, uint8_t answer_of);

  const GivenUpRules rules_;
};

}  // namespace gannet::model::given_up

#endif  // GANNET_TESTS_MODEL_GIVEN_UP_MODEL_H_
