// Checks the worked example in docs/protocol.md against the bytes that the code produces.

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

std::string Document(const char* path = GANNET_PROTOCOL_DOCUMENT) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(ProtocolDocumentTest, ShowsTheBytesThatTheCodeProduces) {
  const std::string document = Document();
  ASSERT_FALSE(document.empty()) << GANNET_PROTOCOL_DOCUMENT;
  const auto shows = [&document](const std::string& hex) {
    return document.find("```\n" + hex + "\n```") != std::string::npos;
  };
  EXPECT_TRUE(shows(HexOf(PlainExampleRequest()))) << HexOf(PlainExampleRequest());
  EXPECT_TRUE(shows(HexOf(PlainExampleGrant()))) << HexOf(PlainExampleGrant());
  EXPECT_TRUE(shows(Hex(ExamplePut()))) << Hex(ExamplePut());
  EXPECT_TRUE(shows(HexOf(ExampleReply()))) << HexOf(ExampleReply());
  EXPECT_TRUE(shows(HexOf(kExampleHeats))) << HexOf(kExampleHeats);
  EXPECT_TRUE(shows(HexOf(ExampleHello()))) << HexOf(ExampleHello());
  EXPECT_TRUE(shows(HexOf(ExampleWelcome()))) << HexOf(ExampleWelcome());
  EXPECT_TRUE(shows(HexOf(ExampleBeacon()))) << HexOf(ExampleBeacon());
  EXPECT_TRUE(shows(HexOf(ExampleBeaconAnswer()))) << HexOf(ExampleBeaconAnswer());
  EXPECT_TRUE(shows(HexOf(ExampleReceiverHello()))) << HexOf(ExampleReceiverHello());
  EXPECT_TRUE(shows(HexOf(ExampleEnded()))) << HexOf(ExampleEnded());
}

TEST(ProtocolDocumentTest, ThePageOfItemLeasesShowsTheBytesThatTheCodeProduces) {
  const std::string document = Document(GANNET_ITEM_LEASES_DOCUMENT);
  const std::string hex = HexOf(kExampleItemLeases);
  EXPECT_NE(document.find("```\n" + hex + "\n```"), std::string::npos) << hex;
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
