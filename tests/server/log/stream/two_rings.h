#ifndef GANNET_TESTS_SERVER_LOG_STREAM_TWO_RINGS_H_
#define GANNET_TESTS_SERVER_LOG_STREAM_TWO_RINGS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/base/words.h"
#include "server/log/stream/ring_reader.h"
#include "server/log/stream/ring_writer.h"

namespace gannet {

// A primary's ring, a backup's, and the device between them.
struct TwoRings {
  explicit TwoRings(size_t size, uint64_t stream_id = 5, uint64_t lsn = 0)
      : words_here(size / 8),
        words_there(size / 8),
        writer(std::as_writable_bytes(std::span(words_here)), stream_id, lsn),
        reader(there(), {.stream_id = stream_id, .lsn = lsn, .position = 0}),
        link(writer.AddLink()) {}

  std::span<std::byte> here() { return std::as_writable_bytes(std::span(words_here)); }
  std::span<std::byte> there() { return std::as_writable_bytes(std::span(words_there)); }

  // Does what the device does with a WRITE, except for the last `missing` bytes of it.
  void Land(const RingWriter::Shipment& shipment, size_t missing = 0) {
    size_t left = shipment[0].bytes + shipment[1].bytes - missing;
    for (const RingWriter::Chunk& chunk : shipment) {
      const size_t bytes = std::min(chunk.bytes, left);
      // Bytes, as a device may write any of them first.
      std::copy_n(here().begin() + static_cast<ptrdiff_t>(chunk.offset), bytes,
                  there().begin() + static_cast<ptrdiff_t>(chunk.offset));
      left -= bytes;
    }
  }
  void Ship() {
    const RingWriter::Shipment shipment = writer.Ship(link);
    if (shipment[0].bytes == 0) return;
    Land(shipment);
    writer.OnCompleted(link);
  }

  std::vector<uint64_t> words_here;
  std::vector<uint64_t> words_there;
  RingWriter writer;
  RingReader reader;
  RingWriter::LinkId link;
};

// The shortest ring.
inline constexpr size_t kShortRing = 2 * kRingRecordBytesMax;

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_LOG_STREAM_TWO_RINGS_H_
