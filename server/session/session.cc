#include "server/session/session.h"

#include "glog/logging.h"

namespace gannet {

Session::Session(uint32_t id, uint64_t token, uint16_t credits)
    : id_(id), token_(token), records_(credits) {
  CHECK_GE(credits, 1);
}

bool Session::AnyInProgressBelow(uint64_t floor) const {
  if (in_progress_ == 0) return false;
  for (const Record& record : records_) {
    if (record.state == State::kInProgress && record.sequence < floor) return true;
  }
  return false;
}

Session::Admission Session::Admit(uint64_t sequence, ReplyHeader* recorded) {
  if (sequence < floor_) return Admission::kStale;
  Record& record = At(sequence);
  if (record.sequence == sequence) {
    if (record.state == State::kInProgress) return Admission::kInProgress;
    if (record.state == State::kAnswered) {
      *recorded = record.reply;
      return Admission::kReplay;
    }
  }
  // Subtracting, not adding: a hostile number near 2^64 must not wrap.
  if (sequence > highest_ && sequence - highest_ > kSequenceJumpMax) return Admission::kOverrun;
  const uint64_t floor = sequence >= credits() ? sequence - credits() + 1 : 1;
  if (floor > floor_) {
    if (AnyInProgressBelow(floor)) return Admission::kOverrun;
    floor_ = floor;
  }
  if (sequence > highest_) highest_ = sequence;
  record.sequence = sequence;
  record.state = State::kInProgress;
  ++in_progress_;
  return Admission::kExecute;
}

Session::Record& Session::Finish(uint64_t sequence, State state) {
  Record& record = At(sequence);
  CHECK(record.sequence == sequence && record.state == State::kInProgress) << sequence;
  record.state = state;
  --in_progress_;
  return record;
}

void Session::RecordAnswer(uint64_t sequence, const ReplyHeader& reply) {
  Finish(sequence, State::kAnswered).reply = reply;
}

void Session::RecordRepeatable(uint64_t sequence) { Finish(sequence, State::kRepeatable); }

void Session::Forget(uint64_t sequence) { Finish(sequence, State::kNone); }

uint64_t Session::AnsweredBelow() const {
  uint64_t sequence = floor_;
  for (; sequence <= highest_; ++sequence) {
    const Record& record = At(sequence);
    const bool answered = record.sequence == sequence &&
                          (record.state == State::kAnswered || record.state == State::kRepeatable);
    if (!answered) break;
  }
  return sequence;
}

}  // namespace gannet
