// Bytes that a kind of request or reply does not use must be zero, so that they can mean something
// in a later version.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "common/protocol/message.h"
#include "common/protocol/opcode.h"
#include "tests/common/protocol/encoded.h"

namespace gannet {
namespace {

// Returns the right request of each opcode that has no flags.
std::vector<RequestHeader> OneOfEach() {
  std::vector<RequestHeader> headers;
  for (const Opcode of : kAllOpcodes) {
    RequestHeader header = ARequest(of);
    const RequestKind kind = KindOf(of);
    const bool locks = kind == RequestKind::kLock;
    if (!locks && kind != RequestKind::kWrite && kind != RequestKind::kGet) header.key_bytes = 0;
    if (of == Opcode::kHeartbeat) header.sequence = 0;
    if (of == Opcode::kIncrement) header.value_bytes = sizeof(CounterOperands);
    if (locks) header.lock.lock_word = 1;
    headers.push_back(header);
  }
  return headers;
}

std::optional<ReplyStatus> RefusalOf(const RequestHeader& header) {
  const std::string value(header.value_bytes, '\0');
  return Refusal(Encode(header, header.key_bytes > 0 ? "key" : "", value));
}

// By opcode: the offsets of the bytes that it may use.
TEST(ReservedBytesTest, ARequestsReservedBytesMustBeZero) {
  struct Range {
    size_t begin, end;
  };
  const auto used = [](Opcode opcode) -> std::vector<Range> {
    switch (opcode) {
      case Opcode::kHeartbeat:
        return {{16, 32}};  // and the length of a report, of which there is none here
      case Opcode::kGet:
        return {{16, 32}};
      case Opcode::kPut:
        return {{16, 22}, {24, 56}};  // a longer time to live is refused
      case Opcode::kAppend:
      case Opcode::kPrepend:
      case Opcode::kIncrement:
        return {{16, 22}, {24, 28}, {40, 56}};
      case Opcode::kDelete:
        return {{40, 56}};
      case Opcode::kTouch:
        return {{16, 22}, {40, 56}};
      case Opcode::kLock:
      case Opcode::kExtendLock:
        return {{16, 24}, {24, 30}};
      case Opcode::kUnlock:
        return {{16, 24}};
      case Opcode::kListLocks:
      case Opcode::kListClients:
      case Opcode::kSlowLog:
      case Opcode::kMap:
      case Opcode::kFlush:
      case Opcode::kStorage:
        return {{16, 24}};
      case Opcode::kStats:
      case Opcode::kPing:
      case Opcode::kHeats:
      case Opcode::kItemLeases:
        return {};
      case Opcode::kRails:
        return {{16, 17}};  // no more is a RailsAsk
    }
    return {};
  };
  const std::vector<RequestHeader> all = OneOfEach();
  EXPECT_EQ(all.size(), 22u);
  for (const RequestHeader& right : all) {
    ASSERT_EQ(RefusalOf(right), std::nullopt) << int{right.opcode};
    const std::vector<Range> ranges = used(static_cast<Opcode>(right.opcode));
    for (size_t offset = 16; offset < sizeof(right); ++offset) {
      RequestHeader header = right;
      auto* bytes = reinterpret_cast<unsigned char*>(&header);
      bytes[offset] |= 2;
      const bool may = std::ranges::any_of(
          ranges, [&](const Range& it) { return offset >= it.begin && offset < it.end; });
      EXPECT_EQ(!RefusalOf(header), may) << int{right.opcode} << " at " << offset;
    }
  }
}

TEST(ReservedBytesTest, OnlyWhatCarriesAValueHasALength) {
  for (RequestHeader header : OneOfEach()) {
    const auto of = static_cast<Opcode>(header.opcode);
    const bool carries = of == Opcode::kHeartbeat || of == Opcode::kPut || of == Opcode::kAppend ||
                         of == Opcode::kPrepend;
    if (of == Opcode::kIncrement) continue;
    header.value_bytes = 8;
    EXPECT_EQ(!RefusalOf(header), carries) << int{header.opcode};
  }
}

TEST(ReservedBytesTest, ATimeToLiveAndALeaseHaveABound) {
  for (RequestHeader header : OneOfEach()) {
    const auto of = static_cast<Opcode>(header.opcode);
    const bool lease = of == Opcode::kLock || of == Opcode::kExtendLock;
    if (!lease && of != Opcode::kPut && !(of >= Opcode::kAppend && of <= Opcode::kTouch)) continue;
    uint64_t& ms = lease ? header.lock.lease_ms : header.write.ttl_ms;
    ms = kTtlMsMax;
    EXPECT_EQ(RefusalOf(header), std::nullopt) << int{header.opcode};
    ms = kTtlMsMax + 1;
    EXPECT_EQ(RefusalOf(header), ReplyStatus::kInvalidArgument) << int{header.opcode};
  }
}

// By opcode: where the reserved bytes begin.
TEST(ReservedBytesTest, AReplysReservedBytesMustBeZero) {
  const auto end_of = [](int opcode) -> size_t {
    switch (static_cast<Opcode>(opcode)) {
      case Opcode::kPing:
      case Opcode::kStorage:
      case Opcode::kListLocks:
      case Opcode::kListClients:
      case Opcode::kSlowLog:
      case Opcode::kMap:
      case Opcode::kLock:
      case Opcode::kUnlock:
      case Opcode::kExtendLock:
        return 24;
      case Opcode::kHeartbeat:
      case Opcode::kFlush:
        return 32;
      case Opcode::kPut:
      case Opcode::kDelete:
      case Opcode::kAppend:
      case Opcode::kPrepend:
      case Opcode::kTouch:
      case Opcode::kIncrement:
        return 40;
      case Opcode::kGet:
        return 45;
      default:
        return 16;  // of stats, heats, item leases, and what is not known
    }
  };
  for (int opcode = 0; opcode < 256; ++opcode) {
    ReplyHeader header{};
    header.opcode = static_cast<uint8_t>(opcode);
    for (size_t offset = 16; offset < sizeof(header); ++offset) {
      std::vector<std::byte> message = Encode(header, "");
      message[offset] = std::byte{1};
      EXPECT_EQ(IsReply(message), offset < end_of(opcode)) << opcode << " at " << offset;
    }
  }
}

}  // namespace
}  // namespace gannet
