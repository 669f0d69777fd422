// What another host sends to softverbs: how a connection begins, and the packets behind that.

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "softverbs/nic/net_wire.h"
#include "softverbs/nic/packet.h"
#include "tests/fuzz/fuzz_targets.h"
#include "tests/fuzz/require.h"

namespace gannet::fuzz {
namespace {

using softverbs::PacketHeader;
using softverbs::PacketType;

template <class Frame>
softverbs::NetVerdict CheckBytes(std::span<const std::byte> bytes, Frame* frame) {
  std::memcpy(frame, bytes.data(), std::min(bytes.size(), sizeof(*frame)));
  return softverbs::Check(*frame);
}

void CheckOpening(std::span<const std::byte> bytes) {
  softverbs::NetOpening opening;
  if (CheckBytes(bytes, &opening) != softverbs::NetVerdict::kGood) return;
  const bool link = opening.kind == softverbs::NetKind::kLink;
  Require(opening.target > 0 && opening.target < (link ? 2048 : 65536), "a target out of range");
  Require(opening.slot > 0 && opening.slot < 2048, "a slot out of range");
}

void CheckPackets(std::span<const std::byte> bytes) {
  const auto* stream = reinterpret_cast<const uint8_t*>(bytes.data());
  bool corrupt = false;
  const uint64_t complete = softverbs::CompletePackets(stream, bytes.size(), &corrupt);
  Require(complete <= bytes.size(), "packets that are longer than the stream");
  uint64_t at = 0;
  while (at < complete) {
    PacketHeader header;
    std::memcpy(&header, stream + at, sizeof(header));
    Require(header.type != PacketType::kSkip, "a part of the ring left out by a peer");
    Require(header.payload_bytes <= softverbs::kMaxPayload, "a payload that is too long");
    Require(header.record_bytes == softverbs::RecordBytes(header.payload_bytes), "a wrong record");
    at += header.record_bytes;
  }
  Require(at == complete, "an incomplete packet");
}

}  // namespace

void NetStreamBytes(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  CheckOpening(bytes);
  softverbs::Challenge challenge;
  CheckBytes(bytes, &challenge);
  softverbs::Welcome welcome;
  CheckBytes(bytes, &welcome);
  CheckPackets(bytes);
}

}  // namespace gannet::fuzz
