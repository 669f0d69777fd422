// How a tier's file is opened. What is found on the disk is judged before it is changed: a file
// that is no tier, is another server's, or has another layout is refused and stays as it is.

#include "server/memory/tier/tier_file.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/file_rights.h"
#include "common/base/random_source.h"
#include "common/base/status_macros.h"
#include "glog/logging.h"
#include "server/memory/tier/tier_buffer.h"

namespace gannet {
namespace {

constexpr char kName[] = "tier";
constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
constexpr int kFile = O_RDWR | O_CLOEXEC;

// FileError, which also knows what a path without a directory and a file that may not be so long
// are here.
absl::Status Failed(const char* what, const std::string& path) {
  const int error = errno;
  const absl::Status status = FileError(what, path);
  if (error == EFBIG) return absl::ResourceExhaustedError(status.message());
  if (error == ENOTDIR) return absl::NotFoundError(status.message());
  return status;
}

absl::Status CheckDirectory(int fd, const std::string& path) {
  struct stat about {};
  struct statfs system {};
  if (fstat(fd, &about) != 0 || fstatfs(fd, &system) != 0) return Failed("look at", path);
  if (system.f_type == TMPFS_MAGIC || system.f_type == RAMFS_MAGIC) {
    return absl::FailedPreconditionError(
        absl::StrCat(path, " is in memory (tmpfs): give a directory on a disk"));
  }
  return CheckDataDirectory(path, about, ProcessIds::Own());
}

// Returns the descriptor, or -1 with errno.
int OpenFile(int directory, bool keeps, int direct) {
  if (!keeps) return openat(directory, ".", kFile | O_TMPFILE | direct, S_IRUSR | S_IWUSR);
  return openat(directory, kName, kFile | O_CREAT | O_NOFOLLOW | direct, S_IRUSR | S_IWUSR);
}

}  // namespace

absl::StatusOr<std::unique_ptr<TierFile>> TierFile::Open(const TierFileOptions& options) {
  if (options.bytes / options.segment_bytes < kTierSegmentsMin) {
    return absl::InvalidArgumentError(absl::StrCat("a tier has at least ",
                                                   kTierSegmentsMin * options.segment_bytes,
                                                   " bytes, and not ", options.bytes));
  }
  const int directory = open(options.directory.c_str(), kDirectory);
  if (directory < 0) return Failed("open the directory", options.directory);
  absl::StatusOr<std::unique_ptr<TierFile>> file = OpenIn(directory, options);
  close(directory);
  return file;
}

absl::StatusOr<std::unique_ptr<TierFile>> TierFile::OpenIn(int directory,
                                                           const TierFileOptions& options) {
  GANNET_RETURN_IF_ERROR(CheckDirectory(directory, options.directory));
  const std::string path = absl::StrCat(options.directory, "/", kName);
  bool direct = true;
  int fd = OpenFile(directory, options.keeps, O_DIRECT);
  if (fd < 0 && errno == EINVAL) {
    direct = false;
    fd = OpenFile(directory, options.keeps, 0);
  }
  if (fd < 0) return Failed("open", path);
  std::unique_ptr<TierFile> file(new TierFile(options, fd, direct, path));
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    return absl::FailedPreconditionError(
        absl::StrCat("another process uses the tier ", path, ": stop it first"));
  }
  GANNET_RETURN_IF_ERROR(file->Begin(options));
  return file;
}

absl::Status TierFile::Begin(const TierFileOptions& options) {
  const TierBuffer buffer(kTierBlockBytes);
  const std::span<std::byte, kTierBlockBytes> block(buffer.bytes());
  std::memset(block.data(), 0, block.size());
  absl::StatusOr<size_t> n = ReadAt(0, block);
  if (!n.ok() && direct_) {
    GANNET_RETURN_IF_ERROR(UseCache());
    n = ReadAt(0, block);
  }
  GANNET_RETURN_IF_ERROR(n.status());
  const TierHeader wanted{.magic = 0,
                          .layout = 0,
                          .header_bytes = 0,
                          .tier = 0,
                          .segment_bytes = options.segment_bytes,
                          .segments = options.bytes / options.segment_bytes,
                          .checksum = 0};
  switch (ProveTierHeader(block, &header_)) {
    case TierHeaderProof::kEmpty:
      return Make(options, wanted);
    case TierHeaderProof::kOtherLayout:
      return absl::FailedPreconditionError(
          absl::StrCat(path_, " is a tier of layout ", header_.layout, ", and this program has ",
                       kTierLayout, ": remove it, or use that program"));
    case TierHeaderProof::kNoTier:
      return absl::FailedPreconditionError(
          absl::StrCat(path_, " is no tier, or a damaged one: remove it"));
    case TierHeaderProof::kOk:
      break;
  }
  if (header_.segment_bytes != wanted.segment_bytes || header_.segments != wanted.segments) {
    LOG(INFO) << path_ << " had another size: its values are dropped";
    return Make(options, wanted);
  }
  kept_ = true;
  return WriteHeader(block);
}

absl::Status TierFile::Make(const TierFileOptions& options, const TierHeader& wanted) {
  // The header goes first, so that a half-made tier has none.
  GANNET_RETURN_IF_ERROR(Truncate(0));
  GANNET_RETURN_IF_ERROR(Reserve(kTierBlockBytes + wanted.segments * wanted.segment_bytes));
  header_ = wanted;
  header_.tier = KernelRandom().NextNonzero();
  const TierBuffer buffer(kTierBlockBytes);
  const std::span<std::byte, kTierBlockBytes> block(buffer.bytes());
  EncodeTierHeader(header_.tier, header_.segment_bytes, header_.segments, block);
  GANNET_RETURN_IF_ERROR(WriteHeader(block));
  LOG(INFO) << "made a tier of " << header_.segments << " segments in " << options.directory;
  return absl::OkStatus();
}

absl::Status TierFile::WriteHeader(std::span<std::byte, kTierBlockBytes> block) {
  const TierBuffer read(kTierBlockBytes);
  for (;;) {
    absl::Status status = WriteAt(0, block);
    absl::StatusOr<size_t> n = 0;
    if (status.ok()) {
      n = ReadAt(0, read.bytes());
      status = n.status();
    }
    if (status.ok()) {
      if (*n == block.size() && std::ranges::equal(block, read.bytes())) return status;
      return absl::DataLossError(absl::StrCat(path_, " does not keep what is written to it"));
    }
    if (!direct_ || absl::IsResourceExhausted(status)) return status;
    LOG(WARNING) << status.message() << ": the tier goes through the system's page cache";
    GANNET_RETURN_IF_ERROR(UseCache());
  }
}

absl::Status TierFile::UseCache() {
  const int flags = fcntl(fd(), F_GETFL);
  if (flags < 0 || fcntl(fd(), F_SETFL, flags & ~O_DIRECT) != 0)
    return Failure("use the cache for");
  direct_ = false;
  return absl::OkStatus();
}

absl::Status TierFile::Failure(const char* what) const { return Failed(what, path_); }

absl::Status TierFile::Reserve(uint64_t bytes) {
  if (fallocate(fd(), 0, 0, static_cast<off_t>(bytes)) == 0) return absl::OkStatus();
  const bool cannot = errno == EOPNOTSUPP;
  if (!cannot && errno != ENOSPC && errno != EFBIG) return Failure("take space for");
  struct statvfs system {};
  if (fstatvfs(fd(), &system) != 0) return Failure("look at");
  const uint64_t free = uint64_t{system.f_bavail} * system.f_frsize;
  if (cannot && free >= bytes) return Truncate(bytes);
  return absl::ResourceExhaustedError(
      absl::StrCat(path_, " needs ", bytes, " bytes, and its disk has ", free, " free"));
}

}  // namespace gannet
