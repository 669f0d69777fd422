#ifndef GANNET_COMMON_AUTH_AUTH_FILE_H_
#define GANNET_COMMON_AUTH_AUTH_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/auth/auth_key.h"

namespace gannet {

// The environment variable that names the auth file, for programs that get no name by a flag or an
// option.
inline constexpr char kAuthFileVariable[] = "GANNET_AUTH_FILE";
// Returns `path`. If it is empty, returns the file that kAuthFileVariable names, or an empty path.
// A program that runs with more rights than its caller (setuid) ignores its environment.
std::string AuthFilePath(std::string path);

// A file of pre-shared keys (parse_auth_keys.h has the format), with the keys of its last good
// version. So a file that is broken while somebody changes it locks nobody out. One owner thread.
class AuthFile {
 public:
  static constexpr size_t kBytesMax = 64 << 10;

  // Reads the file. NotFound: there is none. FailedPrecondition: others may read or change it
  // (CheckSecretFile), or it is no ordinary file. InvalidArgument: see ParseAuthKeys, or it is too
  // long.
  // The text names the file and says what to do.
  static absl::StatusOr<AuthFile> Open(std::string path);
  // Opens the file of a client, AuthFilePath(path). Returns null if there is none: the client has
  // no key.
  static absl::StatusOr<std::shared_ptr<AuthFile>> OpenIfNamed(const std::string& path);

  // Returns true if the file differs from the one that was last read, as far as its inode tells.
  bool Changed() const { return IdentityNow() != read_; }
  // Reads the file again. If that fails, the keys stay, and the error is Open's.
  absl::Status Reload();

  const std::string& path() const { return path_; }
  // The keys, at least one.
  const std::vector<AuthKey>& keys() const { return keys_; }

 private:
  // Identifies a state of the file. It changes whenever the file is written, replaced or gets other
  // permissions. All zero: there is no such file.
  struct Identity {
    uint64_t device = 0;
    uint64_t inode = 0;
    int64_t bytes = 0;
    int64_t changed_ns = 0;
    friend bool operator==(const Identity&, const Identity&) = default;
  };

  explicit AuthFile(std::string path) : path_(std::move(path)) {}
  Identity IdentityNow() const;
  absl::StatusOr<std::string> ReadText();

  std::string path_;
  Identity read_;  // of the last file that was read, even if it was refused
  std::vector<AuthKey> keys_;
};

}  // namespace gannet

#endif  // GANNET_COMMON_AUTH_AUTH_FILE_H_
