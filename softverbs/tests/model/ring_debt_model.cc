#include "softverbs/tests/model/ring_debt_model.h"

namespace softverbs::model::ring_debt {
namespace {

constexpr uint8_t kPackets = 2;  // of each thread

uint8_t ReadWord(const RingDebtModel::State& state) {
  return state.peer == RingDebtModel::Peer::kAwake ? 0 : state.word;
}

}  // namespace

std::vector<RingDebtModel::State> RingDebtModel::Initial() const {
  State state{};
  for (Thread& thread : state.threads) thread.left = kPackets;
  return {state};
}

void RingDebtModel::Next(const State& state, const Emit& emit) const {
  for (int thread = 0; thread < kThreads; ++thread) ThreadStep(state, thread, emit);
  PeerSteps(state, emit);
}

void RingDebtModel::ThreadStep(const State& state, int thread, const Emit& emit) const {
  State next = state;
  Thread& me = next.threads[static_cast<size_t>(thread)];
  const auto publish = [&] { ++next.ring; };
  const auto owe = [&] { next.owed = 1; };
  switch (me.step) {
    case Step::kIdle:
      if (me.left == 0) return;
      --me.left;
      rules_.packet_before_debt ? publish() : owe();
      me.step = Step::kFirst;
      return emit(rules_.packet_before_debt ? "publishes a packet" : "owes a ring", next);
    case Step::kFirst:
      rules_.packet_before_debt ? owe() : publish();
      me.step = Step::kBoth;
      return emit(rules_.packet_before_debt ? "owes a ring" : "publishes a packet", next);
    case Step::kBoth:
      me.step = state.owed != 0 ? Step::kOwed : Step::kIdle;
      return emit("looks whether a ring is owed", next);
    case Step::kOwed:
      if (!rules_.word_after_debt) me.word = ReadWord(state);
      me.step = Step::kTakes;
      return emit("goes to ring", next);
    case Step::kTakes:
      next.owed = 0;
      me.step = Step::kTaken;
      return emit("takes the debt over", next);
    case Step::kTaken:
      if (rules_.word_after_debt) me.word = ReadWord(state);
      me.step = me.word == 0 ? Step::kIdle : Step::kAsleep;
      return emit("reads the word", next);
    case Step::kAsleep:
      me.step = state.rung == me.word ? Step::kIdle : Step::kRings;
      if (me.step == Step::kIdle) return emit("sees that another rang", next);
      next.rung = me.word;
      if (!rules_.rings_what_it_noted) {
        State lost = next;
        lost.threads[static_cast<size_t>(thread)].step = Step::kIdle;
        emit("notes that it rang, and forgets to", lost);
      }
      return emit("notes that it rang", next);
    case Step::kRings:
      next.token = 1;
      me.step = Step::kIdle;
      return emit("rings", next);
  }
}

void RingDebtModel::PeerSteps(const State& state, const Emit& emit) {
  State next = state;
  switch (state.peer) {
    case Peer::kAwake:
      next.peer = Peer::kLooks;
      ++next.word;
      return emit("the peer publishes that it sleeps", next);
    case Peer::kLooks:
      next.peer = state.ring > 0 ? Peer::kAwake : Peer::kSleeps;
      next.ring = 0;
      return emit("the peer looks at the ring", next);
    case Peer::kSleeps:
      if (state.token == 0) return;
      next.token = 0;
      next.ring = 0;
      next.peer = Peer::kAwake;
      return emit("the peer was rung", next);
  }
}

const char* RingDebtModel::BrokenAtRest(const State& state) const {
  return state.ring > 0 ? "a packet that nobody looks for" : nullptr;
}

}  // namespace softverbs::model::ring_debt
