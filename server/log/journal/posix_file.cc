#include "server/log/journal/posix_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace gannet {

absl::Status FileError(const char* what, const std::string& path) {
  const int error = errno;
  const std::string text = absl::StrCat("cannot ", what, " ", path, ": ", std::strerror(error));
  switch (error) {
    case ENOSPC:
    case EDQUOT:
      return absl::ResourceExhaustedError(text);
    case ENOENT:
      return absl::NotFoundError(text);
    case EEXIST:
      return absl::AlreadyExistsError(text);
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(text);
    default:
      return absl::InternalError(text);
  }
}

absl::Status PosixFile::WriteAt(uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = pwrite_(fd_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Failure("write to");
    bytes = bytes.subspan(n);
    offset += n;
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> PosixFile::ReadAt(uint64_t offset, std::span<std::byte> bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t n =
        pread_(fd_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Failure("read");
    if (n == 0) break;
    done += n;
  }
  return done;
}

absl::Status PosixFile::Reserve(uint64_t bytes) {
  // Returns the error number instead of setting errno.
  while (const int error = posix_fallocate(fd_, 0, static_cast<off_t>(bytes))) {
    if (error == EINTR) continue;
    errno = error;
    return Failure("take space for");
  }
  return absl::OkStatus();
}

absl::Status PosixFile::Truncate(uint64_t bytes) {
  if (ftruncate(fd_, static_cast<off_t>(bytes)) != 0) return Failure("truncate");
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> PosixFile::Size() {
  struct stat status {};
  if (fstat(fd_, &status) != 0) return Failure("look at");
  return static_cast<uint64_t>(status.st_size);
}

absl::Status PosixFile::Sync() {
  if (fdatasync(fd_) != 0) return Failure("sync");
  return absl::OkStatus();
}

// Asks the kernel for the file's name, because files are renamed while they are open.
absl::Status PosixFile::Failure(const char* what) const {
  const int failed = errno;
  std::error_code error;
  const std::string link = absl::StrCat("/proc/self/fd/", fd_);
  const std::string path = std::filesystem::read_symlink(link, error).string();
  errno = failed;
  return FileError(what, error ? "an open file" : path);
}

}  // namespace gannet
