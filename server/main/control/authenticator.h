#ifndef GANNET_SERVER_MAIN_CONTROL_AUTHENTICATOR_H_
#define GANNET_SERVER_MAIN_CONTROL_AUTHENTICATOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/auth/auth_file.h"
#include "common/base/check.h"
#include "common/base/clocks.h"
#include "common/protocol/connect.h"
#include "server/main/control/replay_guard.h"
#include "server/sessions/session/session_key.h"

namespace gannet {

// Decides who may connect, by the keys of the server's auth file. A server without such a file lets
// everybody in.
//
// 1. Until Judge has accepted its request, a client hears nothing but the reason of its refusal.
// 2. A key that the file no longer has is marked as revoked, which closes its connections.
//
// One owner thread.
class Authenticator {
 public:
  // Reads the file. If `path` is empty there are no keys. Requests that were made before `now` are
  // refused: an earlier run of the server may have accepted them.
  // Errors: see AuthFile::Open.
  static absl::StatusOr<Authenticator> Create(const std::string& path, WallTime now);

  struct Answer {
    RejectCode refused{};                   // 0: accepted
    std::string reason;                     // why it is refused, for the client's user
    std::shared_ptr<const SessionKey> key;  // null: refused, or the server has no keys
  };
  // `own_address`: the address to which the client connected (SocketAddress::NetworkBytes).
  Answer Judge(const ConnectRequest& request, std::span<const std::byte> own_address, WallTime now);

  // Reads the file again if it changed, or if `asked`. Returns nullopt if it was not read.
  // Otherwise returns the number of keys now, or why the file was refused; then the keys stay as
  // they were.
  std::optional<absl::StatusOr<size_t>> Look(bool asked);

  // The file. REQUIRES: Look returned something.
  const std::string& path() const {
    GANNET_CHECK(file_.has_value(), "there is no auth file");
    return file_->path();
  }
  // 0: the server has no auth file.
  size_t keys() const { return keys_.size(); }

 private:
  Authenticator(std::optional<AuthFile> file, WallTime now)
      : file_(std::move(file)), guard_(now.ms()) {}

  Answer JudgeProven(const ConnectRequest& request, std::shared_ptr<const SessionKey> key,
                     WallTime now);
  std::shared_ptr<const SessionKey> Find(uint32_t id) const;
  // Sets keys_ to the keys of the file.
  void TakeKeys();

  std::optional<AuthFile> file_;
  std::vector<std::shared_ptr<SessionKey>> keys_;
  ReplayGuard guard_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_CONTROL_AUTHENTICATOR_H_
