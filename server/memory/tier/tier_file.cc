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
#include "common/base/check.h"
#include "common/base/file_rights.h"
#include "common/base/random_source.h"
#include "common/base/status_macros.h"
#include "glog/logging.h"
#include "server/memory/tier/tier_buffer.h"

namespace gannet {
namespace {

constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
constexpr int kFile = O_RDWR | O_CLOEXEC;

// FileError, which also knows what a path without a directory, a link and a file that may not be so
// long are here.
absl::Status Failed(const char* what, const std::string& path) {
  const int error = errno;
  const absl::Status status = FileError(what, path);
  if (error == EFBIG) return absl::ResourceExhaustedError(status.message());
  if (error == ENOTDIR) return absl::NotFoundError(status.message());
  if (error == ELOOP) {
    return absl::FailedPreconditionError(absl::StrCat(path, " is a symbolic link: remove it"));
  }
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
int OpenFile(int directory, bool named, int direct) {
  if (!named) return openat(directory, ".", kFile | O_TMPFILE | direct, S_IRUSR | S_IWUSR);
  return openat(directory, kTierFileName, kFile | O_CREAT | O_NOFOLLOW | direct, S_IRUSR | S_IWUSR);
}
// Past the system's page cache, if the file system offers that.
struct Opened {
  int fd;
  bool direct;
};
Opened OpenFile(int directory, bool named) {
  const int fd = OpenFile(directory, named, O_DIRECT);
  if (fd >= 0 || errno != EINVAL) return {fd, true};
  return {OpenFile(directory, named, 0), false};
}

// What errno is where a file system has no files without a name (open(2)).
bool NoneUnnamed() { return errno == EOPNOTSUPP || errno == EISDIR; }

// Takes errno.
absl::Status NotOpened(const TierFileOptions& options, const std::string& path) {
  if (options.keeps || !NoneUnnamed()) return Failed("open", path);
  return absl::FailedPreconditionError(absl::StrCat(
      "the file system of ", options.directory, " has no files without a name (O_TMPFILE): ",
      "give a directory on ext4 or XFS, or a --memory_file, with which it has one"));
}

uint64_t SegmentsOf(const TierFileOptions& options) {
  return options.bytes / options.segment_bytes;
}

uint64_t FileBytes(const TierFileOptions& options) {
  return kTierBlockBytes + SegmentsOf(options) * options.segment_bytes;
}

// Returns its descriptor.
absl::StatusOr<int> OpenDirectory(const TierFileOptions& options) {
  if (SegmentsOf(options) < kTierSegmentsMin) {
    return absl::InvalidArgumentError(absl::StrCat("a tier has at least ",
                                                   kTierSegmentsMin * options.segment_bytes,
                                                   " bytes, and not ", options.bytes));
  }
  const int directory = open(options.directory.c_str(), kDirectory);
  if (directory < 0) return Failed("open the directory", options.directory);
  return directory;
}

uint64_t FreeBytes(const struct statvfs& system) {
  return uint64_t{system.f_bavail} * system.f_frsize;
}

absl::Status TooLittle(const std::string& path, uint64_t bytes, uint64_t free) {
  return absl::ResourceExhaustedError(
      absl::StrCat(path, " needs ", bytes, " bytes, and its disk has ", free, " free"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<TierFile>> TierFile::Open(const TierFileOptions& options) {
  GANNET_ASSIGN_OR_RETURN(const int directory, OpenDirectory(options));
  absl::StatusOr<std::unique_ptr<TierFile>> file = OpenIn(directory, options);
  close(directory);
  return file;
}

absl::StatusOr<TierExamination> TierFile::Examine(const TierFileOptions& options) {
  GANNET_ASSIGN_OR_RETURN(const int directory, OpenDirectory(options));
  absl::StatusOr<TierExamination> found = ExamineIn(directory, options);
  close(directory);
  return found;
}

absl::StatusOr<std::unique_ptr<TierFile>> TierFile::OpenIn(int directory,
                                                           const TierFileOptions& options) {
  GANNET_RETURN_IF_ERROR(CheckDirectory(directory, options.directory));
  const std::string path = absl::StrCat(options.directory, "/", kTierFileName);
  const Opened opened = OpenFile(directory, options.keeps);
  if (opened.fd < 0) return NotOpened(options, path);
  std::unique_ptr<TierFile> file(new TierFile(options, opened.fd, opened.direct, path));
  GANNET_RETURN_IF_ERROR(file->Lock());
  GANNET_RETURN_IF_ERROR(file->Begin(options));
  return file;
}

absl::StatusOr<TierExamination> TierFile::ExamineIn(int directory, const TierFileOptions& options) {
  GANNET_RETURN_IF_ERROR(CheckDirectory(directory, options.directory));
  const std::string path = absl::StrCat(options.directory, "/", kTierFileName);
  const TierBuffer buffer(kTierBlockBytes);
  const std::span<std::byte, kTierBlockBytes> block(buffer.bytes());
  TierExamination found;
  struct statvfs system {};
  if (fstatvfs(directory, &system) != 0) return Failed("look at", options.directory);
  found.free_bytes = FreeBytes(system);
  const int there = options.keeps ? openat(directory, kTierFileName, kFile | O_NOFOLLOW) : -1;
  if (options.keeps && there < 0 && errno != ENOENT) return Failed("open", path);
  if (there >= 0) {
    TierFile file(options, there, /*direct=*/false, path);
    GANNET_RETURN_IF_ERROR(file.Lock());
    const absl::Status header = file.ReadHeader(block);
    if (!header.ok() && !absl::IsNotFound(header)) return header;
    found.kept = header.ok() && file.SizedAs(options);
    struct stat about {};
    if (fstat(there, &about) != 0) return Failed("look at", path);
    found.free_bytes += static_cast<uint64_t>(about.st_blocks) * 512;  // as stat(2) counts
  }
  if (!found.kept && found.free_bytes < FileBytes(options)) {
    return TooLittle(path, FileBytes(options), found.free_bytes);
  }
  const Opened tried = OpenFile(directory, /*named=*/false);
  if (tried.fd < 0 && options.keeps && NoneUnnamed()) return found;
  if (tried.fd < 0) return NotOpened(options, path);
  TierFile file(options, tried.fd, tried.direct, path);
  std::memset(block.data(), 0, block.size());
  GANNET_RETURN_IF_ERROR(file.WriteHeader(block));
  found.direct = file.direct();
  return found;
}

absl::Status TierFile::Lock() {
  if (flock(fd(), LOCK_EX | LOCK_NB) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("another process uses the tier ", path_, ": stop it first"));
}

absl::Status TierFile::ReadHeader(std::span<std::byte, kTierBlockBytes> block) {
  std::memset(block.data(), 0, block.size());
  absl::StatusOr<size_t> n = ReadAt(0, block);
  if (!n.ok() && direct_) {
    GANNET_RETURN_IF_ERROR(UseCache());
    n = ReadAt(0, block);
  }
  GANNET_RETURN_IF_ERROR(n.status());
  switch (ProveTierHeader(block, &header_)) {
    case TierHeaderProof::kEmpty:
      return absl::NotFoundError(absl::StrCat(path_, " is empty"));
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
  return absl::OkStatus();
}

bool TierFile::SizedAs(const TierFileOptions& options) const {
  return header_.segment_bytes == options.segment_bytes && header_.segments == SegmentsOf(options);
}

absl::Status TierFile::Begin(const TierFileOptions& options) {
  const TierBuffer buffer(kTierBlockBytes);
  const std::span<std::byte, kTierBlockBytes> block(buffer.bytes());
  const absl::Status header = ReadHeader(block);
  if (absl::IsNotFound(header)) return Make(options);
  GANNET_RETURN_IF_ERROR(header);
  if (!SizedAs(options)) {
    LOG(INFO) << path_ << " had another size: its values are dropped";
    return Make(options);
  }
  kept_ = true;
  return WriteHeader(block);
}

absl::Status TierFile::Make(const TierFileOptions& options) {
  // The header goes first, so that a half-made tier has none.
  GANNET_RETURN_IF_ERROR(Truncate(0));
  GANNET_RETURN_IF_ERROR(Reserve(FileBytes(options)));
  const TierBuffer buffer(kTierBlockBytes);
  const std::span<std::byte, kTierBlockBytes> block(buffer.bytes());
  EncodeTierHeader(KernelRandom().NextNonzero(), options.segment_bytes, SegmentsOf(options), block);
  GANNET_CHECK(ProveTierHeader(block, &header_) == TierHeaderProof::kOk, "it was made");
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
  struct statvfs system {};
  if (fstatvfs(fd(), &system) != 0) return Failure("look at");
  // Looked at first, as a disk would take all that it has before it finds that this is too little.
  const uint64_t free = FreeBytes(system);
  if (free < bytes) return TooLittle(path_, bytes, free);
  if (fallocate(fd(), 0, 0, static_cast<off_t>(bytes)) == 0) return absl::OkStatus();
  if (errno == EOPNOTSUPP) return Truncate(bytes);
  const absl::Status status = Failure("take space for");
  GANNET_RETURN_IF_ERROR(Truncate(0));
  return status;
}

}  // namespace gannet
