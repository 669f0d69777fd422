// Judges requests to connect by the keys of the file. A key that the file no longer has is marked
// as revoked, and its connections are closed.

#include "server/main/control/authenticator.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/auth/handshake_mac.h"
#include "common/base/status_macros.h"

namespace gannet {
namespace {

Authenticator::Answer Refuse(std::string reason) {
  return {.refused = RejectCode::kAuthentication, .reason = std::move(reason), .key = nullptr};
}

std::string TimeText(uint64_t ms) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", absl::FromUnixMillis(static_cast<int64_t>(ms)),
                          absl::UTCTimeZone());
}

std::string ClocksText(uint64_t client_ms, uint64_t server_ms) {
  return absl::StrCat("the client's clock says ", TimeText(client_ms), ", the server's ",
                      TimeText(server_ms));
}

}  // namespace

absl::StatusOr<Authenticator> Authenticator::Create(const std::string& path, WallTime now) {
  if (path.empty()) return Authenticator(std::nullopt, now);
  GANNET_ASSIGN_OR_RETURN(AuthFile file, AuthFile::Open(path));
  Authenticator authenticator(std::move(file), now);
  authenticator.TakeKeys();
  return authenticator;
}

Authenticator::Answer Authenticator::Judge(const ConnectRequest& request,
                                           std::span<const std::byte> own_address, WallTime now) {
  if (!file_) {
    if (request.key_id == 0) return {};
    return Refuse("the server has no keys; connect without one");
  }
  if (request.key_id == 0) {
    return Refuse("the server takes only clients that have one of its keys (--auth_file)");
  }
  std::shared_ptr<const SessionKey> key = Find(request.key_id);
  if (key == nullptr) {
    return Refuse(absl::StrCat("the server does not have the key ", request.key_id));
  }
  if (!VerifyRequest(key->key, own_address, request)) {
    return Refuse(absl::StrCat("not made with the server's key ", request.key_id,
                               ", or not for this address of the server"));
  }
  return JudgeProven(request, std::move(key), now);
}

Authenticator::Answer Authenticator::JudgeProven(const ConnectRequest& request,
                                                 std::shared_ptr<const SessionKey> key,
                                                 WallTime now) {
  switch (guard_.Judge(request.key_id, request.nonce, request.time_ms, now.ms())) {
    case ReplayGuard::Verdict::kFresh:
      return {.key = std::move(key)};
    case ReplayGuard::Verdict::kRepeated:
      return Refuse("this very request was accepted before");
    case ReplayGuard::Verdict::kOtherClock:
      return Refuse(absl::StrCat(ClocksText(request.time_ms, guard_.now_ms()),
                                 ": set them, they may differ by ", ReplayGuard::kWindowMs / 1000,
                                 " s"));
    case ReplayGuard::Verdict::kBeforeStart:
      return {.refused = RejectCode::kStarting,
              .reason = absl::StrCat("started after this request, if clocks are right: ",
                                     ClocksText(request.time_ms, guard_.now_ms())),
              .key = nullptr};
    case ReplayGuard::Verdict::kFull:
      break;
  }
  return {.refused = RejectCode::kTooManyConnections,
          .reason = "too many clients connected within two minutes; try again later",
          .key = nullptr};
}

std::optional<absl::StatusOr<size_t>> Authenticator::Look(bool asked) {
  if (!file_ || !(asked || file_->Changed())) return std::nullopt;
  if (absl::Status status = file_->Reload(); !status.ok()) return status;
  TakeKeys();
  return keys_.size();
}

std::shared_ptr<const SessionKey> Authenticator::Find(uint32_t id) const {
  const auto it = std::ranges::find_if(keys_, [id](const auto& it) { return it->key.id == id; });
  return it == keys_.end() ? nullptr : *it;
}

void Authenticator::TakeKeys() {
  std::vector<std::shared_ptr<SessionKey>> before = std::exchange(keys_, {});
  for (const AuthKey& key : file_->keys()) {
    const auto same = std::ranges::find_if(
        before, [&key](const auto& it) { return it != nullptr && it->key == key; });
    keys_.push_back(same == before.end() ? std::make_shared<SessionKey>(key)
                                         : std::exchange(*same, nullptr));
  }
  for (const std::shared_ptr<SessionKey>& gone : before) {
    if (gone != nullptr) gone->revoked.store(true, std::memory_order_relaxed);
  }
}

}  // namespace gannet
