#ifndef GANNET_SERVER_MAIN_DISK_SNAPSHOT_H_
#define GANNET_SERVER_MAIN_DISK_SNAPSHOT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/log/changes/record.h"
#include "server/log/journal/files.h"

namespace gannet {

// A snapshot is a file with every item: a header, a record for each (record.h), and an end. It is
// written while the items change. An item that changed meanwhile is in it as it was at some moment,
// or not at all. But it names the journal's position at which it was begun, and it gets its name
// only after everything that was appended until its end is on disk. So whoever loads it and then
// makes the changes of the journal from there on again has the items as the journal's end says.
// docs/durability-formats.md has the same tables.
struct SnapshotHeader {
  uint64_t magic;
  uint32_t version;
  uint32_t header_bytes;
  uint64_t journal_id;
  uint64_t position;  // of the journal
  uint64_t checksum;  // XXH3-64 of the fields before, seed 0
};
static_assert(sizeof(SnapshotHeader) == 40 && std::is_trivially_copyable_v<SnapshotHeader>);

struct SnapshotEnd {
  uint64_t magic;
  uint64_t items;
  uint64_t offset;    // of this end
  uint64_t checksum;  // XXH3-64 of the fields before; the seed is the checksum of the header
};
static_assert(sizeof(SnapshotEnd) == 32 && std::is_trivially_copyable_v<SnapshotEnd>);

inline constexpr uint64_t kSnapshotMagic = 0x50414e5354454e47;     // "GNETSNAP"
inline constexpr uint64_t kSnapshotEndMagic = 0x444e455354454e47;  // "GNETSEND"
inline constexpr uint32_t kSnapshotVersion = 1;
inline constexpr size_t kSnapshotHeaderBytes = 64;  // the rest is zero

// The name of a snapshot that is not complete yet.
inline constexpr char kNewSnapshotName[] = "snapshot.new";
std::string SnapshotName(uint64_t position);
// Returns the position in a snapshot's name, or nullopt if it is another file's.
std::optional<uint64_t> PositionOfSnapshot(std::string_view name);

// Writes a snapshot. After an error, it must be given up. Thread safety: one thread.
class SnapshotWriter {
 public:
  static absl::StatusOr<std::unique_ptr<SnapshotWriter>> Create(Files* files, uint64_t journal_id,
                                                                uint64_t position);
  // Adds an item, in memory only.
  void Add(const Change& item);
  // How much was added and not written.
  size_t waiting_bytes() const { return waiting_.size(); }
  // Writes what was added. Syncs now and then, so that no sync takes long.
  absl::Status Write();
  // Writes the end, and syncs. The snapshot has no name yet.
  absl::Status Complete();
  // Gives it its name, for good. REQUIRES: Complete; and everything that was appended to the
  // journal until the last Add is on disk.
  absl::Status Name();

  uint64_t position() const { return header_.position; }
  uint64_t items() const { return items_; }
  uint64_t bytes() const { return written_; }

 private:
  SnapshotWriter(Files* files, std::unique_ptr<File> file, const SnapshotHeader& header)
      : files_(files), file_(std::move(file)), header_(header) {}

  Files* const files_;
  const std::unique_ptr<File> file_;
  const SnapshotHeader header_;
  std::vector<std::byte> waiting_;
  uint64_t items_ = 0;
  uint64_t written_ = 0;
  uint64_t synced_ = 0;
  bool complete_ = false;
};

struct SnapshotRead {
  uint64_t journal_id = 0;
  uint64_t position = 0;
  uint64_t items = 0;
  uint64_t bytes = 0;
};
// Returns how many slots an index should have at least before the newest snapshot of the directory
// is loaded; 0 if there is none. The items come in the order of the index. So a smaller one would
// be full at its beginning while it is empty at its end, and could not grow.
absl::StatusOr<uint64_t> SlotsForSnapshot(Files* files);

// Gives every item to `apply`. Ends at the first error that `apply` returns. DataLoss: the file is
// damaged or cut. FailedPrecondition: it is of another version, or of another directory than
// `journal_id` (nullopt: of any).
absl::StatusOr<SnapshotRead> ReadSnapshot(Files* files, const std::string& name,
                                          std::optional<uint64_t> journal_id,
                                          absl::FunctionRef<absl::Status(const Change&)> apply);

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_DISK_SNAPSHOT_H_
