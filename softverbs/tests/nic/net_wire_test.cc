#include "softverbs/nic/net_wire.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "softverbs/base/net_config.h"
#include "softverbs/nic/net_key.h"
#include "softverbs/nic/packet.h"

namespace softverbs {
namespace {

TEST(NetConfigTest, TakesAddressesOfOneHost) {
  const auto plain = ParseNet("10.0.0.1");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->port, NetConfig::kDefaultPort);
  EXPECT_EQ(plain->gid().raw[12], 10);
  EXPECT_EQ(ParseNet("10.0.0.1:99")->port, 99);
  EXPECT_EQ(ParseNet("fd00::1")->gid().raw[0], 0xfd);
  EXPECT_EQ(ParseNet("[fd00::1]:99")->port, 99);
}

TEST(NetConfigTest, TakesAnAddressForEachDevice) {
  const auto two = ParseNet("10.0.0.1,10.0.1.1:99");
  ASSERT_TRUE(two);
  EXPECT_EQ(two->port, 99);
  ASSERT_EQ(two->gids.size(), 2u);
  EXPECT_EQ(two->gids[1].raw[14], 1);
  EXPECT_TRUE(two->Has(*ParseHostAddress("10.0.1.1")));
  EXPECT_FALSE(two->Has(*ParseHostAddress("10.0.1.2")));
  EXPECT_EQ(two->Nearest(*ParseHostAddress("10.0.1.2")).raw[14], 1);
  EXPECT_EQ(two->Nearest(*ParseHostAddress("10.0.0.2")).raw[14], 0);
  EXPECT_EQ(ParseNet("fd00::1,[fd00::2]:99")->gids[1].raw[15], 2);
}

TEST(NetConfigTest, RefusesEverythingElse) {
  for (const char* text : {"",
                           "host",
                           "10.0.0.1:",
                           "10.0.0.1:0",
                           "10.0.0.1:65536",
                           "10.0.0.1:x",
                           "10.0.0",
                           "[fd00::1",
                           "[fd00::1]99",
                           "[fd00::1]:",
                           "0.0.0.0",
                           "::",
                           "224.0.0.1",
                           "ff02::1",
                           "fe80::1",
                           "10.0.0.1 ",
                           "10.0.0.1:7:8",
                           "10.0.0.1,",
                           ",10.0.0.1",
                           "10.0.0.1,10.0.0.1",
                           "10.0.0.1:9,10.0.1.1",
                           "10.0.0.1,fd00::1"}) {
    EXPECT_FALSE(ParseNet(text)) << text;
  }
}

NetOpening GoodOpening() {
  NetOpening opening;
  opening.kind = NetKind::kLink;
  opening.target = opening.slot = 7;
  return opening;
}

TEST(NetWireTest, TakesOpeningsOfPeers) {
  EXPECT_EQ(Check(GoodOpening()), NetVerdict::kGood);
  NetOpening service = GoodOpening();
  service.kind = NetKind::kService;
  service.target = 7471;
  service.space = 0x0106;
  EXPECT_EQ(Check(service), NetVerdict::kGood);
}

TEST(NetWireTest, RefusesOtherOpenings) {
  const auto verdict = [](auto change) {
    NetOpening opening = GoodOpening();
    change(opening);
    return Check(opening);
  };
  EXPECT_EQ(verdict([](NetOpening& o) { o.magic ^= 1; }), NetVerdict::kForeign);
  EXPECT_EQ(verdict([](NetOpening& o) { ++o.version; }), NetVerdict::kOtherVersion);
  EXPECT_EQ(verdict([](NetOpening& o) { o.kind = NetKind{3}; }), NetVerdict::kForeign);
  EXPECT_EQ(verdict([](NetOpening& o) { o.target = 0; }), NetVerdict::kForeign);
  EXPECT_EQ(verdict([](NetOpening& o) { o.target = 2048; }), NetVerdict::kForeign);
  EXPECT_EQ(verdict([](NetOpening& o) { o.slot = 2048; }), NetVerdict::kForeign);
  EXPECT_EQ(verdict([](NetOpening& o) { o.reserved = 1; }), NetVerdict::kForeign);
}

std::string Packet(PacketType type, uint32_t payload) {
  PacketHeader header{};
  header.type = type;
  header.payload_bytes = payload;
  header.record_bytes = RecordBytes(payload);
  std::string bytes(header.record_bytes, '\0');
  memcpy(bytes.data(), &header, sizeof(header));
  return bytes;
}

uint64_t Complete(const std::string& stream, bool* corrupt) {
  return CompletePackets(reinterpret_cast<const uint8_t*>(stream.data()), stream.size(), corrupt);
}

TEST(NetWireTest, FindsWholePackets) {
  const std::string stream = Packet(PacketType::kRead, 0) + Packet(PacketType::kSend, 100);
  bool corrupt;
  for (size_t size = 0; size <= stream.size(); ++size) {
    const uint64_t expected = size == stream.size() ? size : size >= 64 ? 64 : 0;
    EXPECT_EQ(Complete(stream.substr(0, size), &corrupt), expected);
    EXPECT_FALSE(corrupt);
  }
}

TEST(NetWireTest, RefusesWhatNoPeerSends) {
  const std::string good = Packet(PacketType::kRead, 0);
  std::string too_long = Packet(PacketType::kSend, kMaxPayload + 64);
  std::string wrong_record = good;
  wrong_record[0] = 63;
  for (const std::string& bad :
       {Packet(PacketType::kSkip, 0), Packet(PacketType{0}, 0), Packet(PacketType{77}, 0), too_long,
        wrong_record, std::string(64, '\xff')}) {
    bool corrupt;
    EXPECT_EQ(Complete(good + bad, &corrupt), good.size());
    EXPECT_TRUE(corrupt);
  }
}

TEST(NetKeyTest, ComparesWholeMacs) {
  NetBytes mac{}, other{};
  EXPECT_TRUE(SameMac(mac, other));
  other.back() = 1;
  EXPECT_FALSE(SameMac(mac, other));
}

}  // namespace
}  // namespace softverbs
