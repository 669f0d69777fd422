#ifndef GANNET_SERVER_LOG_JOURNAL_SEGMENT_FILES_H_
#define GANNET_SERVER_LOG_JOURNAL_SEGMENT_FILES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/log/journal/files.h"

namespace gannet {

// The files of a journal's segments, in its directory (segment.h). Statuses are those of Files.
//
// Thread safety: one thread at a time; disk_bytes and AddDiskBytes from any.
class SegmentFiles {
 public:
  // `files` outlives it. Each segment has space for so many bytes of records. `disk_bytes`: of
  // those that are there.
  SegmentFiles(Files& files, uint64_t journal_id, uint64_t segment_bytes, uint64_t disk_bytes)
      : files_(files),
        journal_id_(journal_id),
        segment_bytes_(segment_bytes),
        disk_bytes_(disk_bytes) {}

  // Makes the file of a segment, with its space. It has no header and no name yet.
  absl::StatusOr<std::unique_ptr<File>> Make();
  // Writes the header, syncs the file, and gives it the name of a segment that begins at `first`.
  absl::Status Name(File* file, uint64_t first);
  // Returns an error if somebody removed or renamed that segment or its directory.
  absl::Status Find(uint64_t first) const;
  // Removes the segments that lie below `position` as a whole.
  absl::Status Trim(uint64_t position);

  uint64_t segment_bytes() const { return segment_bytes_; }
  // Bytes of all segments. Relaxed: nothing depends on it.
  uint64_t disk_bytes() const { return disk_bytes_.load(std::memory_order_relaxed); }
  void AddDiskBytes(uint64_t bytes) { disk_bytes_.fetch_add(bytes, std::memory_order_relaxed); }

 private:
  Files& files_;
  const uint64_t journal_id_;
  const uint64_t segment_bytes_;
  std::atomic<uint64_t> disk_bytes_;
};

// Returns `status`, or an error that is final in its place: a sync that failed is never tried
// again, whatever the reason.
absl::Status NotAgain(const absl::Status& status);

// Writes records to a segment. While the next one is being made, what comes is written to both.
//
// Thread safety: one thread at a time.
class SegmentWriter {
 public:
  // `zeroes_ahead`: makes syncs cheaper that follow each write.
  SegmentWriter(SegmentFiles& files, bool zeroes_ahead)
      : files_(files), zeroes_ahead_(zeroes_ahead) {}

  // Writes go to this segment, which begins at `first`, and no longer to the one before.
  // `written`: the position behind what both have.
  void Use(std::unique_ptr<File> file, uint64_t first, uint64_t written);
  // Writes go to this one, too, until EndNext. It begins at `first`, and the caller owns it.
  void BeginNext(File* next, uint64_t first);
  void EndNext() { next_ = nullptr; }

  // Writes records that begin at `position`, behind all that was written.
  absl::Status Write(uint64_t position, std::span<const std::byte> records);

  // The segment; nullptr: there is none yet. Whoever calls Use may sync it meanwhile.
  File* file() const { return file_.get(); }
  uint64_t first() const { return first_; }
  bool IsFull(uint64_t written) const { return written - first_ >= space_; }

 private:
  // Writes zeros behind records that end there, if that makes the next syncs cheaper.
  absl::Status ZeroAhead(uint64_t end, size_t bytes);

  SegmentFiles& files_;
  const bool zeroes_ahead_;
  std::unique_ptr<File> file_;
  uint64_t first_ = 0;
  uint64_t space_ = 0;    // of the file, without its header
  File* next_ = nullptr;  // while it is being made
  uint64_t next_first_ = 0;
  uint64_t zeroed_ = 0;  // up to there zeros were written
};

}  // namespace gannet

#endif  // GANNET_SERVER_LOG_JOURNAL_SEGMENT_FILES_H_
