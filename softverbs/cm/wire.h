#ifndef SOFTVERBS_CM_WIRE_H_
#define SOFTVERBS_CM_WIRE_H_

#include <arpa/inet.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace softverbs::cm {

// The messages that the connection managers of two processes exchange over a UNIX SOCK_SEQPACKET
// socket, or between hosts over TCP, one after the other. Each is one record of a fixed size. All
// fields are little-endian, but the addresses' ports and bytes. They carry the same as the
// InfiniBand CM's messages of these names.
//
// A message comes from another process, so it is hostile until Valid() says otherwise.

inline constexpr uint32_t kWireMagic = 0x4d435653;  // "SVCM"
inline constexpr uint16_t kWireVersion = 2;

// How much private data a consumer may send, and how much its peer is always given: the real CM
// pads private data with zeroes to the size of its MAD field, and reports that size.
inline constexpr size_t kRequestDataMax = 56;
inline constexpr size_t kReplyDataMax = 196;
inline constexpr size_t kRejectDataMax = 148;
inline constexpr size_t kServiceRequestDataMax = 180;
inline constexpr size_t kServiceReplyDataMax = 136;
inline constexpr size_t kPrivateDataMax = kReplyDataMax;

inline constexpr uint8_t kRetryCountMax = 7;            // three bits in the MAD; 7 = no limit
inline constexpr uint32_t kPsnMask = 0x00ffffff;        // packet sequence numbers and queue pair
inline constexpr uint32_t kQueuePairMask = 0x00ffffff;  // numbers have 24 bits

enum class MessageKind : uint16_t {
  kRequest = 1,            // REQ: active to passive, first on the socket
  kReply = 2,              // REP: accepted
  kReadyToUse = 3,         // RTU: the active side's queue pair is up
  kReject = 4,             // REJ: from either side, before RTU
  kDisconnectRequest = 5,  // DREQ
  kDisconnectReply = 6,    // DREP
  kServiceRequest = 7,     // SIDR_REQ: where do datagrams for this port go? First on the socket
  kServiceReply = 8,       // SIDR_REP: to qp_num, with qkey; a kReject refuses
  kHandOver = 9,           // on this host only: brings the descriptor of another host's connection
};

// Why a connection was refused. The numbers are those of the InfiniBand specification (table 112),
// which RDMA_CM_EVENT_REJECTED reports as its status.
enum class RejectReason : uint32_t {
  kNoResources = 3,
  kTimeout = 4,
  kNoListener = 8,  // "invalid service id"
  kConsumer = 28,
  kVendorOption = 35,
};

struct WireAddress {
  uint16_t family;  // AF_INET or AF_INET6
  uint16_t port;    // network byte order
  uint32_t scope_id;
  uint8_t bytes[16];  // an IPv4 address uses the first four, the others are zero
};

struct Message {
  uint32_t magic;
  uint16_t version;
  uint16_t kind;  // MessageKind
  uint32_t qp_num;
  uint32_t psn;  // the first one the receiver of this message shall use
  uint8_t responder_resources;
  uint8_t initiator_depth;
  uint8_t flow_control;
  uint8_t retry_count;
  uint8_t rnr_retry_count;
  uint8_t srq;
  uint8_t reserved[2];
  uint32_t reason;  // RejectReason of a kReject, else zero
  uint32_t ece_vendor;
  uint32_t ece_options;
  uint32_t qkey;            // of a kServiceReply
  WireAddress source;       // of the requests only: who asks,
  WireAddress destination;  // and the address it connected to
  uint8_t private_data[kPrivateDataMax];
};

static_assert(std::endian::native == std::endian::little);
static_assert(sizeof(WireAddress) == 24);
static_assert(sizeof(Message) == 40 + 2 * 24 + 196);
static_assert(offsetof(Message, source) == 40);
static_assert(offsetof(Message, private_data) == 88);
static_assert(std::is_trivially_copyable_v<Message>);

// Returns a message of `kind` with everything else zero.
Message MakeMessage(MessageKind kind);

// Returns whether `size` received bytes at `message` are a message that this version can act on.
bool Valid(const Message& message, size_t size);

}  // namespace softverbs::cm

#endif  // SOFTVERBS_CM_WIRE_H_
