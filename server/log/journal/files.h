#ifndef GANNET_SERVER_LOG_JOURNAL_FILES_H_
#define GANNET_SERVER_LOG_JOURNAL_FILES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace gannet {

// What durability needs of a file system, and nothing else. PosixFiles is the real one. The tests
// have one that loses what was not synced, tears writes, fills up and fails to sync.
//
// Errors of every call: ResourceExhausted if there is no space; the call may be repeated later. Any
// other error but the named ones says that the device cannot be relied on any more. The text names
// the file and the cause.

// One open file. Thread safety: one thread at a time. But one may sync while another one writes.
class File {
 public:
  virtual ~File() = default;
  // Writes all bytes. After an error, any part of them may be written.
  virtual absl::Status WriteAt(uint64_t offset, std::span<const std::byte> bytes) = 0;
  // Returns how many bytes were read; fewer than asked for only at the end of the file.
  virtual absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<std::byte> bytes) = 0;
  // Makes the file this long, with zeros, and takes the space for it. So later writes up to there
  // neither change the file's size nor run out of space.
  virtual absl::Status Reserve(uint64_t bytes) = 0;
  virtual absl::Status Truncate(uint64_t bytes) = 0;
  virtual absl::StatusOr<uint64_t> Size() = 0;
  // Returns when everything that was written before the call survives a power cut. After an error,
  // what was written since the last success may be lost even if a later call succeeds, because the
  // system may have dropped it (fsync(2)). So nobody may try again.
  virtual absl::Status Sync() = 0;
};

// The files of one directory. Thread safety: one thread at a time, for its open files apart.
class Files {
 public:
  virtual ~Files() = default;
  // AlreadyExists: there is such a file.
  virtual absl::StatusOr<std::unique_ptr<File>> Create(const std::string& name) = 0;
  // NotFound: there is no such file.
  virtual absl::StatusOr<std::unique_ptr<File>> Open(const std::string& name) = 0;
  // NotFound: there is no such file.
  virtual absl::Status Remove(const std::string& name) = 0;
  // Replaces `to` if it exists.
  virtual absl::Status Rename(const std::string& from, const std::string& to) = 0;
  // Returns the names of all files, sorted.
  virtual absl::StatusOr<std::vector<std::string>> List() = 0;
  // Returns OK if the file is there, under the directory's path, too. NotFound: somebody removed or
  // renamed the file or the directory, or mounted something else there. Any other error: not known.
  virtual absl::Status Find(const std::string& name) = 0;
  // Returns when every file created, removed or renamed before stays so after a power cut.
  virtual absl::Status SyncDirectory() = 0;
  // For messages.
  virtual std::string path() const = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_LOG_JOURNAL_FILES_H_
