#include "server/sessions/session/session.h"

#include <algorithm>
#include <bit>
#include <span>

#include "common/base/check.h"

namespace gannet {

Session::Session(uint32_t id, uint64_t token, uint16_t credits)
    : id_(id),
      token_(token),
      credits_(credits),
      mask_(static_cast<uint16_t>(std::bit_ceil(uint32_t{credits}) - 1)),
      records_(std::make_unique<Record[]>(mask_ + size_t{1})) {
  GANNET_CHECK(credits >= 1, "a session without credits");
}

Session::Session(const SessionCopy& copy) : Session(copy.id, copy.token, copy.credits) {
  established = true;  // or nobody would have told of it
  may_skip_any_ = true;
  adopted_key_ = {.id = copy.key_id, .read_only = copy.read_only};
  highest_ = copy.highest;
  for (const SessionAnswer& answer : copy.answers) {
    GANNET_CHECK(answer.sequence <= copy.highest && copy.highest - answer.sequence < copy.credits,
                 "an answer that the session would have forgotten");
    At(answer.sequence) = {.sequence = answer.sequence,
                           .words = answer.words,
                           .opcode = answer.opcode,
                           .status = answer.status,
                           .state = State::kAnswered};
  }
}

bool Session::TakesKey(const std::shared_ptr<const SessionKey>& its) {
  if (!adopted_key_) return key == its;
  const uint32_t its_id = its == nullptr ? 0 : its->key.id;
  const bool only_reads = its != nullptr && its->key.read_only;
  if (its_id != adopted_key_->id || only_reads != adopted_key_->read_only) return false;
  key = its;
  adopted_key_.reset();
  return true;
}

bool Session::AnyInProgressBelow(uint64_t floor) const {
  if (in_progress_ == 0) return false;
  for (const Record& record : std::span(records_.get(), mask_ + size_t{1})) {
    if (record.state == State::kInProgress && record.sequence < floor) return true;
  }
  return false;
}

std::vector<uint64_t> Session::InTheWayOf(uint64_t sequence) const {
  std::vector<uint64_t> in_the_way;
  if (sequence <= highest_ || SkipsTooFar(sequence)) return in_the_way;
  for (const Record& record : std::span(records_.get(), mask_ + size_t{1})) {
    if (record.state == State::kInProgress && record.sequence < FloorAt(sequence)) {
      in_the_way.push_back(record.sequence);
    }
  }
  return in_the_way;
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
    if (aside != nullptr && sequence != highest_ + 1)
      return sequence - highest_ > credits_ ? Admission::kOverrun : Admission::kTooEarly;
    if (SkipsTooFar(sequence)) return Admission::kOverrun;
    if (AnyInProgressBelow(FloorAt(sequence))) return Admission::kOverrun;
    may_skip_any_ = false;
    highest_ = sequence;
  }
  return Begin(sequence);
}

}  // namespace gannet
