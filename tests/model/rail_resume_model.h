#ifndef GANNET_TESTS_MODEL_RAIL_RESUME_MODEL_H_
#define GANNET_TESTS_MODEL_RAIL_RESUME_MODEL_H_

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace gannet::model::rail_resume {

// Requests by one rail at a time (docs/decisions/2026-11-29-rails.md, "The first release"). A
// client sends three requests of a session over its first connection, without waiting for replies.
// The connection breaks, whatever the reason: what it carries is on the wire, waits in the
// completion queue of its rail, or is lost. The client connects anew over the other rail, and the
// session resumes there. It sends what was not answered again, or gives some of it up, because the
// calls are over. The server takes requests from the completion queues of both rails, in any order.
//
// What is to hold: no request takes effect twice, or after a later one; the client is told what its
// requests did; and all that it did not give up is answered.
struct RailResumeRules {
  bool numbers = true;     // a request that was executed is not executed again
  bool of_session = true;  // numbers are the session's, not each connection's
  bool closes_old = true;  // the old queue pair is in the error state before the new one is granted
  bool drops_old = true;   // and what it had received is dropped, or was executed
  bool sends_in_order = true;  // what was not answered is sent again before anything new
};

class RailResumeModel {
 public:
  static constexpr uint8_t kRequests = 3, kRails = 2, kQueueMax = 6;
  static constexpr uint8_t kNobody = 0xff;
  enum Call : uint8_t { kUnsent, kWaits, kToSendAgain, kTold, kGivenUp };

  struct Queue {
    std::array<uint8_t, kQueueMax> requests;
    uint8_t size;
  };
  struct State {
    std::array<Queue, kRails> wires;     // that the server's device has not received
    std::array<Queue, kRails> received;  // in the completion queue of the rail
    std::array<std::array<uint8_t, kRequests>, kRails> replies;   // on their way
    std::array<std::array<uint8_t, kRequests>, kRails> executed;  // came by this rail
    std::array<Call, kRequests> calls;
    std::array<uint8_t, kRequests> effects;
    uint8_t rail;  // that carries requests
    uint8_t connected;
    uint8_t breaks_left;
    uint8_t late;  // a request took effect after a later one
  };

  explicit RailResumeModel(const RailResumeRules& rules) : rules_(rules) {}

  using Emit = std::function<void(const char* label, const State&)>;
  std::vector<State> Initial() const;
  void Next(const State& state, const Emit& emit) const;
  const char* Broken(const State& state) const;
  const char* BrokenAtRest(const State& state) const;

 private:
  void Client(const State& state, const Emit& emit) const;
  void Resume(const State& state, const Emit& emit) const;
  static void Break(const State& state, const Emit& emit);
  void Server(const State& state, uint8_t rail, const Emit& emit) const;
  void Execute(State* state, uint8_t rail, uint8_t request) const;

  const RailResumeRules rules_;
};

}  // namespace gannet::model::rail_resume

#endif  // GANNET_TESTS_MODEL_RAIL_RESUME_MODEL_H_
