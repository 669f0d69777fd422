// Checks the examples in the pages docs/protocol-*.md against the bytes that the code produces.

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "common/layout/slot.h"
#include "common/protocol/connect.h"
#include "common/protocol/message.h"
#include "tests/common/protocol/example_handshake.h"
#include "tests/common/protocol/example_heats.h"
#include "tests/common/protocol/example_item_leases.h"
#include "tests/common/protocol/example_rails.h"
#include "tests/common/protocol/example_replica.h"
#include "tests/common/protocol/golden_bytes.h"

namespace gannet {
namespace {

constexpr uint64_t kItemOffset = 16 << 20;

std::vector<std::byte> ExamplePut() {
  RequestHeader header{};
  header.opcode = static_cast<uint8_t>(Opcode::kPut);
  header.key_bytes = 3;
  header.value_bytes = 5;
  header.sequence = 1;
  std::vector<std::byte> message(sizeof(header) + 8);
  EncodeRequest(header, "key", "value", message);
  return message;
}

ReplyHeader ExampleReply() {
  ReplyHeader reply{};
  reply.opcode = static_cast<uint8_t>(Opcode::kPut);
  reply.sequence = 1;
  reply.write.version = 1;
  reply.write.slot = Slot::Of(0xabcde, SizeClassFor(ItemBytes(3, 5)), kItemOffset).word();
  return reply;
}

void ExpectShown(const std::string& page, const std::vector<std::string>& examples) {
  std::ifstream file(GANNET_DOCUMENTS "/" + page);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  for (const std::string& hex : examples) {
    EXPECT_NE(text.find("```\n" + hex + "\n```"), std::string::npos) << page << " lacks\n" << hex;
  }
}

TEST(ProtocolDocumentTest, ShowsTheBytesThatTheCodeProduces) {
  ExpectShown("protocol-handshake.md", {HexOf(PlainExampleRequest()), HexOf(PlainExampleGrant())});
  ExpectShown("protocol-messages.md", {Hex(ExamplePut()), HexOf(ExampleReply())});
  ExpectShown("protocol-values.md", {HexOf(kExampleHeats)});
  ExpectShown("item-leases.md", {HexOf(kExampleItemLeases)});
  ExpectShown("rails.md", {HexOfRails(kExampleRails)});
  ExpectShown("protocol-replica.md",
              {HexOf(ExampleHello()), HexOf(ExampleWelcome()), HexOf(ExampleBeacon()),
               HexOf(ExampleBeaconAnswer()), HexOf(ExampleReceiverHello()), HexOf(ExampleEnded()),
               HexOf(ExampleResume())});
}

TEST(ProtocolDocumentTest, ExampleLeadsToTheItem) {
  const Slot slot(ExampleReply().write.slot);
  EXPECT_EQ(slot.read_bytes(), 48u);
  EXPECT_EQ(kExampleRegionAddress + slot.offset(), 0x7f5a01000000u);
  RequestView view;
  EXPECT_FALSE(DecodeRequest(ExamplePut(), &view).has_value());
  std::vector<std::byte> padded(196);
  const Grant grant = PlainExampleGrant();
  std::memcpy(padded.data(), &grant, sizeof(grant));
  EXPECT_TRUE(DecodeGrant(padded).ok());
}

}  // namespace
}  // namespace gannet
