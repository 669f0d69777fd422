#ifndef GANNET_TESTS_MODEL_EXPIRY_MODEL_H_
#define GANNET_TESTS_MODEL_EXPIRY_MODEL_H_

#include <cstdint>
#include <functional>
#include <vector>

namespace gannet::model::expiry {

// Who may call an item expired (docs/consistency.md, "Expiry"). A key has an item that expires when
// the server's clock reaches kExpiry. A client GETs it with READs, by bounds of that clock. Another
// one adds a value if the key is absent, and a third puts one whatever is there. The server decides
// by a time that it read, and its Poll may have begun long before a request came.
//
// Once, another member of a group may become primary (docs/group.md): then READs under way are
// thrown away, requests are sent again, and the clock is the new primary's. Either it takes over
// when the lease is over, and knows how far the former clock may have gone by then. Or the primary
// hands over: it stops, so that nobody believes it or its clock any more, tells its clock in a
// beacon as the last, and names the successor, whose clock goes on from what it was told last. That
// may fail, and the primary goes on. A clock that is ahead of its machine's is slewed: it loses
// time, but never goes back.
//
// What is to hold: it is as if the item were deleted when the clock reaches its expiry. So each
// answer must be what the key has at some moment of its operation.
//
// The model leaves out how an item is READ and proved: a sample is whole and current.
struct ExpiryRules {
  bool bound_from_begin = true;    // a miss needs the lower bound of when the GET began
  bool bound_is_lower = true;      // that bound is never ahead of the server's clock
  bool alive_by_upper = true;      // a hit needs the upper bound of when it is believed
  bool server_looks_again = true;  // the server reads the clock for a request that came in a Poll
  bool clock_goes_on = true;       // a new primary's clock is not behind the old one's
  bool new_bounds = true;          // a client gets new bounds of it
  bool last_is_told = true;        // the successor begins with what it was told as the last
  bool stops_first = true;         // that is told once nobody believes the primary any more
  bool told_again = true;          // a successor is named once it was told so in this hand-over
  bool slewed = true;              // a clock that is ahead is not set back
  bool slewed_slowly = true;       // and loses no more than clients allow for
};

class ExpiryModel {
 public:
  static constexpr uint8_t kExpiry = 2;
  static constexpr uint8_t kClockMax = 3;
  static constexpr uint8_t kNoPoll = 0xff;
  // What the key has.
  enum Content : uint8_t { kAbsent, kExpiring, kOther };
  enum class Reader : uint8_t { kIdle, kBegun, kSampled, kAsking };

  struct State {
    uint8_t clock;
    Content content;
    uint8_t polled_at;  // the server is in a Poll that began at this time, or kNoPoll
    uint8_t gets_left;
    Reader reader;
    uint8_t bound;   // the lower bound when the GET began
    Content sample;  // what was READ
    uint8_t may;     // what the key had since the GET began, a bit for each Content
    uint8_t add;     // 0 not sent, 1 sent, 2 over
    uint8_t add_may;
    uint8_t put_left;
    uint8_t fail_overs_left;
    uint8_t jump;      // of the clock, by which a bound of the old one is wrong
    uint8_t told;      // of the clock, to the successor
    uint8_t last;      // as the last of it
    uint8_t answered;  // the successor was told that in this hand-over
    uint8_t stopped;   // for a hand-over
    uint8_t hand_overs_left;
    uint8_t slews_left;
    uint8_t expired;  // the clock has reached the expiry, whatever it says now
    uint8_t wrong;    // an answer that the key did not have meanwhile
  };

  explicit ExpiryModel(const ExpiryRules& rules) : rules_(rules) {}

  using Emit = std::function<void(const char* label, const State&)>;
  std::vector<State> Initial() const;
  void Next(const State& state, const Emit& emit) const;
  const char* Broken(const State& state) const;
  const char* BrokenAtRest(const State&) const { return nullptr; }

 private:
  static Content Now(const State& state);
  // Takes a step, and notes for all operations what the key has then.
  static void Take(const char* label, State next, const Emit& emit);
  static void Answer(const char* label, State next, Content answer, const Emit& emit);
  // Returns the latest lower bound that a client may have.
  uint8_t LowerMax(const State& state) const;
  void ReaderSteps(const State& state, const Emit& emit) const;
  void Slew(const State& state, const Emit& emit) const;
  void FailOver(const State& state, const Emit& emit) const;
  void HandOver(const State& state, const Emit& emit) const;
  // The clock of the next primary begins with this.
  static void Succeed(const char* label, State next, int clock, const Emit& emit);
  void Decide(const State& state, const Emit& emit) const;
  void ServerSteps(const State& state, const Emit& emit) const;

  const ExpiryRules rules_;
};

}  // namespace gannet::model::expiry

#endif  // GANNET_TESTS_MODEL_EXPIRY_MODEL_H_
