#ifndef GANNET_COMMON_PROTOCOL_CONNECT_H_
#define GANNET_COMMON_PROTOCOL_CONNECT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/layout/index_geometry.h"
#include "common/protocol/limits.h"

namespace gannet {

// The bytes in RDMA-CM private data. Private data arrives padded with zeroes to the transport's
// maximum, so each message carries its own magic, version and length. docs/protocol.md has the
// layouts byte by byte.

inline constexpr uint32_t kConnectMagic = 0x43544e47;  // "GNTC"
inline constexpr uint32_t kGrantMagic = 0x47544e47;    // "GNTG"
inline constexpr uint32_t kRejectMagic = 0x52544e47;   // "GNTR"

// Private data of the connection request.
struct ConnectRequest {
  uint32_t magic;
  uint8_t version_min;
  uint8_t version_max;
  uint16_t length;    // of this struct
  uint16_t features;  // kConnectReplica, kConnectStanding or zero
  uint16_t qp_index;  // which of the session's queue pairs this is, from 0
  uint32_t key_id;    // of the pre-shared key; 0 = none
  uint64_t
      session_token;  // 0 = create a session; otherwise join or resume the one with this secret
  uint64_t nonce;
  uint64_t time_ms;  // client's wall clock, for the authentication's time window
  uint8_t mac[16];   // zero = not authenticated
};
static_assert(sizeof(ConnectRequest) == 56 && std::is_trivially_copyable_v<ConnectRequest>);
static_assert(offsetof(ConnectRequest, features) == 8 && offsetof(ConnectRequest, key_id) == 12);
static_assert(offsetof(ConnectRequest, session_token) == 16 && offsetof(ConnectRequest, mac) == 40);

// Bits of ConnectRequest::features.
inline constexpr uint16_t kConnectReplica = 1 << 1;  // a server of the group asks, not a client
// An operator asks what the server is in its group. It is always refused, with kStanding.
inline constexpr uint16_t kConnectStanding = 1 << 2;

// How clients lock, which depends on who may change lock words.
enum class LockMode : uint8_t {
  kNicCas = 1,       // the client's own RDMA compare-and-swap
  kRpcLoopback = 2,  // by RPC; the server's loopback queue pair does the compare-and-swap
  kRpcServer = 3,    // by RPC; the server's CPU changes the words, as no client can CAS
};

// The grant: private data of the accept.
struct Grant {
  uint32_t magic;
  uint16_t version;  // chosen by the server
  uint16_t length;
  uint64_t incarnation;
  uint64_t region_address;
  uint64_t region_bytes;
  uint64_t lock_address;
  uint32_t region_rkey;
  uint32_t lock_rkey;
  uint32_t lock_words;
  uint32_t connection_id;  // of this connection; names the holder in its lock words
  uint64_t session_token;  // secret; to join or resume
  uint32_t session_id;     // public; for logs
  uint32_t layout_version;
  uint64_t hash_seed;
  IndexGeometry index;
  uint16_t message_bytes_max;
  uint16_t primary_lease_ms;  // what is left of the primary's lease; 0: nothing, or no group
  uint32_t value_bytes_max;
  uint16_t credits;
  uint16_t features;
  uint8_t lock_mode;    // LockMode
  uint8_t resumed;      // 1: the session existed, its answers are still remembered
  uint16_t silence_ms;  // after so much silence each side takes the other for dead
  uint64_t time_ms;     // the server's clock when it accepted; items expire by that clock
  uint8_t mac[16];      // zero = not authenticated
  char name[kServerNameBytesMax];  // of the server, NUL padded; empty: clients use its address
  // Names a group's items: servers with the same history have the same ones, so a client that comes
  // from one of them to another goes on. It then believes the server only under its lease. 0: the
  // server is in no group.
  uint64_t history;
};
static_assert(sizeof(Grant) == 192 && std::is_trivially_copyable_v<Grant>);
static_assert(offsetof(Grant, incarnation) == 8 && offsetof(Grant, region_rkey) == 40);
static_assert(offsetof(Grant, session_token) == 56 && offsetof(Grant, hash_seed) == 72);
static_assert(offsetof(Grant, index) == 80 && offsetof(Grant, message_bytes_max) == 112);
static_assert(offsetof(Grant, primary_lease_ms) == 114 && offsetof(Grant, value_bytes_max) == 116);
static_assert(offsetof(Grant, lock_mode) == 124 && offsetof(Grant, silence_ms) == 126);
static_assert(offsetof(Grant, time_ms) == 128 && offsetof(Grant, mac) == 136 &&
              offsetof(Grant, name) == 152 && offsetof(Grant, history) == 184);

// Bits of Grant::features.
inline constexpr uint16_t kGrantReadOnly = 1 << 1;  // the session may only read; no lock_rkey

enum class RejectCode : uint32_t {
  kMalformed = 1,
  kVersion = 2,
  kSessionUnknown = 3,  // expired, or of an earlier incarnation: start a new one
  kTooManyConnections = 4,
  kShuttingDown = 5,
  kAuthentication = 6,
  kStarting = 7,    // the server is still preparing its memory: try again soon
  kNotPrimary = 8,  // of its group; the reason may say who is (not_primary.h)
  kStanding = 9,    // the answer to kConnectStanding, in the reason (member_standing.h)
};

// Private data of a reject, with the reason for the user to read.
struct Reject {
  uint32_t magic;
  uint16_t version;
  uint16_t length;
  uint32_t code;     // RejectCode
  char reason[136];  // printable ASCII, NUL padded
};
static_assert(sizeof(Reject) == 148 && std::is_trivially_copyable_v<Reject>);

// Return a message with magic, versions and length filled in; the rest is zero.
ConnectRequest NewConnectRequest();
Grant NewGrant();
// Cuts `reason` to fit, and replaces unprintable bytes by '?'.
Reject NewReject(RejectCode code, std::string_view reason);

// A server's name has 1 to kServerNameBytesMax letters, digits and any of "._:-[]". So it never has
// '@' or ',', at which lists of servers are split.
bool IsServerName(std::string_view name);
void SetName(Grant* grant, std::string_view name);
std::string_view NameOf(const Grant& grant);

// Returns the version of the protocol that a server answers with: the highest that both speak.
std::optional<uint16_t> ChosenVersion(const ConnectRequest& request);

// Each decoder copies, then checks. Private data may be longer than the message. InvalidArgument
// says what is wrong. Unimplemented: no protocol version in common.
absl::StatusOr<ConnectRequest> DecodeConnectRequest(std::span<const std::byte> private_data);
absl::StatusOr<Grant> DecodeGrant(std::span<const std::byte> private_data);
absl::StatusOr<Reject> DecodeReject(std::span<const std::byte> private_data);

// Returns the reason as text, which is bounded and printable whatever the peer sent.
std::string RejectReason(const Reject& reject);

}  // namespace gannet

#endif  // GANNET_COMMON_PROTOCOL_CONNECT_H_
