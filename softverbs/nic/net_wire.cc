#include "softverbs/nic/net_wire.h"

#include <cstring>

#include "softverbs/nic/packet.h"
#include "softverbs/nic/shared_tables.h"

namespace softverbs {
namespace {

template <class Frame>
NetVerdict CheckVersion(const Frame& frame) {
  if (frame.magic != NetOpening::kMagic) return NetVerdict::kForeign;
  return frame.version == NetOpening::kVersion ? NetVerdict::kGood : NetVerdict::kOtherVersion;
}

bool IsPacketOfAPeer(const PacketHeader& header) {
  const bool known = (header.type >= PacketType::kSend && header.type <= PacketType::kDatagram) ||
                     header.type == PacketType::kTick;
  return known && header.payload_bytes <= kMaxPayload &&
         header.record_bytes == RecordBytes(header.payload_bytes);
}

}  // namespace

NetVerdict Check(const NetOpening& opening) {
  const NetVerdict verdict = CheckVersion(opening);
  if (verdict != NetVerdict::kGood) return verdict;
  const bool link = opening.kind == NetKind::kLink && opening.target > 0 &&
                    opening.target < kSlots && opening.space == 0;
  const bool service = opening.kind == NetKind::kService && opening.target > 0 &&
                       opening.target <= UINT16_MAX && opening.space <= UINT16_MAX;
  const bool from = opening.slot > 0 && opening.slot < kSlots && opening.reserved == 0;
  return (link || service) && from ? NetVerdict::kGood : NetVerdict::kForeign;
}

NetVerdict Check(const Challenge& challenge) { return CheckVersion(challenge); }
NetVerdict Check(const Welcome& welcome) { return CheckVersion(welcome); }

uint64_t CompletePackets(const uint8_t* stream, uint64_t size, bool* corrupt) {
  uint64_t complete = 0;
  *corrupt = false;
  while (size - complete >= sizeof(PacketHeader)) {
    PacketHeader header;
    memcpy(&header, stream + complete, sizeof(header));
    if (!IsPacketOfAPeer(header)) {
      *corrupt = true;
      return complete;
    }
    if (header.record_bytes > size - complete) break;
    complete += header.record_bytes;
  }
  return complete;
}

}  // namespace softverbs
