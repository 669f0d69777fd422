#ifndef GANNET_SERVER_STREAM_UPDATE_LANE_H_
#define GANNET_SERVER_STREAM_UPDATE_LANE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "server/changes/record.h"
#include "server/stream/ring_record.h"
#include "server/stream/update_record.h"

namespace gannet {

// Writes the records of many updates straight into a ring, one behind the other. Whoever has it
// holds the locks of all that takes note of changes. So an update costs none of its own, nor a
// call (ChangeRecorder::BeginUpdates).
//
// One thread.
class UpdateLane {
 public:
  // What its records tell of, and what Append needs to know of it.
  struct Update {
    uint64_t version;
    uint32_t flags;
    std::string_view key;
    std::string_view value;
    uint64_t session_token;
    uint64_t sequence;
  };
  struct Place {
    std::span<std::byte> room;  // in the ring, up to its end or to what is not free
    uint64_t stream_id;
    uint64_t lsn;
    uint64_t committed;
    uint64_t position;  // of the last change in the stream of changes
  };

  // The next record goes to the begin of the room.
  void Begin(const Place& place) {
    begin_ = at_ = place.room.data();
    left_ = place.room.size();
    stream_id_ = place.stream_id;
    lsn_ = place.lsn;
    committed_ = place.committed;
    position_ = place.position;
  }
  // Returns the record, or nullptr if there is no room. Fills in the checksum of the item that the
  // update makes. Defined in update_lane_inline.h. REQUIRES: a key, and a value of at most
  // kPartBytes.
  const std::byte* Append(const Update& update, uint64_t* item_checksum);

  // What was appended since Begin.
  std::span<const std::byte> appended() const { return {begin_, at_}; }
  // The position in the stream of changes behind it.
  uint64_t position() const { return position_; }

 private:
  std::byte* begin_ = nullptr;
  std::byte* at_ = nullptr;
  size_t left_ = 0;
  uint64_t stream_id_ = 0;
  uint64_t lsn_ = 0;
  uint64_t committed_ = 0;
  uint64_t position_ = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_STREAM_UPDATE_LANE_H_
