#ifndef GANNET_TESTS_SERVER_LOG_STREAM_SOME_RECORDS_H_
#define GANNET_TESTS_SERVER_LOG_STREAM_SOME_RECORDS_H_

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>

#include "common/base/hash.h"
#include "common/protocol/message.h"
#include "server/log/changes/update_body.h"
#include "server/log/stream/ring_record.h"

namespace gannet {

// A record that owns what its views point into.
struct OwnRecord {
  explicit OwnRecord(const RingRecord& of)
      : key(of.change.key),
        value(of.change.value),
        part(of.part),
        answers(of.session.answers),
        record_(of) {}

  RingRecord record() const {
    RingRecord it = record_;
    it.change.key = key;
    it.change.value = value;
    it.part = part;
    it.session.answers = answers;
    return it;
  }

  std::string key, value, part, answers;

 private:
  RingRecord record_;
};

inline RingRecord PutOf(std::string_view key, std::string_view value) {
  return RingRecord::Of({.version = 7,
                         .expiry = Expiry::FromMs(8),
                         .flags = 9,
                         .key = key,
                         .value = value,
                         .session_token = 10,
                         .sequence = 11,
                         .number = 12,
                         .opcode = 2});
}
// As a primary makes it. Its checksum is that of these bytes as an item has them.
inline RingRecord UpdateOf(std::string_view key, std::string_view value) {
  std::string content;
  for (const uint64_t word : {uint64_t{7}, value.size() | uint64_t{9} << 32, key.size()}) {
    content.append(reinterpret_cast<const char*>(&word), sizeof(word));
  }
  content.append(value);
  return RingRecord::Of({.version = 7,
                         .flags = 9,
                         .key = key,
                         .value = value,
                         .session_token = 10,
                         .sequence = 11,
                         .opcode = static_cast<uint8_t>(Opcode::kPut),
                         .item_checksum = Xxh3Unseeded(content.data(), content.size())});
}
// Adds the body of an update to others.
inline void AddBody(const RingRecord& update, std::string* bodies) {
  const Change& put = update.change;
  const size_t at = bodies->size();
  bodies->resize(at + UpdateBodyBytes(put.key.size(), put.value.size()));
  EncodeUpdateBody(put, reinterpret_cast<std::byte*>(bodies->data() + at));
}
inline RingRecord DeletionOf(std::string_view key) {
  return RingRecord::Of({.kind = Change::Kind::kDelete, .version = 7, .key = key, .value = {}});
}
inline RingRecord LongPutOf(std::string_view key, uint64_t transfer) {
  return RingRecord::LongPut({.version = 7, .key = key, .value = {}}, transfer, kPartBytes + 1);
}

inline RingRecord SessionBegunOf(uint64_t token) {
  return RingRecord::OfSession(
      {.token = token, .id = 3, .key_id = 4, .credits = 32, .read_only = true, .answers = {}});
}
inline RingRecord SessionEndedOf(uint64_t token) {
  return RingRecord::OfSession(SessionRecord::Ended(token));
}
// The record points to these.
inline constexpr SessionAnswer kTwoAnswers[] = {
    {.sequence = 5, .words = {6, 0, 7}, .opcode = 12, .status = 14, .zero = {}},
    {.sequence = 8, .words = {}, .opcode = 3, .status = 1, .zero = {}}};
inline RingRecord AnswersOf(uint64_t token, uint64_t undone_by) {
  return RingRecord::OfSession(SessionRecord::Answers(token, kTwoAnswers, undone_by));
}

// Mostly short ones, some of the longest.
inline OwnRecord RandomRecord(std::mt19937_64* random) {
  const auto below = [random](uint64_t n) { return (*random)() % n; };
  const std::string key(1 + below(kKeyBytesMax), static_cast<char>('a' + below(26)));
  const bool longest = below(40) == 0;
  const std::string bytes(longest ? kPartBytes - below(2) : below(2'000),
                          static_cast<char>(below(256)));
  switch (below(14)) {
    case 8:
      return OwnRecord(SessionBegunOf(1 + below(99)));
    case 9:
      return OwnRecord(SessionEndedOf(1 + below(99)));
    case 10:
      return OwnRecord(AnswersOf(1 + below(99), below(2)));
    case 11:
    case 12:
      return OwnRecord(UpdateOf(key, bytes));
    case 13: {
      std::string bodies;
      for (uint64_t n = 1 + below(40); n > 0; --n) {
        AddBody(UpdateOf(key.substr(0, 1 + below(key.size())), bytes.substr(0, below(1'000))),
                &bodies);
      }
      return OwnRecord(RingRecord::UpdateBatch(bodies));
    }
    case 0:
      return OwnRecord(DeletionOf(key));
    case 1:
      return OwnRecord(LongPutOf(key, (*random)()));
    case 2:
      if (bytes.empty()) break;
      return OwnRecord(RingRecord::Part((*random)(), static_cast<uint32_t>(below(1 << 20)), bytes));
    default:
      break;
  }
  return OwnRecord(PutOf(key, bytes));
}

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_LOG_STREAM_SOME_RECORDS_H_
