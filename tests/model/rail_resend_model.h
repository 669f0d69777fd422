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
// The client may give a request up, at any time. Then it sends a request without effect under the
// same number: at once by another rail, and instead of the request if that is to be sent again. And
// the server may answer that it did nothing, and that the client is to try again by another
// request.
//
// What is to hold: no request takes effect twice, or after a later one; the client is told what its
// requests did; and everybody is answered in the end.
struct RailResendRules {
  bool numbers = true;              // a request that was executed is not executed again
  bool remembers_answer = true;     // and is answered as the first time
  bool in_order = true;             // a request waits for those before it
  bool sets_aside = true;           // meanwhile the server goes on with what its rail has behind it
  bool keeps_each_copy = true;      // that was set aside, and answers it by its own rail
  bool of_session = true;           // numbers are the session's, not each connection's
  bool tells = true;                // of a number that was given up
  bool remembers_given_up = true;   // as an answer: the request is not executed afterwards
  bool remembers_try_again = true;  // the same of a request that was answered so
};

class RailResendModel {
 public:
  static constexpr uint8_t kRequests = 2, kRails = 2, kQueueMax = 4;
  static constexpr uint8_t kNowhere = 0xff;
  enum Operation : uint8_t { kIncrement, kCompareSwap, kPut };
  // kNothing: to a request without effect, which stands for one that was given up.
  enum Answer : uint8_t { kNoAnswer, kOk, kRefused, kTryAgain, kNothing };
  // A copy of a request; added to its number: it has no effect.
  static constexpr uint8_t kWithoutEffect = 0x10;

  struct Queue {  // of a rail: requests that the server has not looked at
    std::array<uint8_t, kQueueMax> requests;
    uint8_t size;
  };
  struct State {
    std::array<Queue, kRails> queues;
    std::array<uint8_t, kRails> up;
    std::array<std::array<Answer, kRequests>, kRails> replies;    // on their way
    std::array<std::array<uint8_t, kRequests>, kRails> executed;  // came by this rail
    // Came by this rail, and waits: the request, and one without effect.
    std::array<std::array<std::array<uint8_t, 2>, kRequests>, kRails> aside;
    std::array<uint8_t, kRequests> sent;      // over which rail it is under way, or kNowhere
    std::array<uint8_t, kRequests> given_up;  // nobody waits for the answer
    std::array<uint8_t, kRequests> begun;     // the next one need not wait for it
    std::array<uint8_t, kRequests> effects;   // how often it is in the store
    std::array<Answer, kRequests> answers;    // that the session remembers
    std::array<Answer, kRequests> told;       // to the client
    uint8_t late;                             // a request took effect after a later one
    uint8_t deaths_left;
    uint8_t returns_left;
    uint8_t gives_up_left;
    uint8_t try_agains_left;
  };

  // How often a rail dies, a request is given up, and the server has it tried again.
  struct Times {
    uint8_t deaths = 2;
    uint8_t gives_up = 0;
    uint8_t try_agains = 0;
  };

  RailResendModel(const RailResendRules& rules, std::array<Operation, kRequests> operations,
                  const Times& times)
      : rules_(rules), operations_(operations), times_(times) {}

  using Emit = std::function<void(const char* label, const State&)>;
  std::vector<State> Initial() const;
  void Next(const State& state, const Emit& emit) const;
  const char* Broken(const State& state) const;
  const char* BrokenAtRest(const State& state) const;

 private:
  void ClientSteps(const State& state, const Emit& emit) const;
  void GiveUp(const State& state, uint8_t request, const Emit& emit) const;
  static void RailSteps(const State& state, const Emit& emit);
  void ServerSteps(const State& state, const Emit& emit) const;
  void Look(const State& state, uint8_t rail, uint8_t copy, const Emit& emit) const;
  void Execute(const State& state, uint8_t rail, uint8_t copy, const Emit& emit) const;
  void Perform(State* state, uint8_t rail, uint8_t request) const;
  bool MustWait(const State& state, uint8_t request) const;
  bool WasExecuted(const State& state, uint8_t rail, uint8_t request) const;

  const RailResendRules rules_;
  const std::array<Operation, kRequests> operations_;
  const Times times_;
};

}  // namespace gannet::model::rail_resend

#endif  // GANNET_TESTS_MODEL_RAIL_RESEND_MODEL_H_
