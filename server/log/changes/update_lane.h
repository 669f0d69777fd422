#ifndef GANNET_SERVER_LOG_CHANGES_UPDATE_LANE_H_
#define GANNET_SERVER_LOG_CHANGES_UPDATE_LANE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "server/log/changes/record.h"
#include "server/log/changes/update_body.h"

namespace gannet {

// Updates that are recorded together: their bodies (update_body.h), one behind the other. So an
// update costs no lock of its own, nor a call. Updates that wait are appended while the locks are
// held of all that takes note of changes (ChangeRecorder::BeginUpdates). Those that do not wait are
// appended before, while the locks of their keys are held (ChangeSink::RecordUpdates).
//
// One thread.
class UpdateLane {
 public:
  // What its body tells of, and what Append needs to know of it.
  struct Update {
    uint64_t version;
    uint32_t flags;
    std::string_view key;
    std::string_view value;
    uint64_t session_token;
    uint64_t sequence;
  };
  // An update makes an item of at most so many bytes, as it is written over another one in place
  // (server/memory/store/item_writer.h). With less memory than this, it may find no room.
  static constexpr size_t kItemBytesMax = 1024;
  static constexpr size_t kMemoryMin = sizeof(UpdateBody) + kItemBytesMax;

  // The updates come behind `position`, that of the last change in the stream of changes.
  void Begin(uint64_t position) {
    bodies_ = at_ = nullptr;
    end_ = nullptr;
    from_ = position_ = position;
    sealed_ = false;
  }
  // The bodies go there. The memory stays as it is until the updates are published.
  void UseMemory(std::span<std::byte> memory) {
    bodies_ = at_ = memory.data();
    end_ = memory.data() + memory.size();
  }
  bool has_memory() const { return bodies_ != nullptr; }
  // Adds an update. Returns its body, which has the item's checksum only after Seal, or nullptr if
  // there is no room. Defined in update_lane_inline.h. REQUIRES: a key; an item of at most
  // kItemBytesMax.
  const std::byte* Append(const Update& update);
  // The same updates come behind `position` instead.
  void MoveTo(uint64_t position) {
    position_ += position - from_;
    from_ = position;
  }
  // Makes the bodies whole.
  void Seal();
  // Makes each body whole, and then calls `use` with it: Seal and updates() in one loop.
  template <class Use>
  void SealEach(Use&& use);

  bool empty() const { return at_ == bodies_; }
  std::span<std::byte> bodies() const { return {bodies_, at_}; }
  UpdateBodies updates() const { return UpdateBodies(bodies(), from_); }
  // The positions in the stream of changes before and behind the updates.
  uint64_t from() const { return from_; }
  uint64_t position() const { return position_; }

 private:
  std::byte* bodies_ = nullptr;
  std::byte* at_ = nullptr;
  std::byte* end_ = nullptr;  // of the memory
  uint64_t from_ = 0;
  uint64_t position_ = 0;
  bool sealed_ = false;  // the bodies have their checksums
};

}  // namespace gannet

#endif  // GANNET_SERVER_LOG_CHANGES_UPDATE_LANE_H_
