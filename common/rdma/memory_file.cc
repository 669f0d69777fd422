#include "common/rdma/memory_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/align.h"
#include "common/base/page_size.h"
#include "common/base/status_macros.h"

namespace gannet {
namespace {

absl::Status Error(absl::StatusCode code, const std::string& path, const std::string& what) {
  return absl::Status(code, absl::StrCat("memory file ", path, ": ", what));
}

// Allocates all pages now. Later a lack of memory would be a SIGBUS.
absl::Status Extend(const std::string& path, const MemoryFile& file) {
  if (ftruncate(file.fd, static_cast<off_t>(file.bytes)) == 0 &&
      fallocate(file.fd, 0, 0, static_cast<off_t>(file.bytes)) == 0) {
    return absl::OkStatus();
  }
  const int error = errno;
  if (ftruncate(file.fd, 0) != 0)
    return Error(absl::StatusCode::kInternal, path, std::strerror(errno));
  return Error(absl::StatusCode::kResourceExhausted, path,
               absl::StrCat("cannot have ", file.bytes, " bytes: ", std::strerror(error),
                            "; ask for less with --memory, or give the file system more"));
}

// Returns the page size of the path's file system. InvalidArgument: its files are no memory.
absl::StatusOr<uint64_t> PageBytesAt(const std::string& path) {
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  struct statfs system {};
  if (statfs(folder.c_str(), &system) != 0) {
    return Error(absl::StatusCode::kInvalidArgument, path, std::strerror(errno));
  }
  if (system.f_type == HUGETLBFS_MAGIC) return static_cast<uint64_t>(system.f_bsize);
  if (system.f_type == TMPFS_MAGIC) return SystemPageBytes();
  return Error(absl::StatusCode::kInvalidArgument, path,
               "it is not on tmpfs (/dev/shm) or hugetlbfs, so it is no memory");
}

// Locks the opened file for this process, and gives it this length.
absl::Status Claim(const std::string& path, uint64_t bytes, MemoryFile* file) {
  using Code = absl::StatusCode;
  if (flock(file->fd, LOCK_EX | LOCK_NB) != 0) {
    return Error(Code::kFailedPrecondition, path, "another process serves from it");
  }
  struct stat status {};
  if (fstat(file->fd, &status) != 0) return Error(Code::kInternal, path, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return Error(Code::kInvalidArgument, path, "it is no file");
  file->bytes = AlignUp(bytes, file->page_bytes);
  file->existed = status.st_size != 0;
  if (!file->existed) return Extend(path, *file);
  if (static_cast<uint64_t>(status.st_size) == file->bytes) return absl::OkStatus();
  return Error(Code::kInvalidArgument, path,
               absl::StrCat("it has ", status.st_size, " bytes, and --memory asks for ",
                            file->bytes, ": give the size that it was made with, or remove it"));
}

}  // namespace

absl::StatusOr<MemoryFile> OpenMemoryFile(const std::string& path, uint64_t bytes) {
  MemoryFile file;
  GANNET_ASSIGN_OR_RETURN(file.page_bytes, PageBytesAt(path));
  file.fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file.fd < 0) {
    return Error(absl::StatusCode::kInvalidArgument, path, std::strerror(errno));
  }
  if (absl::Status claimed = Claim(path, bytes, &file); !claimed.ok()) {
    close(file.fd);
    return claimed;
  }
  return file;
}

}  // namespace gannet
