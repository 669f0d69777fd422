#ifndef SOFTVERBS_NIC_PACKET_H_
#define SOFTVERBS_NIC_PACKET_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace softverbs {

// A packet on a link: a 64-byte header and up to kMaxPayload bytes, padded to 64. The link is
// lossless and ordered, so one number per *message* (psn) is enough. It starts at the PSN that the
// application gave, as on a wire. A hostile peer can write the memory of the header: copy it out,
// check it, then use the copy.

enum class PacketType : uint8_t {
  kSend = 1,
  kWrite,
  kRead,
  kCompareSwap,
  kFetchAdd,
  kReadResponse,
  kAtomicResponse,
  kAck,
  kNak,
  kDatagram,  // a global route header and a message; rkey carries the Q_Key; gets no answer
  kSkip,      // no packet: the rest of the ring is left out, see ring.h
  kTick,      // no packet: the clocks of two hosts, see remote_pump.h
};

enum PacketFlags : uint8_t {
  kPacketFirst = 1,      // the first segment of its message
  kPacketLast = 2,       // the last one
  kPacketImmediate = 4,  // carries immediate data
  kPacketSolicited = 8,
  kPacketTear = 16,  // a fault: READ in pieces, with the seed in `operand`, over `swap` nanoseconds
  kPacketInvalidate = 32,  // SEND that invalidates the window with the key `imm`
  kPacketArmed = 64,       // the sender is in REARM or ARMED: the clear MigReq of IBTA (qp/path.h)
  kPacketToSecondPort = 128,  // a connection's packet for port 2 of the device
};

enum class NakCode : uint8_t {
  kReceiverNotReady = 1,  // no receive posted; try again after `imm` (an RNR timer code)
  kNotConnected,          // the queue pair is not ready to receive yet
  kNoQueuePair,           // destroyed, in error, or connected to another queue pair
  kSequence,              // not the next expected message
  kInvalidRequest,
  kRemoteAccess,
  kRemoteOperational,
};

struct PacketHeader {
  uint32_t record_bytes;   // header, payload and padding; a multiple of 64
  uint32_t payload_bytes;  // of this packet
  uint32_t to_qpn;
  uint32_t from_qpn;
  uint32_t psn;  // number of the message that is sent, answered or refused
  PacketType type;
  uint8_t flags;
  uint8_t epoch;  // counts the transmissions of the message; answers repeat it
  NakCode nak;
  uint32_t imm;
  uint32_t rkey;
  uint64_t remote_addr;
  uint32_t offset;         // of this segment in its message
  uint32_t message_bytes;  // of the whole message
  uint64_t operand;        // compare or add; the original value in an answer
  uint64_t swap;
};
static_assert(sizeof(PacketHeader) == 64 && std::is_trivially_copyable_v<PacketHeader>);

// The destination of datagrams to a multicast group. No queue pair has this number.
constexpr uint32_t kMulticastQpn = 0xffffff;

constexpr uint32_t kRecordAlign = 64;
constexpr uint32_t kMaxPayload = 16 * 1024;

constexpr uint32_t RecordBytes(uint32_t payload) {
  return (static_cast<uint32_t>(sizeof(PacketHeader)) + payload + kRecordAlign - 1) &
         ~(kRecordAlign - 1);
}

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_PACKET_H_
