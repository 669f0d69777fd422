#ifndef SOFTVERBS_NIC_NET_WIRE_H_
#define SOFTVERBS_NIC_NET_WIRE_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace softverbs {

// How a TCP connection between two hosts begins. The dialer sends a NetOpening, the process that it
// asks for a Challenge, the dialer a Proof, and the other side a Welcome. Then the connection
// carries packets, or messages of the connection manager. All fields are little-endian.
//
// The two prove to each other that they have the same key: see net_key.h. Nothing is encrypted, and
// what follows the Welcome is not authenticated.
static_assert(std::endian::native == std::endian::little);

using NetBytes = std::array<uint8_t, 32>;

enum class NetKind : uint16_t {
  kLink = 1,     // to the process with the slot `target`
  kService = 2,  // to the listener at port `target` of the port space `space` (rdma_cm)
};

struct NetOpening {
  static constexpr uint32_t kMagic = 0x544e5653;  // "SVNT"
  static constexpr uint16_t kVersion = 1;

  uint32_t magic = kMagic;
  uint16_t version = kVersion;
  NetKind kind{};
  uint32_t target = 0;
  uint32_t space = 0;
  uint32_t slot = 0;  // the dialer's
  uint32_t reserved = 0;
  uint64_t incarnation = 0;  // differs between processes that had the slot one after the other
  uint64_t dial = 0;         // counts the dialer's connections
  NetBytes nonce{};
};
static_assert(sizeof(NetOpening) == 72 && std::has_unique_object_representations_v<NetOpening>);

enum class NetStatus : uint16_t {
  kOk = 0,
  kNobody = 1,   // no such process or listener
  kBusy = 2,     // later: no room, or the other side dials itself
  kVersion = 3,  // another version
  kKey = 4,      // the dialer has another key, or none
  kStale = 5,    // an older connection than the present one
};

struct Challenge {
  uint32_t magic = NetOpening::kMagic;
  uint16_t version = NetOpening::kVersion;
  NetStatus status{};
  NetBytes nonce{};
  NetBytes mac{};  // zeroes without a key
};
static_assert(sizeof(Challenge) == 72 && std::has_unique_object_representations_v<Challenge>);

struct Proof {
  NetBytes mac{};
};

struct Welcome {
  uint32_t magic = NetOpening::kMagic;
  uint16_t version = NetOpening::kVersion;
  NetStatus status{};
  uint64_t incarnation = 0;  // of the process that was dialed
  uint64_t dialed = 0;       // it has given up its own dials up to this one
};
static_assert(sizeof(Welcome) == 24 && std::has_unique_object_representations_v<Welcome>);

enum class NetVerdict { kGood, kForeign, kOtherVersion };
// Checks what another host sent. kOtherVersion: it has the magic and another version.
NetVerdict Check(const NetOpening& opening);
NetVerdict Check(const Challenge& challenge);
NetVerdict Check(const Welcome& welcome);

// Finds the packets at the beginning of a stream of `size` bytes. Returns how many bytes the
// complete ones have. Sets *corrupt if the next one is none that a peer sends. Checks only what
// the stream's framing needs: RingConsumer and the queue pairs check the rest.
uint64_t CompletePackets(const uint8_t* stream, uint64_t size, bool* corrupt);

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_NET_WIRE_H_
