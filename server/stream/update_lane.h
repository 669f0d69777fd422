#ifndef GANNET_SERVER_STREAM_UPDATE_LANE_H_
#define GANNET_SERVER_STREAM_UPDATE_LANE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "server/changes/record.h"
#include "server/stream/ring_record.h"
#include "server/stream/update_batch.h"

namespace gannet {

// Writes many updates straight into a ring, as one record. Whoever has it holds the locks of all
// that takes note of changes. So an update costs none of its own, nor a call
// (ChangeRecorder::BeginUpdates).
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

  // The record goes to the begin of the room.
  void Begin(const Place& place) {
    const size_t room = std::min(place.room.size(), kUpdateBatchBytesMax);
    const size_t header = std::min(room, sizeof(UpdateBatchHeader));
    begin_ = place.room.data();
    at_ = bodies_ = begin_ + header;
    left_ = room - header;
    stream_id_ = place.stream_id;
    lsn_ = place.lsn;
    committed_ = place.committed;
    position_ = place.position;
  }
  // Adds an update. Returns its body (update_body.h), which has the item's checksum only after
  // Seal, or nullptr if there is no room. Defined in update_lane_inline.h. REQUIRES: a key, and a
  // value of at most kPartBytes.
  const std::byte* Append(const Update& update);
  // Ends the record, and calls `use` with each body. Returns the record, which is empty if nothing
  // was appended.
  template <class Use>
  std::span<const std::byte> Seal(Use&& use);

  // The position in the stream of changes behind the updates.
  uint64_t position() const { return position_; }

 private:
  std::byte* begin_ = nullptr;
  std::byte* bodies_ = nullptr;
  std::byte* at_ = nullptr;
  size_t left_ = 0;
  uint64_t stream_id_ = 0;
  uint64_t lsn_ = 0;
  uint64_t committed_ = 0;
  uint64_t position_ = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_STREAM_UPDATE_LANE_H_
