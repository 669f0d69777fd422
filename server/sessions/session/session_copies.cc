// Takes the records of sessions and of changes, and remembers the answers that follow from them.
// It takes a session that it has already, so records for a joiner may be in the stream of all.

#include "server/sessions/session/session_copies.h"

#include <algorithm>
#include <bit>
#include <span>

namespace gannet {

void DoubtAnswers(std::vector<SessionCopy>* copies) {
  for (SessionCopy& copy : *copies) {
    for (SessionAnswer& answer : copy.answers) {
      if (answer.status != static_cast<uint8_t>(ReplyStatus::kOk)) continue;
      answer.status = static_cast<uint8_t>(ReplyStatus::kOutcomeUnknown);
      answer.words = {};
    }
  }
}

void SessionCopies::Copy::Remember(const SessionAnswer& answer) {
  SessionAnswer* const place = PlaceOf(answer.sequence);
  if (place == nullptr) return;
  const bool taken_back = answer.status == static_cast<uint8_t>(ReplyStatus::kTryAgain);
  *place = taken_back ? SessionAnswer{} : answer;
}

std::vector<SessionAnswer> SessionCopies::Copy::InOrder() const {
  std::vector<SessionAnswer> in_order;
  for (const SessionAnswer& answer : answers) {
    if (answer.sequence != 0 && answer.sequence + credits > highest) in_order.push_back(answer);
  }
  std::ranges::sort(in_order, {}, &SessionAnswer::sequence);
  return in_order;
}

SessionCopies::Copy* SessionCopies::Find(uint64_t token) {
  if (token == recent_.token) return recent_.copy;
  const auto it = copies_.find(token);
  if (it == copies_.end()) return nullptr;
  recent_.token = token;
  recent_.copy = &it->second;
  return recent_.copy;
}

// The change was made, so its request was answered kOk. The reply has no more than this.
void SessionCopies::TakeAnswerOf(const Change& change) {
  Copy* const copy = Find(change.session_token);
  if (copy == nullptr || !IsAnswerStreamed(change.opcode)) return;
  SessionAnswer* const place = copy->PlaceOf(change.sequence);
  if (place == nullptr) return;
  const bool deletion = change.kind == Change::Kind::kDelete;
  const bool increment = change.opcode == static_cast<uint8_t>(Opcode::kIncrement);
  *place = {.sequence = change.sequence,
            .words = {deletion ? 0 : change.version, 0, increment ? change.number : 0},
            .opcode = change.opcode,
            .status = static_cast<uint8_t>(ReplyStatus::kOk),
            .zero = {}};
}

void SessionCopies::Take(const SessionRecord& record) {
  switch (record.kind) {
    case SessionRecord::Kind::kBegun:
      return Begin(record);
    case SessionRecord::Kind::kEnded:
      recent_ = {};
      copies_.erase(record.token);
      return;
    case SessionRecord::Kind::kAnswers:
      break;
  }
  if (record.undone_by != 0) {
    if (!undone_.empty() && undone_.front().version != record.undone_by) undone_.clear();
    for (size_t i = 0; i < record.answer_count(); ++i) {
      undone_.push_back({record.undone_by, record.token, record.answer(i)});
    }
    return;
  }
  const auto copy = copies_.find(record.token);
  if (copy == copies_.end()) return;
  for (size_t i = 0; i < record.answer_count(); ++i) copy->second.Remember(record.answer(i));
}

// A session that is there stays as it is: the primary tells a joiner of it.
void SessionCopies::Begin(const SessionRecord& record) {
  recent_ = {};  // a new one may move all others
  const auto [it, is_new] = copies_.try_emplace(record.token);
  if (!is_new) return;
  Copy& copy = it->second;
  copy.id = record.id;
  copy.key_id = record.key_id;
  copy.credits = record.credits;
  copy.read_only = record.read_only;
  copy.answers.resize(std::bit_ceil(size_t{record.credits}));
  copy.mask = copy.answers.size() - 1;
}

void SessionCopies::CountUndone(uint64_t version) {
  if (undone_.front().version != version) return;
  for (const Undone& undone : undone_) {
    const auto copy = copies_.find(undone.token);
    if (copy != copies_.end()) copy->second.Remember(undone.answer);
  }
  undone_.clear();
}

std::vector<uint64_t> SessionCopies::Tokens() const {
  std::vector<uint64_t> tokens;
  for (const auto& [token, copy] : copies_) tokens.push_back(token);
  return tokens;
}

void SessionCopies::ForEachRecord(Use use) const {
  RecordsOfUndone(use);
  for (const auto& [token, copy] : copies_) RecordsOf(token, copy, use);
}

void SessionCopies::RecordsOfUndone(Use use) const {
  for (const Undone& undone : undone_) {
    use(SessionRecord::Answers(undone.token, std::span(&undone.answer, 1), undone.version));
  }
}

void SessionCopies::RecordsOf(uint64_t token, Use use) const {
  const auto copy = copies_.find(token);
  if (copy != copies_.end()) RecordsOf(token, copy->second, use);
}

void SessionCopies::RecordsOf(uint64_t token, const Copy& copy, Use use) {
  use({.kind = SessionRecord::Kind::kBegun,
       .token = token,
       .id = copy.id,
       .key_id = copy.key_id,
       .credits = copy.credits,
       .read_only = copy.read_only,
       .answers = {}});
  std::vector<SessionAnswer> answers = copy.InOrder();
  if (copy.highest > 0 && (answers.empty() || answers.back().sequence < copy.highest)) {
    // Its answer was taken back. But it says which numbers are over.
    answers.push_back({.sequence = copy.highest,
                       .words = {},
                       .opcode = static_cast<uint8_t>(Opcode::kPut),
                       .status = static_cast<uint8_t>(ReplyStatus::kTryAgain),
                       .zero = {}});
  }
  for (std::span<const SessionAnswer> left = answers; !left.empty();) {
    const size_t count = std::min(left.size(), SessionRecord::kAnswersMax);
    use(SessionRecord::Answers(token, left.first(count)));
    left = left.subspan(count);
  }
}

std::vector<SessionCopy> SessionCopies::All() const {
  std::vector<SessionCopy> all;
  all.reserve(copies_.size());
  for (const auto& [token, copy] : copies_) {
    all.push_back({.token = token,
                   .id = copy.id,
                   .key_id = copy.key_id,
                   .credits = copy.credits,
                   .read_only = copy.read_only,
                   .highest = copy.highest,
                   .answers = copy.InOrder()});
  }
  return all;
}

}  // namespace gannet
