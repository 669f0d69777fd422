#include "common/auth/auth_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/auth/parse_auth_keys.h"
#include "common/base/clock.h"
#include "common/base/file_rights.h"
#include "common/base/status_macros.h"

namespace gannet {
namespace {

struct Close {
  void operator()(const int* fd) const { close(*fd); }
};

absl::Status CannotRead(const std::string& path, int error) {
  const std::string text = absl::StrCat("cannot read ", path, ": ", std::strerror(error));
  return error == ENOENT ? absl::NotFoundError(text) : absl::FailedPreconditionError(text);
}

}  // namespace

std::string AuthFilePath(std::string path) {
  if (!path.empty()) return path;
  const char* named = secure_getenv(kAuthFileVariable);
  return named == nullptr ? "" : named;
}

absl::StatusOr<AuthFile> AuthFile::Open(std::string path) {
  AuthFile file(std::move(path));
  GANNET_RETURN_IF_ERROR(file.Reload());
  return file;
}

absl::StatusOr<std::shared_ptr<AuthFile>> AuthFile::OpenIfNamed(const std::string& path) {
  std::string named = AuthFilePath(path);
  if (named.empty()) return nullptr;
  absl::StatusOr<AuthFile> file = Open(std::move(named));
  if (file.ok()) return std::make_shared<AuthFile>(*std::move(file));
  if (!path.empty()) return file.status();
  return absl::Status(file.status().code(),
                      absl::StrCat(kAuthFileVariable, ": ", std::string(file.status().message())));
}

AuthFile::Identity AuthFile::IdentityNow() const {
  struct stat about {};
  if (stat(path_.c_str(), &about) != 0) return {};
  return {about.st_dev, about.st_ino, about.st_size,
          about.st_ctim.tv_sec * kNsPerSecond + about.st_ctim.tv_nsec};
}

absl::Status AuthFile::Reload() {
  GANNET_ASSIGN_OR_RETURN(const std::string text, ReadText());
  GANNET_ASSIGN_OR_RETURN(keys_, ParseAuthKeys(text, path_));
  return absl::OkStatus();
}

absl::StatusOr<std::string> AuthFile::ReadText() {
  // Taken before the file is read. So a file that is written meanwhile counts as changed.
  read_ = IdentityNow();
  // O_NONBLOCK: to open a FIFO would wait for its writer.
  const int fd = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return CannotRead(path_, errno);
  const std::unique_ptr<const int, Close> closes(&fd);
  struct stat about {};
  if (fstat(fd, &about) != 0) return CannotRead(path_, errno);
  GANNET_RETURN_IF_ERROR(CheckSecretFile(path_, about, ProcessIds::Own()));
  std::string text(kBytesMax + 1, '\0');
  size_t bytes = 0;
  while (bytes < text.size()) {
    const ssize_t n = read(fd, text.data() + bytes, text.size() - bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return CannotRead(path_, errno);
    if (n == 0) break;
    bytes += static_cast<size_t>(n);
  }
  if (bytes > kBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat(path_, " has more than ", kBytesMax, " bytes: is it a file of keys?"));
  }
  text.resize(bytes);
  return text;
}

}  // namespace gannet
