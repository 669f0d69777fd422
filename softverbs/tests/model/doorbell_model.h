#ifndef SOFTVERBS_TESTS_MODEL_DOORBELL_MODEL_H_
#define SOFTVERBS_TESTS_MODEL_DOORBELL_MODEL_H_

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace softverbs::model::doorbell {

// How a process that sleeps on softverbs is woken (softverbs/nic/packet_engine.h,
// softverbs/cq/channel.h). Two peers put packets into a ring each. The first one's packets are
// SENDs: they bring a completion, and an event when the completion queue is armed. The second one's
// only want to be executed, as READs of memory that is not mapped do.
//
// A peer publishes its packet, then reads the sleep word, and rings whom the word names unless it
// rang for that word already: the loop thread, or the descriptor that the application waits on.
// The application polls, arms, goes to sleep, waits on its descriptor, takes the tokens out of it,
// drives the engine and takes its event. The loop thread drives when it was rung, and a standby
// timer looks after an application that armed and does not wait.
//
// The first peer sleeps until its SENDs are acknowledged. Whoever executes them acknowledges them
// and rings that peer, except an application thread that drives an engine that is awake: it owes
// the ring, since its own answer may ring as well.
struct DoorbellRules {
  bool packet_before_word = true;       // a peer publishes its packet before it reads the word
  bool look_after_publishing = true;    // whoever publishes a sleep looks at all rings then
  bool new_word_when_rung = true;       // whoever was rung publishes another word before it looks
  bool look_after_tokens = true;        // also when an event was queued together with a ring
  bool sleep_again_for_nothing = true;  // whoever was rung for nothing goes to sleep once more
  bool standby = true;
  bool pays_before_sleep = true;  // whoever publishes a sleep first rings where it owes that
};

struct DoorbellScenario {
  uint8_t sends = 2;
  uint8_t quiet_packets = 1;
  // The application may stop for good, at any time after it armed or when it took an event.
  bool lazy = false;
};

class DoorbellModel {
 public:
  enum class App : uint8_t {
    kPolling,
    kArming,      // the CQ is armed; the engine is to go to sleep
    kLooking,     // at ring `app_ring`, asleep
    kPolling2,    // once more, after arming
    kWaiting,     // on the descriptor
    kTaking,      // woken: takes the tokens
    kRung,        // took them: drives
    kDriving,     // at ring `app_ring`, awake
    kEvent,       // takes its event
    kResleeping,  // was rung for nothing
    kGone,
  };
  enum class Loop : uint8_t { kIdle, kRung, kDriving, kLooking };
  enum class Peer : uint8_t { kIdle, kHasWord, kPublished, kRings };
  // Words are not counted: only whether one is still published matters.
  enum class Word : uint8_t { kNone, kNow, kOld };
  static constexpr int kPeers = 2;

  struct PeerState {
    Peer step;
    uint8_t left;  // packets to send
    uint8_t ring;  // packets published and not executed
    Word word;     // that it read and is to ring for
    uint8_t rung;  // it rang for the word that is published now
    uint8_t rings_bell;
  };
  struct State {
    uint8_t asleep;
    uint8_t bell;     // whom the word names
    uint8_t mutex;    // 0 free, 1 the application's, 2 the loop thread's
    uint8_t token;    // in the descriptor
    uint8_t message;  // for the loop thread
    uint8_t armed;
    uint8_t events;
    uint8_t completions;
    uint8_t unheard;  // the first peer was not rung for an acknowledgement that is there
    App app;
    uint8_t app_ring;
    uint8_t app_again;  // this look found something
    Loop loop;
    uint8_t loop_ring;
    uint8_t loop_again;
    uint8_t standby;  // the timer is armed
    uint8_t life;     // the application took part since the timer was
    std::array<PeerState, kPeers> peers;
  };

  DoorbellModel(const DoorbellRules& rules, const DoorbellScenario& scenario)
      : rules_(rules), scenario_(scenario) {}

  using Emit = std::function<void(const char* label, const State&)>;
  std::vector<State> Initial() const;
  void Next(const State& state, const Emit& emit) const;
  const char* Broken(const State& state) const;
  const char* BrokenAtRest(const State& state) const;

 private:
  void PeerSteps(const State& state, int peer, const Emit& emit) const;
  void AppSteps(const State& state, const Emit& emit) const;
  void AppWakes(const State& state, const Emit& emit) const;
  void LoopSteps(const State& state, const Emit& emit) const;
  void StandbySteps(const State& state, const Emit& emit) const;
  // The application begins to sleep, with the lock.
  State BeginSleep(State state) const;
  void Publish(State* state, bool asleep, bool bell) const;
  // Executes what is in a peer's ring; true if there was anything. `owes`: the ring for the
  // acknowledgement may wait.
  bool Execute(State* state, int peer, bool owes = false) const;

  const DoorbellRules rules_;
  const DoorbellScenario scenario_;
};

}  // namespace softverbs::model::doorbell

#endif  // SOFTVERBS_TESTS_MODEL_DOORBELL_MODEL_H_
