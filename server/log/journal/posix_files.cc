// Files as the journal wants them, over open, pwrite and fdatasync. A name counts only once its
// directory was synced. What fails says what was tried with which file. The lock is held until the
// process is gone.

#include "server/log/journal/posix_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/file_rights.h"
#include "common/base/status_macros.h"
#include "glog/logging.h"
#include "server/log/journal/posix_file.h"

namespace gannet {
namespace {

class PosixFiles : public Files {
 public:
  // `access` is O_RDWR, or O_RDONLY if files are only read.
  PosixFiles(int fd, std::string path, int access)
      : fd_(fd), path_(std::move(path)), access_(access) {}
  ~PosixFiles() override { close(fd_); }
  PosixFiles(const PosixFiles&) = delete;
  PosixFiles& operator=(const PosixFiles&) = delete;

  absl::StatusOr<std::unique_ptr<File>> Create(const std::string& name) override {
    return OpenWith(O_RDWR | O_CREAT | O_EXCL, "create", name);
  }
  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& name) override {
    return OpenWith(access_, "open", name);
  }
  absl::Status Remove(const std::string& name) override {
    if (unlinkat(fd_, name.c_str(), 0) != 0) return FileError("remove", PathOf(name));
    return absl::OkStatus();
  }
  absl::Status Rename(const std::string& from, const std::string& to) override {
    if (renameat(fd_, from.c_str(), fd_, to.c_str()) != 0) return FileError("rename", PathOf(from));
    return absl::OkStatus();
  }

  absl::StatusOr<std::vector<std::string>> List() override {
    // fdopendir owns the descriptor that it gets, and moves its position.
    const int fd = openat(fd_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR* const folder = fd < 0 ? nullptr : fdopendir(fd);
    if (folder == nullptr) return FileError("list", path_);
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = readdir(folder)) {
      if (entry->d_type != DT_DIR) names.emplace_back(entry->d_name);
    }
    const int error = errno;
    closedir(folder);
    errno = error;
    if (error != 0) return FileError("list", path_);
    std::sort(names.begin(), names.end());
    return names;
  }

  absl::Status Find(const std::string& name) override {
    struct stat here {};
    struct stat by_path {};
    if (fstatat(fd_, name.c_str(), &here, AT_SYMLINK_NOFOLLOW) != 0 ||
        stat(PathOf(name).c_str(), &by_path) != 0) {
      return FileError("find", PathOf(name));
    }
    if (here.st_dev == by_path.st_dev && here.st_ino == by_path.st_ino) return absl::OkStatus();
    return absl::NotFoundError(absl::StrCat(path_, " is another directory now"));
  }

  absl::Status SyncDirectory() override {
    if (fsync(fd_) != 0) return FileError("sync", path_);
    return absl::OkStatus();
  }

  std::string path() const override { return path_; }

 private:
  std::string PathOf(const std::string& name) const { return absl::StrCat(path_, "/", name); }
  absl::StatusOr<std::unique_ptr<File>> OpenWith(int flags, const char* what,
                                                 const std::string& name) {
    const int fd = openat(fd_, name.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
    if (fd < 0) return FileError(what, PathOf(name));
    return std::make_unique<PosixFile>(fd);
  }

  const int fd_;
  const std::string path_;
  const int access_;
};

constexpr int kDirectory = O_RDONLY | O_DIRECTORY | O_CLOEXEC;

// Returns when it is there for good.
absl::Status MakeDirectory(const std::string& path) {
  namespace fs = std::filesystem;
  if (mkdir(path.c_str(), S_IRWXU) != 0) return FileError("make the directory", path);
  LOG(INFO) << "made the directory " << path;
  fs::path whole = fs::absolute(path).lexically_normal();
  if (!whole.has_filename()) whole = whole.parent_path();  // "a/"
  const std::string parent = whole.parent_path().string();
  const int fd = open(parent.c_str(), kDirectory);
  if (fd < 0) return FileError("open the directory", parent);
  const bool synced = fsync(fd) == 0;
  const absl::Status status = synced ? absl::OkStatus() : FileError("sync", parent);
  close(fd);
  return status;
}

// The lock is held until the descriptor is closed, so until the process is gone.
absl::Status Lock(int fd, int kind, const std::string& path) {
  if (flock(fd, kind | LOCK_NB) == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("another process uses the directory ", path, ": stop it first"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Files>> OpenDirectory(const std::string& path) {
  int fd = open(path.c_str(), kDirectory);
  if (fd < 0 && errno == ENOENT) {
    GANNET_RETURN_IF_ERROR(MakeDirectory(path));
    fd = open(path.c_str(), kDirectory);
  }
  if (fd < 0) return FileError("open the directory", path);
  auto files = std::make_unique<PosixFiles>(fd, path, O_RDWR);
  struct stat status {};
  if (fstat(fd, &status) != 0) return FileError("look at", path);
  GANNET_RETURN_IF_ERROR(CheckDataDirectory(path, status, ProcessIds::Own()));
  GANNET_RETURN_IF_ERROR(Lock(fd, LOCK_EX, path));
  return files;
}

absl::StatusOr<std::unique_ptr<Files>> OpenDirectoryToRead(const std::string& path) {
  const int fd = open(path.c_str(), kDirectory);
  if (fd < 0) return FileError("open the directory", path);
  auto files = std::make_unique<PosixFiles>(fd, path, O_RDONLY);
  GANNET_RETURN_IF_ERROR(Lock(fd, LOCK_SH, path));
  return files;
}

}  // namespace gannet
