// What a client of another version gets from this server. The bytes are fixed here, as a client
// that was built long ago sends and reads them: a change of the structs must not change the test.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/layout/superblock.h"
#include "tests/common/rdma/test_device.h"
#include "tests/server/rpc/raw_peer.h"
#include "tests/server/rpc/server_fixture.h"

namespace gannet {
namespace {

using testing::HasSubstr;

using RequestBytes = std::array<uint8_t, 56>;

// The request for a new session, of a client that speaks these versions.
constexpr RequestBytes RequestOf(uint8_t version_min, uint8_t version_max) {
  return {0x47,        0x4e,        0x54, 0x43,  // "GNTC"
          version_min, version_max, 0x38, 0x00,  // 56 bytes
          0x00,        0x00,        0x00, 0x00,  // no features, the first connection
          0x00,        0x00,        0x00, 0x00,  // no key
          0x00,        0x00,        0x00, 0x00, 0x00, 0x00, 0x00, 0x00,   // a new session
          0xd3,        0x08,        0xa3, 0x85, 0x88, 0x6a, 0x3f, 0x24,   // nonce
          0x80,        0x54,        0xbb, 0xa1, 0x9a, 0x01, 0x00, 0x00};  // its clock; no mac
}

template <class T>
T FieldAt(const void* message, size_t offset) {
  T field;
  std::memcpy(&field, static_cast<const char*>(message) + offset, sizeof(field));
  return field;
}

class OlderClientTest : public ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    StartServer();
  }
  bool Connect(RawPeer* peer, const RequestBytes& request) {
    return peer->Connect(std::as_bytes(std::span(request)));
  }
};

TEST_F(OlderClientTest, IsToldWhichVersionsTheServerSpeaks) {
  RawPeer peer(this);
  EXPECT_FALSE(Connect(&peer, RequestOf(1, 1)));
  ASSERT_TRUE(peer.reject().has_value());
  // A client of any version reads a reject as version 1 laid it out.
  const Reject reject = *peer.reject();
  EXPECT_EQ(FieldAt<uint32_t>(&reject, 0), 0x52544e47u) << "GNTR";
  EXPECT_EQ(FieldAt<uint16_t>(&reject, 6), 148) << "length";
  EXPECT_EQ(FieldAt<uint32_t>(&reject, 8), 2u) << "no version in common";
  const std::string reason(reinterpret_cast<const char*>(&reject) + 12);
  EXPECT_EQ(reason, absl::StrCat("client speaks protocol 1 to 1, server ", kProtocolVersionMin,
                                 " to ", kProtocolVersionMax));
}

// The last version before this one. Its requests begin with the same bytes, so it would be
// misunderstood, not refused, if it were let in.
TEST_F(OlderClientTest, OfVersion3IsRefusedAndToldBothVersions) {
  RawPeer peer(this);
  EXPECT_FALSE(Connect(&peer, RequestOf(3, 3)));
  ASSERT_TRUE(peer.reject().has_value());
  const Reject reject = *peer.reject();
  EXPECT_EQ(FieldAt<uint32_t>(&reject, 8), 2u) << "no version in common";
  EXPECT_EQ(RejectReason(reject), "client speaks protocol 3 to 3, server 4 to 5");
  EXPECT_EQ(stats().connections, 0u);
}

// The client's side: a server of version 3 refuses, and the user reads both versions.
TEST(OlderServersRejectTest, OfVersion3SaysWhy) {
  std::array<std::byte, 148> bytes{};
  const std::array<uint8_t, 12> head = {0x47, 0x4e, 0x54, 0x52,   // "GNTR"
                                        0x03, 0x00, 0x94, 0x00,   // version 3, 148 bytes
                                        0x02, 0x00, 0x00, 0x00};  // no version in common
  std::memcpy(bytes.data(), head.data(), head.size());
  const std::string_view reason = "client speaks protocol 4 to 4, server 3 to 3";
  std::memcpy(bytes.data() + head.size(), reason.data(), reason.size());
  const auto reject = DecodeReject(bytes);
  ASSERT_TRUE(reject.ok()) << reject.status();
  EXPECT_EQ(reject->code, static_cast<uint32_t>(RejectCode::kVersion));
  EXPECT_EQ(RejectReason(*reject), reason);
}

// Of a server of a group, at a server that is in none.
TEST_F(OlderClientTest, ThatAsksToBeAReplicaIsRefused) {
  RequestBytes request = RequestOf(kProtocolVersionMin, kProtocolVersionMax);
  request[8] = 1 << 1;
  RawPeer peer(this);
  EXPECT_FALSE(Connect(&peer, request));
  ASSERT_TRUE(peer.reject().has_value());
  EXPECT_EQ(peer.reject()->code, static_cast<uint32_t>(RejectCode::kMalformed));
  EXPECT_THAT(RejectReason(*peer.reject()), HasSubstr("in no group"));
}

TEST_F(OlderClientTest, IsServedIfItAlsoSpeaksTheServersVersion) {
  RawPeer peer(this);
  ASSERT_TRUE(Connect(&peer, RequestOf(1, 255)));
  const Grant& grant = peer.grant();
  EXPECT_EQ(FieldAt<uint32_t>(&grant, 0), 0x47544e47u) << "GNTG";
  EXPECT_EQ(FieldAt<uint16_t>(&grant, 4), kProtocolVersionMax);
  EXPECT_EQ(FieldAt<uint32_t>(&grant, 68), kLayoutVersion);
  EXPECT_EQ(peer.Put("key", "value"), ReplyStatus::kOk);
}

TEST_F(OlderClientTest, OfALaterVersionIsToldWhichVersionsTheServerSpeaks) {
  RawPeer peer(this);
  EXPECT_FALSE(Connect(&peer, RequestOf(200, 201)));
  ASSERT_TRUE(peer.reject().has_value());
  EXPECT_THAT(RejectReason(*peer.reject()),
              HasSubstr("client speaks protocol 200 to 201, server "));
}

// The client's side of the same: the reject of a server of a later version, with appended fields.
TEST(OlderClientsRejectTest, OfALaterServerIsUnderstood) {
  std::array<std::byte, 196> bytes{};
  Reject reject = NewReject(RejectCode::kVersion, "client speaks protocol 3 to 3, server 9 to 11");
  reject.version = 11;
  reject.length = sizeof(reject) + 32;
  std::memcpy(bytes.data(), &reject, sizeof(reject));
  const auto understood = DecodeReject(bytes);
  ASSERT_TRUE(understood.ok()) << understood.status();
  EXPECT_EQ(RejectReason(*understood), "client speaks protocol 3 to 3, server 9 to 11");
}

}  // namespace
}  // namespace gannet
