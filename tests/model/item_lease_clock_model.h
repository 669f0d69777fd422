#ifndef GANNET_TESTS_MODEL_ITEM_LEASE_CLOCK_MODEL_H_
#define GANNET_TESTS_MODEL_ITEM_LEASE_CLOCK_MODEL_H_

#include <cstdint>
#include <functional>
#include <vector>

namespace gannet::model::item_lease_clock {

// The time of leases on popular items (docs/decisions/2026-11-29-item-leases.md, rules 6, 7 and 9),
// with clocks whose rates differ and change. A server renews the end of its leases. A client asks
// for the server's time, and has an upper bound of it: what it was told, plus the time since it
// asked by its own clock, at the most that the server's clock can have gone meanwhile
// (client/session/server_time_bound.h). It answers from copies while that bound is before the end
// that it READ. The server may die. Another one begins, and takes clients when it has waited.
//
// In each step each clock advances by kSlow or by kFast. This bound on rates is far more than that
// of real clocks, so few steps show what goes wrong. Times are in thirds, so that the bound is
// exact.
//
// What is to hold: when the server's clock is at the end, or the next server takes clients, the
// client answers from no copy.
struct ClockRules {
  uint8_t wait = 30;               // of the next server, by its own clock
  bool bound_allows_rates = true;  // of the server's clock, against the client's
  bool bound_from_ask = true;      // or from the answer
  bool never_jumps = true;
};

class ItemLeaseClockModel {
 public:
  static constexpr int kSlow = 3;
  static constexpr int kFast = 5;
  static constexpr int kThirds = 3;
  static constexpr uint8_t kLease = 30;  // L
  static constexpr uint8_t kAskMax = 30;
  enum class Ask : uint8_t { kNone, kRequest, kReply };

  struct State {
    uint8_t end;    // left of the server's end, by its clock
    uint8_t dead;   // the server is; its clock goes on, for the client's bound
    uint8_t next;   // the next server has begun
    uint8_t waits;  // what is left of its wait
    uint8_t jumped;
    uint8_t has_bound;  // the client has one
    int8_t bound;       // what it is ahead of the server's clock
    uint8_t has_end;    // the client READ one
    int8_t left;        // of that, by the server's clock
    Ask ask;
    uint8_t ask_age;     // what the bound grew by since
    uint8_t answer_age;  // what the server's clock advanced by since it answered
  };

  explicit ItemLeaseClockModel(const ClockRules& rules) : rules_(rules) {}

  using Emit = std::function<void(const char* label, const State&)>;
  std::vector<State> Initial() const { return {State{}}; }
  void Next(const State& state, const Emit& emit) const;
  const char* Broken(const State& state) const;
  const char* BrokenAtRest(const State&) const { return nullptr; }

 private:
  static State Passed(State state, int server, int bound, int next);
  void Time(const State& state, const Emit& emit) const;
  void ServerSteps(const State& state, const Emit& emit) const;
  void ClientSteps(const State& state, const Emit& emit) const;

  const ClockRules rules_;
};

}  // namespace gannet::model::item_lease_clock

#endif  // GANNET_TESTS_MODEL_ITEM_LEASE_CLOCK_MODEL_H_
