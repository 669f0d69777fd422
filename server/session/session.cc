#include "server/session/session.h"

#include <algorithm>
#include <bit>
#include <span>

namespace gannet {

Session::Session(uint32_t id, uint64_t token, uint16_t credits)
    : id_(id),
      token_(token),
      credits_(credits),
      mask_(static_cast<uint16_t>(std::bit_ceil(uint32_t{credits}) - 1)),
      records_(std::make_unique<Record[]>(mask_ + size_t{1})) {
  GANNET_CHECK(credits >= 1, "a session without credits");
}

bool Session::AnyInProgressBelow(uint64_t floor) const {
  if (in_progress_ == 0) return false;
  for (const Record& record : std::span(records_.get(), mask_ + size_t{1})) {
    if (record.state == State::kInProgress && record.sequence < floor) return true;
  }
  return false;
}

Session::Admission Session::AdmitOutOfOrder(uint64_t sequence, ReplyHeader* recorded) {
  if (sequence < floor()) return Admission::kStale;
  const Record& record = At(sequence);
  if (record.sequence == sequence) {
    if (record.state == State::kInProgress) return Admission::kInProgress;
    if (record.state == State::kAnswered) {
      *recorded = ReplyHeader{};
      recorded->opcode = record.opcode;
      recorded->status = record.status;
      recorded->sequence = sequence;
      std::ranges::copy(record.words, recorded->words.begin());
      return Admission::kReplay;
    }
  }
  if (sequence > highest_) {
    // Subtracts instead of adding, so that a hostile number near 2^64 does not wrap.
    if (sequence - highest_ > kSequenceJumpMax) return Admission::kOverrun;
    if (AnyInProgressBelow(FloorAt(sequence))) return Admission::kOverrun;
    highest_ = sequence;
  }
  return Begin(sequence);
}

}  // namespace gannet
