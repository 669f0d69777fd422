#ifndef GANNET_SERVER_SESSIONS_SESSION_SESSION_STREAM_H_
#define GANNET_SERVER_SESSIONS_SESSION_SESSION_STREAM_H_

#include <cstdint>

#include "common/protocol/message.h"
#include "server/log/changes/change_stream.h"
#include "server/log/changes/session_record.h"

namespace gannet {

class Session;

// Tells the stream of a group what a primary's sessions do. It tells nothing of changes, which say
// themselves which request they answer.
//
// Each call comes from the worker that serves the session, before the session's next request is
// executed. So in the stream, too, it comes before what that request does (docs/group.md,
// "Sessions").
//
// Thread safety: any thread.
class SessionStream {
 public:
  // `changes` outlives it.
  explicit SessionStream(ChangeStream* changes) : changes_(changes) {}

  // Call it before the client can know of the session.
  void Began(const Session& session);
  void Ended(uint64_t token) { changes_->RecordSession(SessionRecord::Ended(token)); }
  // An answer that no change has: a refusal, or a step of a FLUSH. Nobody waits for its record. Who
  // has got the answer does not send the request again, and who has not finds the record, or
  // nothing that came later.
  void Answered(uint64_t token, const ReplyHeader& reply);

  // Returns true if a session remembers such a reply, and another server can use it.
  static bool Keeps(const ReplyHeader& reply) {
    return IsAnswerStreamed(reply.opcode) &&
           reply.status != static_cast<uint8_t>(ReplyStatus::kTryAgain);
  }
  // Returns what the stream has of such a reply: all but the place of the item.
  static SessionAnswer AnswerOf(const ReplyHeader& reply);

 private:
  ChangeStream* const changes_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_SESSIONS_SESSION_SESSION_STREAM_H_
