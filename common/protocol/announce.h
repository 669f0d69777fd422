#ifndef GANNET_COMMON_PROTOCOL_ANNOUNCE_H_
#define GANNET_COMMON_PROTOCOL_ANNOUNCE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "absl/status/statusor.h"

namespace gannet {

// What a server tells a multicast group of itself, once a second: a datagram. Anybody on the
// network may send one, so it is a hint of where to ask and nothing more. docs/protocol.md has the
// layout byte by byte.

inline constexpr uint32_t kAnnounceMagic = 0x41544e47;  // "GNTA"
inline constexpr uint16_t kAnnounceVersion = 1;
inline constexpr size_t kAnnounceNameBytes = 64;
inline constexpr size_t kAnnounceAddressBytes = 104;

struct AnnounceBytes {
  uint32_t magic;
  uint16_t version;
  uint16_t length;
  uint64_t epoch;     // of the group's configuration that the server knows; 0: it is in no group
  uint64_t sequence;  // from 1; higher with each of this process's
  uint8_t primary;    // 1: it is its group's primary
  uint8_t zero[7];
  char cluster[kAnnounceNameBytes];     // empty: the server is alone
  char group[kAnnounceNameBytes];       // likewise
  char name[kAnnounceNameBytes];        // of the server; may be empty if it is alone
  char address[kAnnounceAddressBytes];  // HOST:PORT, as it advertises it
};
static_assert(sizeof(AnnounceBytes) == 328 && std::is_trivially_copyable_v<AnnounceBytes>);
static_assert(offsetof(AnnounceBytes, primary) == 24 && offsetof(AnnounceBytes, cluster) == 32 &&
              offsetof(AnnounceBytes, address) == 224);

// Such a datagram in words. Each text is printable and has no blanks.
struct ServerAnnouncement {
  std::string cluster;
  std::string group;
  std::string name;
  std::string address;
  uint64_t epoch = 0;
  uint64_t sequence = 0;
  bool primary = false;

  friend bool operator==(const ServerAnnouncement&, const ServerAnnouncement&) = default;
};

// Returns whether the texts fit and have no other characters than those of names and addresses:
// letters, digits and any of "._:-[]".
bool CanAnnounce(const ServerAnnouncement& it);
// REQUIRES: CanAnnounce(it).
AnnounceBytes EncodeAnnouncement(const ServerAnnouncement& it);
// Copies, then checks. The datagram may be any bytes, and longer than an announcement.
// InvalidArgument says what is wrong. Unimplemented: it is of another version.
absl::StatusOr<ServerAnnouncement> DecodeAnnouncement(std::span<const std::byte> datagram);

}  // namespace gannet

#endif  // GANNET_COMMON_PROTOCOL_ANNOUNCE_H_
