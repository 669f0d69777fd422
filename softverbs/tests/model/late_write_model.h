#ifndef SOFTVERBS_TESTS_MODEL_LATE_WRITE_MODEL_H_
#define SOFTVERBS_TESTS_MODEL_LATE_WRITE_MODEL_H_

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace softverbs::model::late_write {

// A WRITE between two hosts (softverbs/nic/remote_pump.h), and the error that its requester reports
// when no answer comes. The network and the target's buffers keep a packet as long as they like:
// the network is cut and heals, the target's process is stopped and goes on. The target sends its
// clock (a tick) now and then. A packet carries the newest tick that its requester has, so it left
// after that tick. The target executes a packet only if its tick is younger than kLifetime. The
// requester gives up after a while, sends nothing more on that connection, waits until its last
// tick is kLifetime old, and reports the error. Then it uses a new connection. The target's process
// may die, and another one takes its place.
//
// What is to hold: no WRITE is executed after its error was reported, and none by a process that it
// was not sent to. The clocks run equally fast. The model leaves out that a target may be stopped
// between its look at the clock and the end of its copy.
struct LateWriteRules {
  bool target_looks_at_age = true;       // it refuses packets with an old tick
  bool age_from_tick = true;             // and not from the packet's arrival
  bool stops_before_report = true;       // the requester sends nothing more once it reported
  bool waits_for_last_tick = true;       // it reports only when its last tick is old
  bool tick_of_own_connection = true;    // a newer connection's tick does not count for this one
  bool refuses_older_connection = true;  // a new process takes no packets of its predecessor
};

class LateWriteModel {
 public:
  static constexpr int kConnections = 2;
  enum class Stage : uint8_t { kIdle, kWaits, kStopped, kReported };
  enum class Place : uint8_t { kNone, kRing, kNetwork, kBuffer, kGone };

  struct Connection {
    Stage stage;
    Place write;
    uint8_t posted_at;
    uint8_t arrived_at;
    uint8_t tick_under_way;  // the target's time when it sent it, plus 1; 0: none
    uint8_t tick;            // the newest one that the requester has, plus 1
    uint8_t tick_taken_at;
    uint8_t stamp;  // of the WRITE
    uint8_t meant;  // the process that the connection was made to
  };
  struct State {
    std::array<Connection, kConnections> connections;
    uint8_t now;
    uint8_t current;  // the requester's connection
    uint8_t process;  // of the target; counts
    uint8_t late;
    uint8_t misled;
  };

  explicit LateWriteModel(const LateWriteRules& rules) : rules_(rules) {}

  using Emit = std::function<void(const char* label, const State&)>;
  std::vector<State> Initial() const { return {State{}}; }
  void Next(const State& state, const Emit& emit) const;
  const char* Broken(const State& state) const;
  const char* BrokenAtRest(const State&) const { return nullptr; }

 private:
  void RequesterSteps(const State& state, size_t c, const Emit& emit) const;
  void NetworkSteps(const State& state, size_t c, const Emit& emit) const;
  void TargetSteps(const State& state, size_t c, const Emit& emit) const;
  bool TooOld(const State& state, size_t c) const;

  const LateWriteRules rules_;
};

}  // namespace softverbs::model::late_write

#endif  // SOFTVERBS_TESTS_MODEL_LATE_WRITE_MODEL_H_
