#ifndef GANNET_SERVER_LOG_CHANGES_CHANGE_H_
#define GANNET_SERVER_LOG_CHANGES_CHANGE_H_

#include <cstdint>
#include <string_view>

#include "common/base/server_time.h"

namespace gannet {

// Which request asked for a change. A change keeps it, so that the answer can be given again.
struct ChangeOrigin {
  uint64_t session_token = 0;  // 0: the server itself
  uint64_t sequence = 0;
  uint8_t opcode = 0;
};

// One change of a key. A key's changes are recorded in the order in which they happen, so the last
// one of a key says what the key is.
struct Change {
  enum class Kind : uint8_t { kPut = 1, kDelete = 2 };
  Kind kind = Kind::kPut;
  // The item's new version. A deletion has a number that is higher than the deleted item's version.
  uint64_t version = 0;
  Expiry expiry;
  uint32_t flags = 0;  // the user's
  std::string_view key;
  std::string_view value;  // empty for a deletion
  // The fields of ChangeOrigin.
  uint64_t session_token = 0;
  uint64_t sequence = 0;
  uint64_t number = 0;  // in the reply to an INCR or DECR
  uint8_t opcode = 0;
  // Of an update, a plain put over an item without expiry, by a value of the same length: the
  // checksum of the item's header and value that it makes (common/layout/item_proof.h). It is known
  // before the stream is. 0: not an update, or nobody knows it.
  uint64_t item_checksum = 0;

  bool IsUpdate() const { return item_checksum != 0; }
  // Notes which request asked for it; nullptr: none did.
  void SetOrigin(const ChangeOrigin* origin) {
    const ChangeOrigin it = origin == nullptr ? ChangeOrigin{} : *origin;
    session_token = it.session_token;
    sequence = it.sequence;
    opcode = it.opcode;
  }

  friend bool operator==(const Change&, const Change&) = default;
};

}  // namespace gannet

#endif  // GANNET_SERVER_LOG_CHANGES_CHANGE_H_
