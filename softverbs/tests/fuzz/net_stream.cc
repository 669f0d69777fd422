#include "softverbs/tests/fuzz/net_stream.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "softverbs/nic/net_wire.h"
#include "softverbs/nic/packet.h"
#include "softverbs/tests/fuzz/require.h"

namespace softverbs::fuzz {
namespace {

template <class Frame>
NetVerdict CheckBytes(std::span<const std::byte> bytes, Frame* frame) {
  std::memcpy(frame, bytes.data(), std::min(bytes.size(), sizeof(*frame)));
  return Check(*frame);
}

// How a connection begins.
void CheckOpening(std::span<const std::byte> bytes) {
  NetOpening opening;
  if (CheckBytes(bytes, &opening) != NetVerdict::kGood) return;
  const bool link = opening.kind == NetKind::kLink;
  Require(opening.target > 0 && opening.target < (link ? 2048 : 65536), "a target out of range");
  Require(opening.slot > 0 && opening.slot < 2048, "a slot out of range");
}

// What comes behind that.
void CheckPackets(std::span<const std::byte> bytes) {
  const auto* stream = reinterpret_cast<const uint8_t*>(bytes.data());
  bool corrupt = false;
  const uint64_t complete = CompletePackets(stream, bytes.size(), &corrupt);
  Require(complete <= bytes.size(), "packets that are longer than the stream");
  uint64_t at = 0;
  while (at < complete) {
    PacketHeader header;
    std::memcpy(&header, stream + at, sizeof(header));
    Require(header.type != PacketType::kSkip, "a part of the ring left out by a peer");
    Require(header.payload_bytes <= kMaxPayload, "a payload that is too long");
    Require(header.record_bytes == RecordBytes(header.payload_bytes), "a wrong record");
    at += header.record_bytes;
  }
  Require(at == complete, "an incomplete packet");
}

}  // namespace

void NetStreamBytes(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  CheckOpening(bytes);
  Challenge challenge;
  CheckBytes(bytes, &challenge);
  Welcome welcome;
  CheckBytes(bytes, &welcome);
  CheckPackets(bytes);
}

}  // namespace softverbs::fuzz
