#ifndef GANNET_SERVER_WRITES_VALUE_ROOM_H_
#define GANNET_SERVER_WRITES_VALUE_ROOM_H_

#include <cstddef>
#include <cstdint>
#include <memory>

namespace gannet {

// Memory for updates that wait for a moment, in pieces that are given back in the order in which
// they were taken. Places count the bytes, and grow for ever.
//
// Thread safety: Has, Take and Give by one thread at a time. At from any thread, for a piece that
// is taken.
class ValueRoom {
 public:
  static constexpr size_t kBytes = 1 << 20;

  // The memory is not touched before it is needed.
  ValueRoom() : bytes_(new std::byte[kBytes]) {}

  // REQUIRES: at most kBytes / 2.
  bool Has(size_t bytes) const { return PlaceFor(bytes) + bytes - first_ <= kBytes; }
  // Returns the place of a new piece. REQUIRES: Has.
  uint64_t Take(size_t bytes) {
    const uint64_t place = PlaceFor(bytes);
    end_ = place + bytes;
    return place;
  }
  // REQUIRES: the piece is the first one that is taken.
  void Give(uint64_t place, size_t bytes) { first_ = place + bytes; }
  std::byte* At(uint64_t place) { return bytes_.get() + place % kBytes; }
  const std::byte* At(uint64_t place) const { return bytes_.get() + place % kBytes; }

 private:
  // A piece does not cross the end of the memory.
  uint64_t PlaceFor(size_t bytes) const {
    const size_t offset = end_ % kBytes;
    return offset + bytes <= kBytes ? end_ : end_ + (kBytes - offset);
  }

  const std::unique_ptr<std::byte[]> bytes_;
  uint64_t first_ = 0;
  uint64_t end_ = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_WRITES_VALUE_ROOM_H_
