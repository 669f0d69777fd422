#ifndef GANNET_SERVER_LOG_STREAM_RING_READER_H_
#define GANNET_SERVER_LOG_STREAM_RING_READER_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "absl/functional/function_ref.h"
#include "server/log/stream/proven_records.h"
#include "server/log/stream/proven_updates.h"
#include "server/log/stream/ring_record.h"
#include "server/log/stream/ring_tail.h"

namespace gannet {

// A backup's end of a stream: the ring that the primary WRITEs into. A record is there if its
// checksum is that of this stream and of its LSN. A WRITE may still be in the middle of it, and the
// memory may have what an older stream left there; neither is taken for a record.
//
//   reader.Scan();                            // what has arrived?
//   reader.Take(committed, apply);            // applies it, and frees its bytes
//   RingTail tail = reader.Seal();            // after the fence: the rest, once and for all
//
// Invariants:
//   1. Bytes that are not a record that arrived and was not taken are zero, or were written since.
//      So it takes one load to see that nothing has come.
//   2. A record that Scan found is copied and proven there, once. What Take gives is that copy,
//      whatever the ring has then.
//   3. After Seal the ring is not looked at any more.
//
// Thread safety: one thread, beside the device that writes. All loads and stores of the ring are
// relaxed, word by word: the checksum of a private copy proves what was loaded, so no order between
// words is relied on.
class RingReader {
 public:
  struct Begin {
    uint64_t stream_id;
    uint64_t lsn;       // of the first record
    uint64_t position;  // where it is
    friend bool operator==(const Begin&, const Begin&) = default;
  };
  // `lsn` and `end` are the record's, as in RingTail.
  using Use = RingTail::Use;
  // Of updates that follow each other.
  using UseUpdates = absl::FunctionRef<void(const ProvenUpdates&)>;

  // REQUIRES: an aligned ring that is zero, and outlives the reader.
  RingReader(std::span<std::byte> ring, const Begin& begin);

  // Looks for further records, up to the end of what has arrived. Returns whether there are any.
  bool Scan();
  // Calls `use` for each record that Scan found and that ends at `limit` or before, and zeroes it
  // in the ring. Updates are given to `use_updates` instead, many at once, if there is one.
  void Take(uint64_t limit, Use use, std::optional<UseUpdates> use_updates = std::nullopt);
  // Reads to the end of what has arrived, and returns what was not taken. From then on there is
  // nothing more. REQUIRES: the primary's queue pairs are in the error state and flushed.
  RingTail Seal();

  uint64_t end() const { return found_.lsn; }            // LSN behind what Scan found
  uint64_t taken() const { return taken_.lsn; }          // LSN behind what was taken
  uint64_t consumed() const { return taken_.position; }  // position up to which the ring is free
  uint64_t committed() const { return committed_; }      // the highest that a record told

 private:
  struct Place {
    uint64_t lsn;
    uint64_t position;
  };

  // A record that is proven, and not added to proven_. It is good until the next one.
  struct Copy {
    RingRecordKind kind;
    uint64_t committed;
    uint64_t item_checksum = 0;  // of an update
    std::span<std::byte> bytes;
  };

  // Returns the record at a place, or nullopt if there is none. Moves the place to the ring's start
  // if the record is there.
  std::optional<Copy> RecordAt(Place* place);
  std::optional<Copy> CopyAt(const Place& place);
  // Finds the updates with which the rest of what has arrived begins, as far as none is at the
  // ring's start.
  void ScanUpdates();
  // Takes the records of an update each with which the rest begins. Returns whether there are any.
  bool TakeUpdates(uint64_t limit, UseUpdates use);
  // How many bytes at a place may be a record that has arrived.
  size_t RoomAt(const Place& place) const;
  void Zero(uint64_t from, size_t bytes);

  const std::span<std::byte> ring_;
  const uint64_t stream_id_;
  Place taken_;
  Place found_;
  uint64_t committed_ = 0;
  bool sealed_ = false;
  ProvenRecords proven_;  // those from taken_ to found_
};

}  // namespace gannet

#endif  // GANNET_SERVER_LOG_STREAM_RING_READER_H_
