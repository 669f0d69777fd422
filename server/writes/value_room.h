#ifndef GANNET_SERVER_WRITES_VALUE_ROOM_H_
#define GANNET_SERVER_WRITES_VALUE_ROOM_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>

#include "common/base/data_path_checks.h"

namespace gannet {

// Memory for updates that wait for a moment, in pieces that are given back in the order in which
// they were taken, by their tickets. Places count the bytes, and grow for ever.
//
// Thread safety: one thread at a time. The bytes of a piece may be read by any, until it is given
// back.
class ValueRoom {
 public:
  static constexpr size_t kBytes = 1 << 20;

  // The memory is not touched before it is needed.
  ValueRoom() : bytes_(new std::byte[kBytes]) {}

  // Returns memory for the next piece, at least `least` bytes side by side, or none if not so much
  // is free. REQUIRES: at most kBytes / 2.
  std::span<std::byte> Open(size_t least) {
    GANNET_CHECK_DATA_PATH(least <= kBytes / 2, "a longer piece may never find room");
    const size_t offset = end_ % kBytes;
    // A piece does not cross the end of the memory.
    opened_ = offset + least <= kBytes ? end_ : end_ + (kBytes - offset);
    if (opened_ + least - first_ > kBytes) return {};
    const size_t at = opened_ % kBytes;
    return {bytes_.get() + at, std::min<uint64_t>(kBytes - at, first_ + kBytes - opened_)};
  }
  // The piece has so many bytes, and the last update in it has this ticket.
  void Take(size_t bytes, uint64_t last_ticket) {
    end_ = opened_ + bytes;
    taken_.push_back({.last_ticket = last_ticket, .end = end_});
  }
  // Gives back all pieces whose updates have tickets up to this one.
  void GiveUpTo(uint64_t ticket) {
    for (; !taken_.empty() && taken_.front().last_ticket <= ticket; taken_.pop_front()) {
      first_ = taken_.front().end;
    }
  }

 private:
  struct Piece {
    uint64_t last_ticket;
    uint64_t end;  // the place behind it
  };

  const std::unique_ptr<std::byte[]> bytes_;
  uint64_t first_ = 0;
  uint64_t opened_ = 0;
  uint64_t end_ = 0;
  std::deque<Piece> taken_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_WRITES_VALUE_ROOM_H_
