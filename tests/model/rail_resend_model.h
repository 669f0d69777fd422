#ifndef GANNET_TESTS_MODEL_RAIL_RESEND_MODEL_H_
#define GANNET_TESTS_MODEL_RAIL_RESEND_MODEL_H_

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace gannet::model::rail_resend {

// Requests of one session over two rails (docs/decisions/2026-11-29-rails.md). The client sends two
// requests, each over any rail that lives, without waiting for replies. A rail dies: its replies
// are lost, and what it carried is lost or was received by the server, which executes it at any
// later time. The client sends what was not answered again over any rail that lives. A dead rail
// comes back.
//
// What is to hold: no request takes effect twice, or after a later one; the client is told what its
// requests did; and everybody is answered in the end.
struct RailResendRules {
  bool numbers = true;           // a request that was executed is not executed again
  bool remembers_answer = true;  // and is answered as the first time
  bool in_order = true;          // a request waits for those before it
  bool sets_aside = true;        // meanwhile the server goes on with what its rail has behind it
  bool keeps_each_copy = true;   // that was set aside, and answers it by its own rail
  bool of_session = true;        // numbers are the session's, not each connection's
};

class RailResendModel {
 public:
  static constexpr uint8_t kRequests = 2, kRails = 2, kQueueMax = 4;
  static constexpr uint8_t kNowhere = 0xff;
  enum Operation : uint8_t { kIncrement, kCompareSwap, kPut };
  enum Answer : uint8_t { kNoAnswer, kOk, kRefused };

  struct Queue {  // of a rail: requests that the server has not looked at
    std::array<uint8_t, kQueueMax> requests;
    uint8_t size;
  };
  struct State {
    std::array<Queue, kRails> queues;
    std::array<uint8_t, kRails> up;
    std::array<std::array<uint8_t, kRequests>, kRails> replies;   // on their way
    std::array<std::array<uint8_t, kRequests>, kRails> executed;  // came by this rail
    std::array<std::array<uint8_t, kRequests>, kRails> aside;     // came by this rail, and waits
    std::array<uint8_t, kRequests> sent;     // over which rail it is under way, or kNowhere
    std::array<uint8_t, kRequests> effects;  // how often it is in the store
    std::array<Answer, kRequests> answers;   // that the session remembers
    std::array<Answer, kRequests> told;      // to the client
    uint8_t late;                            // a request took effect after a later one
    uint8_t deaths_left;
    uint8_t returns_left;
  };

  RailResendModel(const RailResendRules& rules, std::array<Operation, kRequests> operations,
                  uint8_t deaths = 2)
      : rules_(rules), operations_(operations), deaths_(deaths) {}

  using Emit = std::function<void(const char* label, const State&)>;
  std::vector<State> Initial() const;
  void Next(const State& state, const Emit& emit) const;
  const char* Broken(const State& state) const;
  const char* BrokenAtRest(const State& state) const;

 private:
  static void ClientSteps(const State& state, const Emit& emit);
  static void RailSteps(const State& state, const Emit& emit);
  void ServerSteps(const State& state, const Emit& emit) const;
  void Look(State* state, uint8_t rail, uint8_t request) const;
  void Execute(State* state, uint8_t rail, uint8_t request) const;
  bool MustWait(const State& state, uint8_t request) const;
  bool WasExecuted(const State& state, uint8_t rail, uint8_t request) const;

  const RailResendRules rules_;
  const std::array<Operation, kRequests> operations_;
  const uint8_t deaths_;
};

}  // namespace gannet::model::rail_resend

#endif  // GANNET_TESTS_MODEL_RAIL_RESEND_MODEL_H_
