#include "common/auth/handshake.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/auth/handshake_mac.h"
#include "common/base/status_macros.h"
#include "common/layout/item.h"
#include "common/layout/superblock.h"
#include "common/protocol/message.h"
#include "common/protocol/not_primary.h"

namespace gannet {
namespace {

// How a server's reason begins. RefusalStatus says so in other words.
constexpr const char* kStartingReason = "the server is starting: ";

absl::StatusCode ToStatusCode(RejectCode code) {
  switch (code) {
    case RejectCode::kVersion:
      return absl::StatusCode::kUnimplemented;
    case RejectCode::kAuthentication:
      return absl::StatusCode::kPermissionDenied;
    case RejectCode::kMalformed:
    case RejectCode::kStanding:  // which no client asks for
      return absl::StatusCode::kInternal;
    case RejectCode::kSessionUnknown:
    case RejectCode::kTooManyConnections:
    case RejectCode::kShuttingDown:
    case RejectCode::kStarting:
    case RejectCode::kNotPrimary:
      return absl::StatusCode::kUnavailable;
  }
  return absl::StatusCode::kUnavailable;
}

absl::Status Prefixed(std::string_view endpoint, const absl::Status& status) {
  return {status.code(), absl::StrCat(std::string(endpoint), ": ", std::string(status.message()))};
}

}  // namespace

ConnectRequest MakeConnectRequest(uint64_t session_token, uint16_t qp_index, uint64_t nonce,
                                  WallTime now) {
  ConnectRequest request = NewConnectRequest();
  request.session_token = session_token;
  request.qp_index = qp_index;
  request.nonce = nonce;
  request.time_ms = now.ms();
  return request;
}

void AuthenticateRequest(const std::optional<AuthKey>& key, std::span<const std::byte> server,
                         ConnectRequest* request) {
  if (!key) return;
  request->nonce = UnpredictableNonce();
  SignRequest(*key, server, request);
}

absl::Status CheckGrantMac(std::span<const std::byte> private_data, std::string_view endpoint,
                           const std::optional<AuthKey>& key, const ConnectRequest& request) {
  if (!key || VerifyGrant(*key, request, private_data)) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat(std::string(endpoint), ": the server did not prove that it has the key ",
                   key->id, "; is it another server, or one without --auth_file?"));
}

absl::StatusOr<Grant> CheckGrant(std::span<const std::byte> private_data,
                                 std::string_view endpoint) {
  absl::StatusOr<Grant> grant = DecodeGrant(private_data);
  if (!grant.ok()) return Prefixed(endpoint, grant.status());
  if (grant->layout_version != kLayoutVersion) {
    return absl::UnimplementedError(
        absl::StrCat(std::string(endpoint), ": the server's memory layout is version ",
                     grant->layout_version, ", this client knows ", kLayoutVersion));
  }
  constexpr uint32_t kMessageBytesNeeded = sizeof(RequestHeader) + kKeyBytesMax;
  if (grant->message_bytes_max < kMessageBytesNeeded || grant->incarnation == 0 ||
      grant->session_token == 0) {
    return absl::InternalError(absl::StrCat(std::string(endpoint), ": grant with messages of ",
                                            grant->message_bytes_max,
                                            " bytes, or without incarnation or session token"));
  }
  return grant;
}

absl::StatusOr<Grant> TakeGrant(std::span<const std::byte> private_data, std::string_view endpoint,
                                const std::optional<AuthKey>& key, const ConnectRequest& request) {
  GANNET_RETURN_IF_ERROR(CheckGrantMac(private_data, endpoint, key, request));
  return CheckGrant(private_data, endpoint);
}

absl::Status RefusalStatus(std::span<const std::byte> private_data, std::string_view endpoint,
                           const absl::Status& transport, RejectCode* code) {
  *code = RejectCode{};
  const absl::StatusOr<Reject> reject = DecodeReject(private_data);
  if (!reject.ok()) return transport;
  *code = static_cast<RejectCode>(reject->code);
  if (*code == RejectCode::kStarting) {
    const std::string reason = RejectReason(*reject);
    return absl::UnavailableError(
        absl::StrCat(std::string(endpoint),
                     " is starting: ", std::string(absl::StripPrefix(reason, kStartingReason))));
  }
  const std::string reason = RejectReason(*reject);
  if (*code == RejectCode::kNotPrimary) {
    const auto elsewhere = ParseNotPrimary(reason);
    return absl::UnavailableError(absl::StrCat(
        std::string(endpoint), " is not primary of its group",
        elsewhere ? absl::StrCat(": ", elsewhere->primary, " is, in epoch ", elsewhere->epoch)
                  : ", and knows of no primary"));
  }
  return {ToStatusCode(*code),
          absl::StrCat(std::string(endpoint), " refused",
                       reason.empty() ? " and did not say why" : absl::StrCat(": ", reason))};
}

std::string_view LockModeName(LockMode mode) {
  switch (mode) {
    case LockMode::kNicCas:
      return "nic";
    case LockMode::kRpcLoopback:
      return "rpc-loopback";
    case LockMode::kRpcServer:
      return "rpc-server";
  }
  return "?";
}

}  // namespace gannet
