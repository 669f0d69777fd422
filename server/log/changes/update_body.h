#ifndef GANNET_SERVER_LOG_CHANGES_UPDATE_BODY_H_
#define GANNET_SERVER_LOG_CHANGES_UPDATE_BODY_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <span>
#include <string_view>
#include <type_traits>

#include "common/base/align.h"
#include "common/base/data_path_checks.h"
#include "common/layout/item.h"
#include "common/protocol/message.h"
#include "server/log/changes/change.h"
#include "server/log/changes/record.h"

namespace gannet {

// What is known of an update, in the bytes that lie in a record of the stream: this, the item's
// value and key as they lie in a block, and zeros up to a multiple of eight. An update is a put
// over an item without expiry, by a value of the same length, as most changes are.
struct UpdateBody {
  uint64_t session_token;
  uint64_t item_checksum;  // as in Change
  uint64_t sequence;
  // From here on, what the item's checksum covers: the item's header and value (ItemHeader).
  uint64_t version;
  uint32_t value_bytes;
  uint32_t flags;
  uint64_t key_bytes;  // the item's word of expiry and key, without an expiry
};
static_assert(sizeof(UpdateBody) == 48 && std::is_trivially_copyable_v<UpdateBody>);
static_assert(sizeof(UpdateBody) - offsetof(UpdateBody, version) ==
              sizeof(ItemHeader) - offsetof(ItemHeader, version));

inline constexpr size_t kUpdateContentAt = offsetof(UpdateBody, version);

// With value, key and zeros.
constexpr size_t UpdateBodyBytes(size_t key_bytes, size_t value_bytes) {
  return AlignUp(sizeof(UpdateBody) + value_bytes + key_bytes, kRecordAlignment);
}

// Loads a field that lies at `offset`. A copy of the whole struct would go through the stack.
template <class T>
[[gnu::always_inline]] inline T UpdateField(const std::byte* body, size_t offset) {
  T value;
  std::memcpy(&value, body + offset, sizeof(value));
  return value;
}
inline uint64_t UpdateToken(const std::byte* body) {
  return UpdateField<uint64_t>(body, offsetof(UpdateBody, session_token));
}
inline uint64_t UpdateItemChecksum(const std::byte* body) {
  return UpdateField<uint64_t>(body, offsetof(UpdateBody, item_checksum));
}
inline uint64_t UpdateSequence(const std::byte* body) {
  return UpdateField<uint64_t>(body, offsetof(UpdateBody, sequence));
}
inline uint64_t UpdateVersion(const std::byte* body) {
  return UpdateField<uint64_t>(body, offsetof(UpdateBody, version));
}
inline uint32_t UpdateFlags(const std::byte* body) {
  return UpdateField<uint32_t>(body, offsetof(UpdateBody, flags));
}
inline uint32_t UpdateValueBytes(const std::byte* body) {
  return UpdateField<uint32_t>(body, offsetof(UpdateBody, value_bytes));
}
inline uint64_t UpdateKeyBytes(const std::byte* body) {
  return UpdateField<uint64_t>(body, offsetof(UpdateBody, key_bytes));
}

// All of these REQUIRE: the lengths are right.
inline std::string_view UpdateValueOf(const std::byte* body) {
  return {reinterpret_cast<const char*>(body) + sizeof(UpdateBody), UpdateValueBytes(body)};
}
inline std::string_view UpdateKeyOf(const std::byte* body) {
  return {reinterpret_cast<const char*>(body) + sizeof(UpdateBody) + UpdateValueBytes(body),
          UpdateKeyBytes(body)};
}
inline size_t UpdateBodyBytesOf(const std::byte* body) {
  return UpdateBodyBytes(UpdateKeyBytes(body), UpdateValueBytes(body));
}
// Fills in the change that an update tells of. REQUIRES: `put` was filled in by this function, or
// is as Change{}.
inline void DecodeUpdateBody(const std::byte* body, Change* put) {
  put->version = UpdateVersion(body);
  put->flags = UpdateFlags(body);
  put->key = UpdateKeyOf(body);
  put->value = UpdateValueOf(body);
  put->session_token = UpdateToken(body);
  put->sequence = UpdateSequence(body);
  put->opcode = static_cast<uint8_t>(Opcode::kPut);
  put->item_checksum = UpdateItemChecksum(body);
}

// By how much a record is longer than a body. Both are rounded up to the same multiple.
inline constexpr size_t kRecordBytesOverBody = sizeof(RecordHeader) - sizeof(UpdateBody);
static_assert(kRecordBytesOverBody % kRecordAlignment == 0);

// An update, and where its change ends in the stream of changes.
struct PlacedUpdate {
  const std::byte* body;
  size_t bytes;  // of the body
  uint64_t position;

  size_t record_bytes() const { return bytes + kRecordBytesOverBody; }
};

// Updates whose bodies follow each other, one after another:
//
//   for (const PlacedUpdate& update : UpdateBodies(bodies, from)) ...
//
// The loop may write over the bodies that it has come to.
class UpdateBodies {
 public:
  class Iterator {
   public:
    Iterator(std::span<const std::byte> bodies, uint64_t from)
        : update_{.body = bodies.data(), .bytes = 0, .position = from},
          end_(bodies.data() + bodies.size()) {
      Look();
    }
    const PlacedUpdate& operator*() const { return update_; }
    Iterator& operator++() {
      update_.body += update_.bytes;
      Look();
      return *this;
    }
    bool operator==(std::default_sentinel_t /*end*/) const { return update_.body == end_; }

   private:
    void Look() {
      if (update_.body == end_) return;
      update_.bytes = UpdateBodyBytesOf(update_.body);
      update_.position += update_.record_bytes();
    }

    PlacedUpdate update_;
    const std::byte* end_;
  };

  // `from` is the position of the first one's begin. REQUIRES: whole bodies.
  explicit UpdateBodies(std::span<const std::byte> bodies, uint64_t from = 0)
      : bodies_(bodies), from_(from) {}
  Iterator begin() const { return Iterator(bodies_, from_); }
  static std::default_sentinel_t end() { return {}; }

 private:
  std::span<const std::byte> bodies_;
  uint64_t from_;
};

// Returns whether the lengths are those of exactly so many bytes, and the padding is zero, as far
// as can be without the checksums. REQUIRES: bytes >= sizeof(UpdateBody).
[[gnu::always_inline]] inline bool IsUpdateBody(const std::byte* body, size_t bytes) {
  GANNET_CHECK_DATA_PATH(bytes >= sizeof(UpdateBody), "no whole body");
  const size_t value_bytes = UpdateValueBytes(body);
  const size_t key_bytes = UpdateKeyBytes(body);
  const size_t used = sizeof(UpdateBody) + value_bytes + key_bytes;
  if (key_bytes - 1 >= kKeyBytesMax || AlignUp(used, kRecordAlignment) != bytes) return false;
  if (used == bytes) return true;
  uint64_t last;
  std::memcpy(&last, body + bytes - sizeof(last), sizeof(last));
  return last >> (64 - 8 * (bytes - used)) == 0;
}

// Writes the body of a put that IsUpdate. `body` has UpdateBodyBytes bytes.
void EncodeUpdateBody(const Change& put, std::byte* body);

}  // namespace gannet

#endif  // GANNET_SERVER_LOG_CHANGES_UPDATE_BODY_H_
