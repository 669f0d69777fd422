#include "common/auth/handshake_mac.h"

#include <gtest/gtest.h>
#include <openssl/hmac.h>

#include <cstring>
#include <vector>

#include "tests/common/auth/example_handshake.h"

namespace gannet {
namespace {

using Bytes = std::vector<std::byte>;

Bytes CopyOf(std::span<const std::byte> bytes) { return {bytes.begin(), bytes.end()}; }

bool Verify(const AuthKey& key, const ConnectRequest& request) {
  return VerifyRequest(key, ExampleServer().NetworkBytes(), request);
}

TEST(HandshakeMacTest, IsTheBeginningOfHmacSha256) {
  // RFC 4231, test case 2, so that libcrypto is called as the RFC means it.
  const std::string key = "Jefe", data = "what do ya want for nothing?";
  uint8_t mac[EVP_MAX_MD_SIZE];
  unsigned bytes = 0;
  HMAC(EVP_sha256(), key.data(), 4, reinterpret_cast<const uint8_t*>(data.data()), data.size(), mac,
       &bytes);
  ASSERT_EQ(bytes, 32u);
  EXPECT_EQ(mac[0], 0x5b);
  EXPECT_EQ(mac[31], 0x43);
  // The bytes that docs/protocol-handshake.md says are covered.
  const ConnectRequest request = ExampleRequest();
  Bytes covered = CopyOf(BytesOf(request).first(40));
  const auto server = ExampleServer().NetworkBytes();
  covered.insert(covered.end(), server.begin(), server.end());
  const std::string secret = ExampleKey().secret;
  HMAC(EVP_sha256(), secret.data(), 32, reinterpret_cast<const uint8_t*>(covered.data()), 58, mac,
       &bytes);
  EXPECT_EQ(std::memcmp(mac, request.mac, sizeof(request.mac)), 0);
}

TEST(HandshakeMacTest, ARequestIsProvenByItsKeyOnly) {
  const ConnectRequest request = ExampleRequest();
  EXPECT_EQ(request.key_id, 7u);
  EXPECT_TRUE(Verify(ExampleKey(), request));
  AuthKey other = ExampleKey();
  other.secret[31] ^= 1;
  EXPECT_FALSE(Verify(other, request));
  other = ExampleKey();
  other.secret.pop_back();
  EXPECT_FALSE(Verify(other, request));
  other = ExampleKey();
  other.id = 8;
  EXPECT_FALSE(Verify(other, request));
}

TEST(HandshakeMacTest, EveryBitOfTheRequestCounts) {
  const ConnectRequest request = ExampleRequest();
  for (size_t bit = 0; bit < 8 * sizeof(request); ++bit) {
    Bytes bytes = CopyOf(BytesOf(request));
    bytes[bit / 8] ^= std::byte{1} << bit % 8;
    ConnectRequest changed;
    std::memcpy(&changed, bytes.data(), sizeof(changed));
    EXPECT_FALSE(Verify(ExampleKey(), changed)) << "bit " << bit;
  }
}

TEST(HandshakeMacTest, ARequestIsForOneServer) {
  const ConnectRequest request = ExampleRequest();
  for (const char* other : {"10.0.0.1:7472", "10.0.0.2:7471", "[::a00:1]:7471"}) {
    const auto server = Resolve(other, 0).value().NetworkBytes();
    EXPECT_FALSE(VerifyRequest(ExampleKey(), server, request)) << other;
  }
  // The same address, written as a socket of IPv6 has it.
  const auto mapped = Resolve("[::ffff:10.0.0.1]:7471", 0).value().NetworkBytes();
  EXPECT_TRUE(VerifyRequest(ExampleKey(), mapped, request));
}

TEST(HandshakeMacTest, AGrantIsProvenByItsKeyOnly) {
  const Grant grant = ExampleGrant();
  EXPECT_TRUE(VerifyGrant(ExampleKey(), ExampleRequest(), BytesOf(grant)));
  AuthKey other = ExampleKey();
  other.secret[0] ^= 1;
  EXPECT_FALSE(VerifyGrant(other, ExampleRequest(), BytesOf(grant)));
}

TEST(HandshakeMacTest, EveryBitOfTheGrantCounts) {
  const ConnectRequest request = ExampleRequest();
  Bytes padded = CopyOf(BytesOf(ExampleGrant()));
  padded.resize(196);  // as the transport delivers it
  EXPECT_TRUE(VerifyGrant(ExampleKey(), request, padded));
  for (size_t bit = 0; bit < 8 * sizeof(Grant); ++bit) {
    Bytes changed = padded;
    changed[bit / 8] ^= std::byte{1} << bit % 8;
    EXPECT_FALSE(VerifyGrant(ExampleKey(), request, changed)) << "bit " << bit;
  }
}

TEST(HandshakeMacTest, AGrantAnswersOneRequest) {
  const Grant grant = ExampleGrant();
  for (size_t bit = 0; bit < 8 * sizeof(ConnectRequest); ++bit) {
    ConnectRequest other = ExampleRequest();
    auto bytes = std::as_writable_bytes(std::span(&other, 1));
    bytes[bit / 8] ^= std::byte{1} << bit % 8;
    EXPECT_FALSE(VerifyGrant(ExampleKey(), other, BytesOf(grant))) << "bit " << bit;
  }
}

TEST(HandshakeMacTest, ACutGrantProvesNothing) {
  const Bytes bytes = CopyOf(BytesOf(ExampleGrant()));
  for (size_t size = 0; size < bytes.size(); ++size) {
    const Bytes cut(bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size));
    EXPECT_FALSE(VerifyGrant(ExampleKey(), ExampleRequest(), cut)) << size;
  }
}

TEST(HandshakeMacTest, FieldsThatALaterVersionAppendsCount) {
  Grant grant = ExampleGrant();
  grant.length = 196;
  Bytes bytes = CopyOf(BytesOf(grant));
  bytes.resize(196, std::byte{5});
  // A server of that version covers all 196 bytes.
  std::memset(bytes.data() + offsetof(Grant, mac), 0, sizeof(grant.mac));
  Bytes covered = bytes;
  const ConnectRequest request = ExampleRequest();
  covered.insert(covered.end(), BytesOf(request).begin(), BytesOf(request).end());
  uint8_t mac[EVP_MAX_MD_SIZE];
  const std::string secret = ExampleKey().secret;
  HMAC(EVP_sha256(), secret.data(), 32, reinterpret_cast<const uint8_t*>(covered.data()),
       covered.size(), mac, nullptr);
  std::memcpy(bytes.data() + offsetof(Grant, mac), mac, sizeof(grant.mac));
  EXPECT_TRUE(VerifyGrant(ExampleKey(), request, bytes));
  bytes.back() ^= std::byte{1};
  EXPECT_FALSE(VerifyGrant(ExampleKey(), request, bytes));
}

TEST(HandshakeMacTest, NoncesDiffer) { EXPECT_NE(UnpredictableNonce(), UnpredictableNonce()); }

}  // namespace
}  // namespace gannet
