#ifndef GANNET_SERVER_LOG_CHANGES_SESSION_RECORD_H_
#define GANNET_SERVER_LOG_CHANGES_SESSION_RECORD_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include "common/protocol/message.h"

namespace gannet {

// An answer that a session remembers, in its bytes in a ring.
struct SessionAnswer {
  uint64_t sequence;
  ReplyHeader::AnswerWords words;  // without a Slot word: that names a place in one server's memory
  uint8_t opcode;
  // ReplyStatus. kTryAgain: there is no answer. The request is executed if it is sent again.
  uint8_t status;
  uint8_t zero[6];

  friend bool operator==(const SessionAnswer&, const SessionAnswer&) = default;
};
static_assert(sizeof(SessionAnswer) == 40 && std::is_trivially_copyable_v<SessionAnswer>);
static_assert(offsetof(SessionAnswer, words) == 8 && offsetof(SessionAnswer, opcode) == 32 &&
              offsetof(SessionAnswer, zero) == 34);

// What the stream of changes tells of a session, beside the answers that are in changes. So a
// member that takes over knows what the primary answered (docs/group.md, "Sessions").
struct SessionRecord {
  enum class Kind : uint8_t { kBegun, kEnded, kAnswers };
  static constexpr size_t kAnswersMax = 256;

  Kind kind = Kind::kBegun;
  uint64_t token = 0;
  // kBegun:
  uint32_t id = 0;
  uint32_t key_id = 0;  // of the key under which the session was made; 0 = the server has no keys
  uint16_t credits = 0;
  bool read_only = false;
  // kAnswers: 1 to kAnswersMax of them, as bytes that may lie anywhere.
  std::string_view answers;
  // kAnswers: 0, or the version of a deletion that follows in the stream and undoes these requests.
  // The answers count from that deletion on, and never if it does not come.
  uint64_t undone_by = 0;

  size_t answer_count() const { return answers.size() / sizeof(SessionAnswer); }
  SessionAnswer answer(size_t i) const {
    SessionAnswer answer;
    std::memcpy(&answer, answers.data() + i * sizeof(answer), sizeof(answer));
    return answer;
  }

  static SessionRecord Ended(uint64_t token) { return {.kind = Kind::kEnded, .token = token}; }
  // The record points to `answers`.
  static SessionRecord Answers(uint64_t token, std::span<const SessionAnswer> answers,
                               uint64_t undone_by = 0) {
    return {.kind = Kind::kAnswers,
            .token = token,
            .answers = {reinterpret_cast<const char*>(answers.data()), answers.size_bytes()},
            .undone_by = undone_by};
  }

  friend bool operator==(const SessionRecord&, const SessionRecord&) = default;
};

// Returns true if the answers to such requests are in the stream. Those to others are not: reads
// may be executed again, and locks are lost with the primary.
constexpr bool IsAnswerStreamed(uint8_t opcode) {
  const RequestKind kind = KindOf(static_cast<Opcode>(opcode));
  return kind == RequestKind::kWrite || kind == RequestKind::kFlush;
}

}  // namespace gannet

#endif  // GANNET_SERVER_LOG_CHANGES_SESSION_RECORD_H_
