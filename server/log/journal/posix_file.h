#ifndef GANNET_SERVER_LOG_JOURNAL_POSIX_FILE_H_
#define GANNET_SERVER_LOG_JOURNAL_POSIX_FILE_H_

#include <sys/types.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/log/journal/files.h"

namespace gannet {

// Takes errno. Says what was tried with which file.
absl::Status FileError(const char* what, const std::string& path);

// A file of the file system, whose descriptor it closes. Thread safety: any thread may read and
// write.
class PosixFile : public File {
 public:
  // pwrite(2) and pread(2), or what stands for them in a test.
  using Pwrite = ssize_t (*)(int fd, const void* bytes, size_t n, off_t offset);
  using Pread = ssize_t (*)(int fd, void* bytes, size_t n, off_t offset);
  explicit PosixFile(int fd, Pwrite pwrite = ::pwrite, Pread pread = ::pread)
      : fd_(fd), pwrite_(pwrite), pread_(pread) {}
  ~PosixFile() override { close(fd_); }
  PosixFile(const PosixFile&) = delete;
  PosixFile& operator=(const PosixFile&) = delete;

  absl::Status WriteAt(uint64_t offset, std::span<const std::byte> bytes) override;
  absl::StatusOr<size_t> ReadAt(uint64_t offset, std::span<std::byte> bytes) override;
  absl::Status Reserve(uint64_t bytes) override;
  absl::Status Truncate(uint64_t bytes) override;
  absl::StatusOr<uint64_t> Size() override;
  absl::Status Sync() override;

 protected:
  int fd() const { return fd_; }
  // Takes errno. Says what was tried with this file.
  virtual absl::Status Failure(const char* what) const;

 private:
  const int fd_;
  const Pwrite pwrite_;
  const Pread pread_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_LOG_JOURNAL_POSIX_FILE_H_
