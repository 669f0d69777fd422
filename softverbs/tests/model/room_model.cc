#include "softverbs/tests/model/room_model.h"

#include <algorithm>

namespace softverbs::model::room {
namespace {

using End = RoomModel::End;

uint8_t UnitsOf(RoomModel::Record record) {
  if (record == RoomModel::kNone) return 0;
  return record == RoomModel::kAck || record == RoomModel::kReadRequest ? 1 : 2;
}

bool Fits(const End& end, uint8_t units) {
  for (const RoomModel::Record record : end.records) {
    units = static_cast<uint8_t>(units + UnitsOf(record));
  }
  return units <= RoomModel::kUnits;
}

void Remove(End* from) {
  std::rotate(from->records.begin(), from->records.begin() + 1, from->records.end());
  from->records.back() = RoomModel::kNone;
}

// Reads the peer's sleep word. Returns true if this end is to ring.
bool ReadWord(End* end, const End& peer) {
  if (peer.asleep == 0 || end->rung != 0) return false;
  end->rung = 1;
  return true;
}

}  // namespace

std::vector<RoomModel::State> RoomModel::Initial() const {
  State state{};
  for (size_t at = 0; at < state.ends.size(); ++at) {
    End& end = state.ends[at];
    end.asleep = 1;
    end.left = end.incomplete = scenario_.applications[at].requests;
  }
  return {state};
}

void RoomModel::Next(const State& state, const Emit& emit) const {
  for (size_t end = 0; end < state.ends.size(); ++end) {
    AppSteps(state, end, emit);
    AppWaits(state, end, emit);
    EngineSteps(state, end, emit);
    EngineRings(state, end, emit);
    EngineServes(state, end, emit);
    EngineTurns(state, end, emit);
  }
}

RoomModel::Record RoomModel::NextRecord(const End& end, size_t at) const {
  const auto is_last = [&](uint8_t left) { return (left - 1) % scenario_.packets == 0; };
  if (end.acks > 0) return kAck;
  if (end.responses > 0) return is_last(end.responses) ? kLastResponse : kResponse;
  if (end.to_send == 0) return kNone;
  if (scenario_.applications[at].kind == Kind::kRead) return kReadRequest;
  return is_last(end.to_send) ? kLastData : kData;
}

void RoomModel::Publish(End* end, size_t at) const {
  const Record record = NextRecord(*end, at);
  *std::find(end->records.begin(), end->records.end(), kNone) = record;
  --(record == kAck                                   ? end->acks
     : record == kResponse || record == kLastResponse ? end->responses
                                                      : end->to_send);
}

void RoomModel::Execute(End* end, Record record) const {
  if (record == kLastData) ++end->acks;
  if (record == kReadRequest) {
    end->responses = static_cast<uint8_t>(end->responses + scenario_.packets);
  }
  if (record != kAck && record != kLastResponse) return;
  ++end->completions;
  end->event = end->event != 0 || end->armed != 0;
  end->armed = 0;
}

// What a thread sends with the queue pair's lock. An engine rings for each packet, an application
// when it has left its locks.
void RoomModel::SendSteps(const State& state, size_t at, Thread thread, const Emit& emit) const {
  State next = state;
  End& end = next.ends[at];
  const bool by_app = thread == Thread::kApp;
  Send& step = by_app ? end.app_send : end.engine_send;
  const Record record = NextRecord(end, at);
  const auto finish = [&] {
    end.qp_lock = Thread::kNobody;
    step = Send::kReserve;
    if (by_app) {
      end.app = end.sent != 0 ? App::kWord : App::kPost;
      end.sent = 0;
    } else {
      end.engine = end.engine_after;
    }
  };
  const auto publish = [&] {
    Publish(&end, at);
    end.tx_lock = Thread::kNobody;
    step = by_app ? Send::kReserve : Send::kWord;
    end.sent |= by_app;
  };
  switch (step) {
    case Send::kReserve:
      if (record == kNone) {
        finish();
        return emit("everything is sent", next);
      }
      if (end.tx_lock != Thread::kNobody) return;
      if (Fits(end, UnitsOf(record))) {
        publish();
        return emit("a packet is sent", next);
      }
      end.tx_lock = thread;
      step = Send::kAsk;
      return emit("no room for a packet", next);
    case Send::kAsk:
      if (rules_.noted_before_asking) end.hint = 1;
      end.starving = 1;
      step = rules_.looks_after_asking ? Send::kAgain : Send::kNote;
      return emit("asks for room", next);
    case Send::kAgain:
      if (Fits(end, UnitsOf(record))) {
        publish();
        return emit("a packet is sent after all", next);
      }
      step = Send::kNote;
      return emit("no room, once more", next);
    case Send::kNote:
      end.waiting = end.hint = 1;
      end.tx_lock = Thread::kNobody;
      finish();
      return emit("the queue pair is noted", next);
    case Send::kWord:
      step = ReadWord(&end, next.ends[1 - at]) ? Send::kRing : Send::kReserve;
      return emit("the engine reads the word", next);
    case Send::kRing:
      next.ends[1 - at].message = 1;
      step = Send::kReserve;
      return emit("the engine rings for a packet", next);
  }
}

void RoomModel::AppSteps(const State& state, size_t at, const Emit& emit) const {
  State next = state;
  End& end = next.ends[at];
  switch (end.app) {
    case App::kPost:
      if (end.left == 0) {
        end.app = end.incomplete > 0 ? App::kArm : App::kDone;
        return emit("the application has posted everything", next);
      }
      if (end.qp_lock != Thread::kNobody) return;
      end.qp_lock = Thread::kApp;
      --end.left;
      end.to_send = static_cast<uint8_t>(
          end.to_send + (scenario_.applications[at].kind == Kind::kRead ? 1 : scenario_.packets));
      end.app = App::kSending;
      return emit("the application posts", next);
    case App::kSending:
      return SendSteps(state, at, Thread::kApp, emit);
    case App::kWord:
      end.app = ReadWord(&end, next.ends[1 - at]) ? App::kRing : App::kPost;
      return emit("the application reads the word", next);
    case App::kRing:
      next.ends[1 - at].message = 1;
      end.app = App::kPost;
      return emit("the application rings", next);
    default:
      return;
  }
}

void RoomModel::AppWaits(const State& state, size_t at, const Emit& emit) const {
  State next = state;
  End& end = next.ends[at];
  switch (end.app) {
    case App::kArm:
      end.armed = 1;
      end.app = rules_.polls_after_arming ? App::kPoll : App::kWait;
      return emit("the application arms", next);
    case App::kPoll:
      end.app = end.completions == end.incomplete ? App::kDone
                : end.completions > 0             ? App::kArm
                                                  : App::kWait;
      end.incomplete = static_cast<uint8_t>(end.incomplete - end.completions);
      end.completions = 0;
      return emit("the application polls", next);
    case App::kWait:
      if (end.event == 0) return;
      end.event = 0;
      end.app = App::kPoll;
      return emit("the application is woken", next);
    default:
      return;
  }
}

void RoomModel::EngineSteps(const State& state, size_t at, const Emit& emit) const {
  State next = state;
  End& end = next.ends[at];
  End& peer = next.ends[1 - at];
  switch (end.engine) {
    case Engine::kAsleep:
      if (end.message == 0) return;
      end.message = 0;
      end.asleep = peer.rung = 0;
      end.engine = Engine::kTake;
      return emit("the engine wakes up", next);
    case Engine::kTake:
      if (peer.records[0] == kNone) {
        end.engine = end.handled != 0 ? Engine::kStarving : Engine::kResume;
        return emit("the engine finds no packet", next);
      }
      if (end.qp_lock != Thread::kNobody) return;
      end.qp_lock = Thread::kEngine;
      end.handled = end.worked = 1;
      if (!rules_.frees_before_it_looks) {
        end.saw_starving |= peer.starving;
        peer.starving = 0;
      }
      Execute(&end, peer.records[0]);
      end.engine = Engine::kSending;
      end.engine_after = Engine::kRelease;
      return emit("the engine executes a packet", next);
    case Engine::kSending:
      return SendSteps(state, at, Thread::kEngine, emit);
    case Engine::kRelease:
      Remove(&peer);
      end.engine = Engine::kTake;
      return emit("the engine frees a packet's room", next);
    default:
      return;
  }
}

// For the peer that waits for room.
void RoomModel::EngineRings(const State& state, size_t at, const Emit& emit) const {
  State next = state;
  End& end = next.ends[at];
  End& peer = next.ends[1 - at];
  switch (end.engine) {
    case Engine::kStarving: {
      const bool starves =
          rules_.frees_before_it_looks ? peer.starving != 0 : end.saw_starving != 0;
      if (rules_.frees_before_it_looks) peer.starving = 0;
      end.saw_starving = end.handled = 0;
      end.engine = starves && rules_.rings_for_room ? Engine::kWord : Engine::kResume;
      return emit("the engine looks whether the peer waits for room", next);
    }
    case Engine::kWord:
      end.engine = ReadWord(&end, peer) ? Engine::kRing : Engine::kResume;
      return emit("the engine reads the word for room", next);
    case Engine::kRing:
      peer.message = 1;
      end.engine = Engine::kResume;
      return emit("the engine rings for room", next);
    default:
      return;
  }
}

// For the queue pair of this process that waits for room.
void RoomModel::EngineServes(const State& state, size_t at, const Emit& emit) const {
  State next = state;
  End& end = next.ends[at];
  const auto leave_link = [&](Engine engine) {
    end.tx_lock = Thread::kNobody;
    end.engine = engine;
  };
  const auto take_waiting = [&] {
    leave_link(end.waiting != 0 ? Engine::kServe : Engine::kTurn);
    end.waiting = end.hint = 0;
  };
  switch (end.engine) {
    case Engine::kResume:
      if (end.hint == 0) {
        end.engine = Engine::kTurn;
        return emit("the engine finds that nobody waits for room", next);
      }
      if (end.tx_lock != Thread::kNobody) return;
      end.tx_lock = Thread::kEngine;
      if (end.waiting == 0 || Fits(end, kMostUnits)) {
        take_waiting();
      } else if (rules_.asks_before_sleep && end.asleep != 0) {
        end.engine = Engine::kAsk;
      } else {
        leave_link(Engine::kTurn);
      }
      return emit("the engine looks for room", next);
    case Engine::kAsk:
      end.starving = 1;
      end.engine = Engine::kAgain;
      return emit("the engine asks for room", next);
    case Engine::kAgain:
      if (Fits(end, kMostUnits)) {
        take_waiting();
      } else {
        leave_link(Engine::kTurn);
      }
      return emit("the engine looks for room once more", next);
    case Engine::kServe:
      if (end.qp_lock != Thread::kNobody) return;
      end.qp_lock = Thread::kEngine;
      end.worked = 1;
      end.engine = Engine::kSending;
      end.engine_after = Engine::kTurn;
      return emit("the engine serves the queue pair", next);
    default:
      return;
  }
}

void RoomModel::EngineTurns(const State& state, size_t at, const Emit& emit) const {
  State next = state;
  End& end = next.ends[at];
  if (end.engine != Engine::kTurn) return;
  if (end.worked != 0) {
    end.worked = 0;
    end.engine = Engine::kTake;
    return emit("the engine begins another turn", next);
  }
  if (end.asleep != 0) {
    end.engine = Engine::kAsleep;
    return emit("the engine sleeps", next);
  }
  end.asleep = 1;
  next.ends[1 - at].rung = 0;
  end.engine = rules_.looks_after_publishing ? Engine::kTake : Engine::kAsleep;
  emit("the engine publishes that it sleeps", next);
}

const char* RoomModel::BrokenAtRest(const State& state) const {
  for (const End& end : state.ends) {
    if (end.records[0] != kNone) return "a packet is never executed";
    if (end.to_send + end.responses + end.acks > 0) return "a packet waits for room for ever";
  }
  for (const End& end : state.ends) {
    if (end.app != App::kDone) return "an application never learns of a completion";
  }
  return nullptr;
}

}  // namespace softverbs::model::room
