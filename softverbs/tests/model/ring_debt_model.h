#ifndef SOFTVERBS_TESTS_MODEL_RING_DEBT_MODEL_H_
#define SOFTVERBS_TESTS_MODEL_RING_DEBT_MODEL_H_

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace softverbs::model::ring_debt {

// How threads of one process share a debt (softverbs/nic/link.h, RingFor). Two threads send packets
// over one link. Each puts its packet into the ring, notes that a ring is owed, and leaves its
// locks. Then it takes the debt over, if it is still there, reads the peer's word, and rings if the
// peer sleeps and nobody rang for this sleep. The peer sleeps whenever it likes. It publishes that,
// and then looks at the ring once more. doorbell_model.h has the rest of the peer.
//
// What is to hold: no packet is left in the ring of a peer that sleeps and will not be rung.
struct RingDebtRules {
  bool packet_before_debt = true;   // the debt is noted after the packet was published
  bool word_after_debt = true;      // whoever takes the debt over reads the word afterwards
  bool rings_what_it_noted = true;  // whoever noted that it rang for a word does ring
};

class RingDebtModel {
 public:
  static constexpr int kThreads = 2;
  enum class Step : uint8_t { kIdle, kFirst, kBoth, kOwed, kTakes, kTaken, kAsleep, kRings };
  enum class Peer : uint8_t { kAwake, kLooks, kSleeps };

  struct Thread {
    Step step;
    uint8_t left;  // packets to send
    uint8_t word;  // that it read; 0: the peer was awake
  };
  struct State {
    std::array<Thread, kThreads> threads;
    Peer peer;
    uint8_t word;  // of this sleep, or of the last one
    uint8_t ring;  // packets
    uint8_t owed;
    uint8_t rung;  // the word that somebody rang for last
    uint8_t token;
  };

  explicit RingDebtModel(const RingDebtRules& rules) : rules_(rules) {}

  using Emit = std::function<void(const char* label, const State&)>;
  std::vector<State> Initial() const;
  void Next(const State& state, const Emit& emit) const;
  const char* Broken(const State&) const { return nullptr; }
  const char* BrokenAtRest(const State& state) const;

 private:
  void ThreadStep(const State& state, int thread, const Emit& emit) const;
  static void PeerSteps(const State& state, const Emit& emit);

  const RingDebtRules rules_;
};

}  // namespace softverbs::model::ring_debt

#endif  // SOFTVERBS_TESTS_MODEL_RING_DEBT_MODEL_H_
