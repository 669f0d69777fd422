#include "softverbs/tests/model/doorbell_model.h"

namespace softverbs::model::doorbell {
namespace {

constexpr uint8_t kFree = 0;
constexpr uint8_t kByApp = 1;
constexpr uint8_t kByLoop = 2;

}  // namespace

std::vector<DoorbellModel::State> DoorbellModel::Initial() const {
  State state{};
  state.asleep = 1;
  state.peers[0].left = scenario_.sends;
  state.peers[1].left = scenario_.quiet_packets;
  return {state};
}

void DoorbellModel::Publish(State* state, bool asleep, bool bell) const {
  if (asleep && rules_.pays_before_sleep) state->unheard = 0;
  state->asleep = asleep;
  state->bell = asleep && bell;
  for (PeerState& peer : state->peers) {
    peer.rung = 0;
    if (peer.word == Word::kNow) peer.word = Word::kOld;
  }
}

bool DoorbellModel::Execute(State* state, int peer, bool owes) const {
  PeerState& from = state->peers[static_cast<size_t>(peer)];
  if (from.ring == 0) return false;
  if (peer == 0) {
    if (owes) state->unheard = 1;
    state->completions = static_cast<uint8_t>(state->completions + from.ring);
    if (state->armed != 0) {
      state->armed = 0;
      ++state->events;
      state->token = 1;
    }
  }
  from.ring = 0;
  return true;
}

void DoorbellModel::Next(const State& state, const Emit& emit) const {
  for (int peer = 0; peer < kPeers; ++peer) PeerSteps(state, peer, emit);
  AppSteps(state, emit);
  AppWakes(state, emit);
  LoopSteps(state, emit);
  StandbySteps(state, emit);
}

void DoorbellModel::PeerSteps(const State& state, int peer, const Emit& emit) const {
  State next = state;
  PeerState& me = next.peers[static_cast<size_t>(peer)];
  const auto read_word = [&] {
    const bool rings = state.asleep != 0 && me.rung == 0;
    me.word = rings ? Word::kNow : Word::kNone;
    me.rings_bell = rings ? state.bell : 0;
  };
  switch (me.step) {
    case Peer::kIdle:
      if (me.left == 0) return;
      if (rules_.packet_before_word) {
        --me.left;
        ++me.ring;
        me.step = Peer::kPublished;
        return emit("a peer publishes a packet", next);
      }
      read_word();
      me.step = Peer::kHasWord;
      return emit("a peer reads the word first", next);
    case Peer::kHasWord:
      --me.left;
      ++me.ring;
      me.step = Peer::kRings;
      return emit("a peer publishes a packet after it read the word", next);
    case Peer::kPublished:
      read_word();
      me.step = Peer::kRings;
      return emit("a peer reads the word", next);
    case Peer::kRings:
      me.step = Peer::kIdle;
      if (me.word != Word::kNone) {
        me.rung = me.word == Word::kNow;
        (me.rings_bell != 0 ? next.token : next.message) = 1;
      }
      me.word = Word::kNone;
      me.rings_bell = 0;
      return emit("a peer rings if need be", next);
  }
}

DoorbellModel::State DoorbellModel::BeginSleep(State state) const {
  state.mutex = kByApp;
  state.standby = rules_.standby;
  state.life = 1;
  if (state.asleep != 0 && state.bell != 0) {
    state.mutex = kFree;
    state.app = App::kPolling2;
    return state;
  }
  Publish(&state, true, true);
  state.app = App::kLooking;
  state.app_ring = 0;
  state.app_again = 0;
  if (!rules_.look_after_publishing) {
    state.mutex = kFree;
    state.app = App::kPolling2;
  }
  return state;
}

// Up to where it waits.
void DoorbellModel::AppSteps(const State& state, const Emit& emit) const {
  State next = state;
  switch (state.app) {
    case App::kPolling:
      next.completions = 0;
      next.armed = 1;
      next.app = App::kArming;
      return emit("the application polls until nothing is there, and arms", next);
    case App::kArming:
    case App::kResleeping:
      if (state.mutex != kFree) return;
      return emit("the application goes to sleep", BeginSleep(state));
    case App::kLooking:
      next.app_again |= Execute(&next, state.app_ring);
      if (++next.app_ring == kPeers) {
        next.app_ring = 0;
        if (next.app_again == 0) {
          next.mutex = kFree;
          next.app = App::kPolling2;
        }
        next.app_again = 0;
      }
      return emit("the application looks at a ring", next);
    case App::kPolling2:
      next.app = state.completions > 0 ? App::kPolling : App::kWaiting;
      return emit("the application polls once more", next);
    case App::kWaiting:
      if (scenario_.lazy) {
        next.app = App::kGone;
        emit("the application does something else, for good", next);
        next.app = state.app;
      }
      if (state.token == 0) return;
      next.app = App::kTaking;
      return emit("the application is woken", next);
    default:
      return;
  }
}

void DoorbellModel::AppWakes(const State& state, const Emit& emit) const {
  State next = state;
  switch (state.app) {
    case App::kTaking:
      next.token = 0;
      next.app = !rules_.look_after_tokens && state.events > 0 ? App::kEvent : App::kRung;
      return emit("the application takes the tokens", next);
    case App::kRung:
      if (state.mutex != kFree) return;
      next.life = 1;
      if (state.asleep == 0 || state.bell == 0) {
        next.app = App::kEvent;
        return emit("the application finds that others look at the rings", next);
      }
      next.mutex = kByApp;
      if (rules_.new_word_when_rung) Publish(&next, false, false);
      next.standby = rules_.standby;
      next.app = App::kDriving;
      next.app_ring = 0;
      return emit("the application wakes the engine", next);
    case App::kDriving:
      Execute(&next, state.app_ring, /*owes=*/state.asleep == 0);
      if (++next.app_ring == kPeers) {
        next.app_ring = 0;
        next.mutex = kFree;
        next.app = App::kEvent;
      }
      return emit("the application drives a ring", next);
    case App::kEvent:
      if (state.events > 0) {
        --next.events;
        next.token = next.events > 0 ? 1 : state.token;
        if (scenario_.lazy) {
          next.app = App::kGone;
          emit("the application takes its event and does something else, for good", next);
        }
        next.app = App::kPolling;
        return emit("the application takes its event", next);
      }
      next.app = rules_.sleep_again_for_nothing ? App::kResleeping : App::kWaiting;
      return emit("the application was rung for nothing", next);
    default:
      return;
  }
}

void DoorbellModel::LoopSteps(const State& state, const Emit& emit) const {
  State next = state;
  switch (state.loop) {
    case Loop::kIdle:
      if (state.message == 0) return;
      next.message = 0;
      next.loop = Loop::kRung;
      return emit("the loop thread takes the message", next);
    case Loop::kRung:
      if (state.mutex != kFree) return;
      next.mutex = kByLoop;
      if (state.asleep != 0 && rules_.new_word_when_rung) Publish(&next, false, false);
      next.loop = Loop::kDriving;
      next.loop_ring = 0;
      return emit("the loop thread wakes the engine", next);
    case Loop::kDriving:
      Execute(&next, state.loop_ring);
      if (++next.loop_ring < kPeers) return emit("the loop thread drives a ring", next);
      next.loop_ring = 0;
      next.loop_again = 0;
      next.loop = Loop::kLooking;
      Publish(&next, true, false);
      if (!rules_.look_after_publishing) {
        next.mutex = kFree;
        next.loop = Loop::kIdle;
      }
      return emit("the loop thread drives a ring, and goes to sleep", next);
    case Loop::kLooking:
      next.loop_again |= Execute(&next, state.loop_ring);
      if (++next.loop_ring == kPeers) {
        next.loop_ring = 0;
        if (next.loop_again == 0) {
          next.mutex = kFree;
          next.loop = Loop::kIdle;
        }
        next.loop_again = 0;
      }
      return emit("the loop thread looks at a ring", next);
  }
}

// The timer runs on the loop thread.
void DoorbellModel::StandbySteps(const State& state, const Emit& emit) const {
  if (state.standby == 0 || state.loop != Loop::kIdle || state.mutex != kFree) return;
  State next = state;
  if (state.asleep != 0 && state.bell == 0) {
    next.standby = 0;
    return emit("standby finds the loop thread rung", next);
  }
  if (state.asleep != 0) {
    for (int peer = 0; peer < kPeers; ++peer) Execute(&next, peer);
  }
  if (state.life != 0) {
    next.life = 0;
    return emit("standby finds that the application takes part", next);
  }
  next.standby = 0;
  next.mutex = kByLoop;
  Publish(&next, true, false);
  next.loop = Loop::kLooking;
  next.loop_ring = 0;
  next.loop_again = 0;
  emit("standby takes over", next);
}

const char* DoorbellModel::Broken(const State&) const { return nullptr; }

const char* DoorbellModel::BrokenAtRest(const State& state) const {
  for (const PeerState& peer : state.peers) {
    if (peer.ring > 0) return "a packet is never executed";
  }
  if (state.app != App::kGone && state.completions > 0) return "a completion is never polled";
  if (state.unheard != 0) return "a peer never hears of an acknowledgement";
  return nullptr;
}

}  // namespace softverbs::model::doorbell
