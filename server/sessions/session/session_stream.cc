#include "server/sessions/session/session_stream.h"

#include <algorithm>
#include <span>

#include "server/sessions/session/session.h"

namespace gannet {

void SessionStream::Began(const Session& session) {
  changes_->RecordSession({.kind = SessionRecord::Kind::kBegun,
                           .token = session.token(),
                           .id = session.id(),
                           .key_id = session.key == nullptr ? 0 : session.key->key.id,
                           .credits = session.credits(),
                           .read_only = session.read_only(),
                           .answers = {}});
}

void SessionStream::Answered(uint64_t token, const ReplyHeader& reply) {
  if (!Keeps(reply)) return;
  const SessionAnswer answer = AnswerOf(reply);
  changes_->RecordSession(SessionRecord::Answers(token, std::span(&answer, 1)));
}

SessionAnswer SessionStream::AnswerOf(const ReplyHeader& reply) {
  SessionAnswer answer = {.sequence = reply.sequence,
                          .words = {},
                          .opcode = reply.opcode,
                          .status = reply.status,
                          .zero = {}};
  std::copy_n(reply.words.begin(), answer.words.size(), answer.words.begin());
  static_assert(offsetof(ReplyHeader, write.slot) == offsetof(ReplyHeader, words) + 8 &&
                offsetof(ReplyHeader, increment.slot) == offsetof(ReplyHeader, words) + 8);
  if (reply.opcode != static_cast<uint8_t>(Opcode::kFlush)) answer.words[1] = 0;
  return answer;
}

}  // namespace gannet
