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
#include "tests/common/protocol/golden_bytes.h"

namespace gannet {
namespace {

constexpr uint64_t kRegionAddress = 0x7f5a00000000;
constexpr uint64_t kItemOffset = 16 << 20;

ConnectRequest ExampleRequest() {
  ConnectRequest request = NewConnectRequest();
  request.nonce = 0x243f6a8885a308d3;
  request.time_ms = 1763650000000;
  return request;
}

Grant ExampleGrant() {
  Grant grant = NewGrant();
  grant.incarnation = 0x9e3779b97f4a7c15;
  grant.region_address = kRegionAddress;
  grant.region_bytes = 1 << 30;
  grant.lock_address = 0x7f5a80000000;
  grant.region_rkey = 0x1001;
  grant.lock_rkey = 0x1002;
  grant.lock_words = 65536;
  grant.connection_id = 1;
  grant.session_token = 0x13198a2e03707344;
  grant.session_id = 1;
  grant.hash_seed = 0xa4093822299f31d0;
  grant.index = {.generation = 1, .offset = 4096, .homes = 102400, .stash_homes = 2048};
  grant.message_bytes_max = kMessageBytesMax;
  grant.value_bytes_max = kValueBytesMax;
  grant.credits = 32;
  grant.lock_mode = static_cast<uint8_t>(LockMode::kNicCas);
  grant.time_ms = 1763650000000;
  SetName(&grant, "cache-1");
  return grant;
}

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
  reply.version = 1;
  reply.slot = Slot::Of(0xabcde, SizeClassFor(ItemBytes(3, 5)), kItemOffset).word();
  return reply;
}

std::string Document() {
  std::ifstream file(GANNET_PROTOCOL_DOCUMENT);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(ProtocolDocumentTest, ShowsTheBytesThatTheCodeProduces) {
  const std::string document = Document();
  ASSERT_FALSE(document.empty()) << GANNET_PROTOCOL_DOCUMENT;
  const auto shows = [&document](const std::string& hex) {
    return document.find("```\n" + hex + "\n```") != std::string::npos;
  };
  EXPECT_TRUE(shows(HexOf(ExampleRequest()))) << HexOf(ExampleRequest());
  EXPECT_TRUE(shows(HexOf(ExampleGrant()))) << HexOf(ExampleGrant());
  EXPECT_TRUE(shows(Hex(ExamplePut()))) << Hex(ExamplePut());
  EXPECT_TRUE(shows(HexOf(ExampleReply()))) << HexOf(ExampleReply());
}

TEST(ProtocolDocumentTest, ExampleLeadsToTheItem) {
  const Slot slot(ExampleReply().slot);
  EXPECT_EQ(slot.read_bytes(), 48u);
  EXPECT_EQ(kRegionAddress + slot.offset(), 0x7f5a01000000u);
  RequestView view;
  EXPECT_FALSE(DecodeRequest(ExamplePut(), &view).has_value());
  std::vector<std::byte> padded(196);
  const Grant grant = ExampleGrant();
  std::memcpy(padded.data(), &grant, sizeof(grant));
  EXPECT_TRUE(DecodeGrant(padded).ok());
}

}  // namespace
}  // namespace gannet
