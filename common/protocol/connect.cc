#include "common/protocol/connect.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "common/base/check.h"
#include "common/base/printable.h"
#include "common/layout/superblock.h"
#include "common/protocol/limits.h"

namespace gannet {
namespace {

// Copies a T out of private data that starts with `magic` and is long enough.
template <class T>
absl::StatusOr<T> Copy(std::span<const std::byte> private_data, uint32_t magic, const char* what) {
  if (private_data.size() < sizeof(T)) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s of %u bytes, %u expected: is the peer Gannet?", what, private_data.size(), sizeof(T)));
  }
  T message;
  std::memcpy(&message, private_data.data(), sizeof(T));
  if (message.magic != magic) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s with magic %#x: the peer does not speak Gannet", what, message.magic));
  }
  if (message.length < sizeof(T) || message.length > private_data.size()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s says it is %u bytes long; %u expected, %u here", what, message.length,
                        sizeof(T), private_data.size()));
  }
  return message;
}

// Returns what a client could not use safely, or nullptr if there is nothing.
const char* WhatIsWrong(const Grant& grant) {
  if (grant.layout_version == kLayoutVersion &&
      (grant.region_bytes > kRegionBytesMax || !grant.index.ValidWithin(grant.region_bytes))) {
    return "an index outside its region";
  }
  if (grant.region_address % sizeof(uint64_t) != 0 || grant.lock_address % sizeof(uint64_t) != 0) {
    return "memory that is not aligned to words";
  }
  if (grant.lock_words == 0) return "no lock words";
  if (grant.credits == 0) return "no credits";
  if (grant.connection_id == 0) return "no connection id";
  if (grant.lock_mode < static_cast<uint8_t>(LockMode::kNicCas) ||
      grant.lock_mode > static_cast<uint8_t>(LockMode::kRpcServer)) {
    return "an unknown lock mode";
  }
  if (grant.resumed > 1) return "a flag that is neither 0 nor 1";
  if (grant.primary_lease_ms != 0 && grant.history == 0) return "a lease of no group";
  if (grant.silence_ms < kSilenceMsMin) return "too short a silence";
  if (!NameOf(grant).empty() && !IsServerName(NameOf(grant))) return "a name with odd characters";
  return nullptr;
}

}  // namespace

ConnectRequest NewConnectRequest() {
  ConnectRequest request{};
  request.magic = kConnectMagic;
  request.version_min = kProtocolVersionMin;
  request.version_max = kProtocolVersionMax;
  request.length = sizeof(request);
  return request;
}

Grant NewGrant() {
  Grant grant{};
  grant.magic = kGrantMagic;
  grant.version = kProtocolVersionMax;
  grant.length = sizeof(grant);
  grant.layout_version = kLayoutVersion;
  grant.silence_ms = kSilenceMsDefault;
  return grant;
}

bool IsServerName(std::string_view name) {
  constexpr std::string_view kOthers = "._:-[]";
  return !name.empty() && name.size() <= kServerNameBytesMax &&
         std::ranges::all_of(name, [&](char c) {
           return absl::ascii_isalnum(static_cast<unsigned char>(c)) ||
                  kOthers.find(c) != std::string_view::npos;
         });
}

void SetName(Grant* grant, std::string_view name) {
  GANNET_CHECK(name.empty() || IsServerName(name), "not a name of a server");
  std::fill(std::begin(grant->name), std::end(grant->name), '\0');
  std::ranges::copy(name, grant->name);
}

std::string_view NameOf(const Grant& grant) {
  return {grant.name, strnlen(grant.name, sizeof(grant.name))};
}

Reject NewReject(RejectCode code, std::string_view reason) {
  Reject reject{};
  reject.magic = kRejectMagic;
  reject.version = kProtocolVersionMax;
  reject.length = sizeof(reject);
  reject.code = static_cast<uint32_t>(code);
  const size_t n = std::min(reason.size(), sizeof(reject.reason));
  for (size_t i = 0; i < n; ++i) reject.reason[i] = PrintableOf(reason[i]);
  return reject;
}

std::optional<uint16_t> ChosenVersion(const ConnectRequest& request) {
  return CommonVersion({request.version_min, request.version_max}, kProtocolVersions);
}

absl::StatusOr<ConnectRequest> DecodeConnectRequest(std::span<const std::byte> private_data) {
  auto request = Copy<ConnectRequest>(private_data, kConnectMagic, "connection request");
  if (!request.ok()) return request;
  if (request->version_min > request->version_max) {
    return absl::InvalidArgumentError("connection request with no protocol version");
  }
  if (!ChosenVersion(*request)) {
    return absl::UnimplementedError(
        absl::StrFormat("client speaks protocol %u to %u, server %u to %u", request->version_min,
                        request->version_max, kProtocolVersionMin, kProtocolVersionMax));
  }
  if ((request->features & ~(kConnectReplica | kConnectStanding)) != 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("connection request for features %#x, which this server does not know all",
                        request->features));
  }
  return request;
}

absl::StatusOr<Grant> DecodeGrant(std::span<const std::byte> private_data) {
  auto grant = Copy<Grant>(private_data, kGrantMagic, "grant");
  if (!grant.ok()) return grant;
  if (grant->version < kProtocolVersionMin || grant->version > kProtocolVersionMax) {
    return absl::UnimplementedError(absl::StrFormat(
        "server chose protocol %u, which this client does not speak", grant->version));
  }
  if (const char* wrong = WhatIsWrong(*grant)) {
    return absl::InvalidArgumentError(absl::StrFormat("grant with %s", wrong));
  }
  return grant;
}

absl::StatusOr<Reject> DecodeReject(std::span<const std::byte> private_data) {
  return Copy<Reject>(private_data, kRejectMagic, "reject");
}

std::string RejectReason(const Reject& reject) {
  std::string reason;
  for (char c : reject.reason) {
    if (c == '\0') break;
    reason.push_back(PrintableOf(c));
  }
  return reason;
}

}  // namespace gannet
