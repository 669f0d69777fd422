#ifndef GANNET_COMMON_PROTOCOL_RAILS_REPLY_H_
#define GANNET_COMMON_PROTOCOL_RAILS_REPLY_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <type_traits>

#include "common/protocol/opcode.h"
#include "common/protocol/request_header.h"

namespace gannet {

// A bit of Grant::features: the server has several rails, and answers kRails.
inline constexpr uint16_t kGrantRails = 1 << 5;
// Another: it takes a session's requests over several connections, in the order of their numbers,
// if the client says that it leaves none out (RailsAsk::kRailsInOrder).
inline constexpr uint16_t kGrantOrdersRequests = 1 << 6;

// What a kRails request asks for: the first of its words. Without the grant's kGrantOrdersRequests
// only the first one.
enum class RailsAsk : uint64_t {
  kRails = 0,
  // The same. From now on, until the session has another first connection, all numbers of the
  // session come, over any of its connections. So the server executes none before those before it.
  kRailsInOrder = 1,
  // Does nothing. The request of this number was given up, so it is not to be executed later. If it
  // is under way, it goes on, and the answer is kTryAgain.
  kGivenUp = 2,
  // The same, but what is under way is given up: its connection is over.
  kLost = 3,
};

// Returns what the request asks for; kRails if it is another's.
inline RailsAsk AskOf(const RequestHeader& header) {
  const bool rails = header.opcode == static_cast<uint8_t>(Opcode::kRails);
  return rails ? static_cast<RailsAsk>(header.words[0]) : RailsAsk::kRails;
}

// The most rails of a server. A rail is an address of it, and the device behind that.
inline constexpr uint32_t kRailsMax = 8;

// Whether a rail carries anything now, as the server sees it.
enum class RailState : uint8_t {
  kUp = 1,
  kDown = 2,  // its port is down, or its device is gone
};

// One rail of a server. New fields take reserved bytes.
struct RailEntry {
  std::array<uint8_t, 16> address;  // in network order, as SocketAddress::NetworkBytes has it
  uint16_t port;
  uint16_t mtu_bytes;        // of the port's path; 0: unknown
  uint32_t mbit_per_second;  // of the port's link; 0: unknown
  uint8_t state;             // RailState
  uint8_t port_number;       // from 1; rails with the same one are of one port; 0: unknown
  uint8_t reserved[2];
  uint32_t connections;  // by this rail, if port_number is known
};
static_assert(sizeof(RailEntry) == 32 && std::is_trivially_copyable_v<RailEntry>);
static_assert(offsetof(RailEntry, port) == 16 && offsetof(RailEntry, mtu_bytes) == 18 &&
              offsetof(RailEntry, mbit_per_second) == 20 && offsetof(RailEntry, state) == 24 &&
              offsetof(RailEntry, port_number) == 25 && offsetof(RailEntry, connections) == 28);

// The rails of a server: the value of a kRails reply is the first 8 bytes, and `count` entries.
struct RailsReply {
  uint8_t count;      // of entries
  uint8_t lock_rail;  // which entry's device swaps lock words
  uint8_t own_rail;   // which entry's this connection is
  uint8_t reserved[5];
  std::array<RailEntry, kRailsMax> rails;

  size_t Bytes() const { return offsetof(RailsReply, rails) + count * sizeof(RailEntry); }
};
static_assert(offsetof(RailsReply, rails) == 8 && std::is_trivially_copyable_v<RailsReply>);

// Returns what the value of a kRails reply says; no rails if it cannot be right.
inline RailsReply DecodeRails(std::string_view value) {
  RailsReply told{};
  if (value.size() < offsetof(RailsReply, rails)) return {};
  std::memcpy(&told, value.data(), std::min(value.size(), sizeof(told)));
  const bool sane = told.count > 0 && told.count <= kRailsMax && told.lock_rail < told.count &&
                    told.own_rail < told.count && value.size() >= told.Bytes();
  return sane ? told : RailsReply{};
}

}  // namespace gannet

#endif  // GANNET_COMMON_PROTOCOL_RAILS_REPLY_H_
