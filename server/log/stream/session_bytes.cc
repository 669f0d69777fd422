// Each kind of record has a decoder that refuses what no encoder writes: another length, fields
// that cannot be, bytes that are not zero. So a record that decodes encodes to the same bytes.

#include "server/log/stream/session_bytes.h"

#include <algorithm>
#include <cstring>

#include "common/base/check.h"

namespace gannet {
namespace {

using SessionKind = SessionRecord::Kind;

template <class Bytes>
bool AllZero(const Bytes& bytes) {
  return std::ranges::all_of(bytes, [](uint8_t byte) { return byte == 0; });
}

std::optional<SessionRecord> DecodeBegun(std::span<const std::byte> bytes, uint64_t* committed) {
  SessionBegunHeader header;
  if (bytes.size() != sizeof(header)) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.token == 0 || header.id == 0 || header.credits == 0 || header.read_only > 1 ||
      (header.read_only != 0 && header.key_id == 0) || !AllZero(header.zero)) {
    return std::nullopt;
  }
  *committed = header.committed;
  return SessionRecord{.kind = SessionKind::kBegun,
                       .token = header.token,
                       .id = header.id,
                       .key_id = header.key_id,
                       .credits = header.credits,
                       .read_only = header.read_only != 0,
                       .answers = {}};
}

std::optional<SessionRecord> DecodeEnded(std::span<const std::byte> bytes, uint64_t* committed) {
  SessionEndedHeader header;
  if (bytes.size() != sizeof(header)) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.token == 0) return std::nullopt;
  *committed = header.committed;
  return SessionRecord::Ended(header.token);
}

bool CanBe(const SessionAnswer& answer) {
  return answer.sequence != 0 && IsAnswerStreamed(answer.opcode) && AllZero(answer.zero) &&
         answer.status <= static_cast<uint8_t>(ReplyStatus::kPermissionDenied);
}

std::optional<SessionRecord> DecodeAnswers(std::span<const std::byte> bytes, uint64_t* committed) {
  AnswersHeader header;
  if (bytes.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, bytes.data(), sizeof(header));
  const auto answers = bytes.subspan(sizeof(header));
  if (header.token == 0 || header.count == 0 || header.count > SessionRecord::kAnswersMax ||
      header.zero != 0 || answers.size() != header.count * sizeof(SessionAnswer)) {
    return std::nullopt;
  }
  *committed = header.committed;
  const SessionRecord record = {
      .kind = SessionKind::kAnswers,
      .token = header.token,
      .answers = {reinterpret_cast<const char*>(answers.data()), answers.size()},
      .undone_by = header.undone_by};
  for (size_t i = 0; i < record.answer_count(); ++i) {
    if (!CanBe(record.answer(i))) return std::nullopt;
  }
  return record;
}

}  // namespace

RingRecordKind RingKindOf(SessionKind kind) {
  switch (kind) {
    case SessionKind::kBegun:
      return RingRecordKind::kSessionBegun;
    case SessionKind::kEnded:
      return RingRecordKind::kSessionEnded;
    case SessionKind::kAnswers:
      break;
  }
  return RingRecordKind::kAnswers;
}

size_t SessionBytes(const SessionRecord& record) {
  switch (record.kind) {
    case SessionKind::kBegun:
      return sizeof(SessionBegunHeader);
    case SessionKind::kEnded:
      return sizeof(SessionEndedHeader);
    case SessionKind::kAnswers:
      break;
  }
  return sizeof(AnswersHeader) + record.answers.size();
}

void EncodeSession(const SessionRecord& record, const RingRecordStart& start, uint64_t committed,
                   std::span<std::byte> out) {
  switch (record.kind) {
    case SessionKind::kBegun: {
      const SessionBegunHeader header = {.start = start,
                                         .token = record.token,
                                         .committed = committed,
                                         .id = record.id,
                                         .key_id = record.key_id,
                                         .credits = record.credits,
                                         .read_only = static_cast<uint8_t>(record.read_only),
                                         .zero = {}};
      std::memcpy(out.data(), &header, sizeof(header));
      return;
    }
    case SessionKind::kEnded: {
      const SessionEndedHeader header = {
          .start = start, .token = record.token, .committed = committed};
      std::memcpy(out.data(), &header, sizeof(header));
      return;
    }
    case SessionKind::kAnswers:
      break;
  }
  const size_t count = record.answer_count();
  GANNET_CHECK(count >= 1 && count <= SessionRecord::kAnswersMax, "a record's answers");
  const AnswersHeader header = {.start = start,
                                .token = record.token,
                                .committed = committed,
                                .undone_by = record.undone_by,
                                .count = static_cast<uint32_t>(count),
                                .zero = 0};
  std::memcpy(out.data(), &header, sizeof(header));
  std::memcpy(out.data() + sizeof(header), record.answers.data(), record.answers.size());
}

std::optional<SessionRecord> DecodeSession(std::span<const std::byte> bytes, RingRecordKind kind,
                                           uint64_t* committed) {
  switch (kind) {
    case RingRecordKind::kSessionBegun:
      return DecodeBegun(bytes, committed);
    case RingRecordKind::kSessionEnded:
      return DecodeEnded(bytes, committed);
    case RingRecordKind::kAnswers:
      return DecodeAnswers(bytes, committed);
    default:
      return std::nullopt;
  }
}

}  // namespace gannet
