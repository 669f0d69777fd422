#include "server/main/control/authenticator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/auth/handshake_mac.h"
#include "common/base/clocks.h"
#include "softverbs/tests/support/key_file.h"

namespace gannet {
namespace {

using test_support::KeyFile;
using ::testing::HasSubstr;

constexpr uint64_t kNowMs = 1'800'000'000'000;  // 2027-01-15 08:00:00 UTC
constexpr WallTime AtMs(uint64_t ms) {
  return WallTime::FromNs(static_cast<int64_t>(ms) * kNsPerMs);
}
constexpr WallTime kNow = AtMs(kNowMs);
constexpr char kSecret1[] = "000102030405060708090a0b0c0d0e0f";
constexpr char kSecret2[] = "202122232425262728292a2b2c2d2e2f";

const std::vector<std::byte>& OwnAddress() {
  static const auto& address = *new std::vector<std::byte>(18, std::byte{9});
  return address;
}

std::string Line(uint32_t id, const char* secret, const char* right = "") {
  return std::to_string(id) + " " + secret + " " + right + "\n";
}

AuthKey KeyOf(const KeyFile& file, size_t number = 0) {
  return AuthFile::Open(file.path()).value().keys()[number];
}

ConnectRequest RequestWith(const AuthKey& key, uint64_t nonce, uint64_t time_ms = kNowMs) {
  ConnectRequest request = NewConnectRequest();
  request.nonce = nonce;
  request.time_ms = time_ms;
  SignRequest(key, OwnAddress(), &request);
  return request;
}

class AuthenticatorTest : public testing::Test {
 protected:
  Authenticator::Answer Judge(const ConnectRequest& request) {
    return authenticator_.Judge(request, OwnAddress(), kNow);
  }
  void ExpectRefused(const ConnectRequest& request, const std::string& text) {
    const Authenticator::Answer answer = Judge(request);
    EXPECT_EQ(answer.refused, RejectCode::kAuthentication);
    EXPECT_THAT(answer.reason, HasSubstr(text));
    EXPECT_LE(answer.reason.size(), sizeof(Reject::reason));
    EXPECT_EQ(answer.key, nullptr);
  }

  KeyFile file_{Line(1, kSecret1) + Line(2, kSecret2, "read")};
  Authenticator authenticator_ =
      Authenticator::Create(file_.path(), AtMs(kNowMs - 100'000)).value();
};

TEST_F(AuthenticatorTest, AcceptsEachKeyOfTheFile) {
  const Authenticator::Answer first = Judge(RequestWith(KeyOf(file_, 0), 1));
  EXPECT_EQ(first.refused, RejectCode{}) << first.reason;
  ASSERT_NE(first.key, nullptr);
  EXPECT_EQ(first.key->key.id, 1u);
  EXPECT_FALSE(first.key->key.read_only);
  const Authenticator::Answer second = Judge(RequestWith(KeyOf(file_, 1), 2));
  ASSERT_NE(second.key, nullptr) << second.reason;
  EXPECT_TRUE(second.key->key.read_only);
}

TEST_F(AuthenticatorTest, RefusesWhoHasNoKey) {
  ExpectRefused(NewConnectRequest(), "takes only clients that have one of its keys");
  ConnectRequest unnamed = RequestWith(KeyOf(file_), 1);
  unnamed.key_id = 0;
  ExpectRefused(unnamed, "takes only clients that have one of its keys");
}

TEST_F(AuthenticatorTest, RefusesAnotherKey) {
  const KeyFile other(Line(3, kSecret1) + Line(1, kSecret2));
  ExpectRefused(RequestWith(KeyOf(other, 0), 1), "does not have the key 3");
  ExpectRefused(RequestWith(KeyOf(other, 1), 1), "not made with the server's key 1");
}

TEST_F(AuthenticatorTest, RefusesARequestForAnotherServer) {
  const ConnectRequest request = RequestWith(KeyOf(file_), 1);
  const std::vector<std::byte> other(18, std::byte{8});
  EXPECT_EQ(authenticator_.Judge(request, other, kNow).refused, RejectCode::kAuthentication);
}

TEST_F(AuthenticatorTest, RefusesACopy) {
  const ConnectRequest request = RequestWith(KeyOf(file_), 1);
  EXPECT_NE(Judge(request).key, nullptr);
  ExpectRefused(request, "this very request was accepted before");
}

TEST_F(AuthenticatorTest, TellsBothClocksIfTheyDiffer) {
  ExpectRefused(RequestWith(KeyOf(file_), 1, kNowMs + 3'600'000),
                "the client's clock says 2027-01-15 09:00:00 UTC, the server's 2027-01-15 "
                "08:00:00 UTC");
  ExpectRefused(RequestWith(KeyOf(file_), 1, kNowMs - 60'001), "may differ by 60 s");
  ExpectRefused(RequestWith(KeyOf(file_), 1, UINT64_MAX), "clock");
}

TEST_F(AuthenticatorTest, TellsItsClockToNobodyWithoutTheKey) {
  ConnectRequest forged = RequestWith(KeyOf(file_), 1, kNowMs + 3'600'000);
  forged.mac[0] ^= 1;
  ExpectRefused(forged, "not made with the server's key 1");
}

TEST_F(AuthenticatorTest, ARequestThatIsRefusedUsesUpNoNonce) {
  ConnectRequest forged = RequestWith(KeyOf(file_), 1);
  forged.mac[15] ^= 1;
  ExpectRefused(forged, "not made with the server's key 1");
  EXPECT_NE(Judge(RequestWith(KeyOf(file_), 1)).key, nullptr);
}

TEST_F(AuthenticatorTest, ARequestFromBeforeTheStartMayBeSentAnew) {
  Authenticator fresh = Authenticator::Create(file_.path(), kNow).value();
  const ConnectRequest early = RequestWith(KeyOf(file_), 1, kNowMs - 1);
  const Authenticator::Answer answer = fresh.Judge(early, OwnAddress(), AtMs(kNowMs + 10));
  EXPECT_EQ(answer.refused, RejectCode::kStarting);
  EXPECT_LE(answer.reason.size(), sizeof(Reject::reason));
  const ConnectRequest anew = RequestWith(KeyOf(file_), 2, kNowMs + 10);
  EXPECT_NE(fresh.Judge(anew, OwnAddress(), AtMs(kNowMs + 10)).key, nullptr);
}

TEST_F(AuthenticatorTest, WithoutAFileEverybodyWithoutAKeyMayConnect) {
  Authenticator open = Authenticator::Create("", kNow).value();
  EXPECT_EQ(open.Judge(NewConnectRequest(), OwnAddress(), kNow).refused, RejectCode{});
  const Authenticator::Answer answer = open.Judge(RequestWith(KeyOf(file_), 1), OwnAddress(), kNow);
  EXPECT_EQ(answer.refused, RejectCode::kAuthentication);
  EXPECT_THAT(answer.reason, HasSubstr("no keys"));
  EXPECT_FALSE(open.Look(/*asked=*/true).has_value());
}

TEST_F(AuthenticatorTest, RotatesKeysWithoutTouchingThoseThatStay) {
  const AuthKey old_key = KeyOf(file_, 0);
  const auto first = Judge(RequestWith(old_key, 1)).key;
  EXPECT_FALSE(authenticator_.Look(/*asked=*/false).has_value());
  file_.Write(Line(3, kSecret2) + Line(1, kSecret1));
  const auto read = authenticator_.Look(/*asked=*/false);
  ASSERT_TRUE(read.has_value() && read->ok());
  EXPECT_EQ(**read, 2u);
  EXPECT_EQ(Judge(RequestWith(old_key, 2)).key, first) << "the same object: sessions go on";
  EXPECT_FALSE(first->revoked);
  EXPECT_NE(Judge(RequestWith(KeyOf(file_), 3)).key, nullptr);
  file_.Write(Line(3, kSecret2));
  authenticator_.Look(/*asked=*/false);
  EXPECT_TRUE(first->revoked);
  ExpectRefused(RequestWith(old_key, 4), "does not have the key 1");
}

TEST_F(AuthenticatorTest, AKeyWithOtherRightsOrAnotherSecretIsAnotherKey) {
  const auto first = Judge(RequestWith(KeyOf(file_, 0), 1)).key;
  const auto second = Judge(RequestWith(KeyOf(file_, 1), 2)).key;
  file_.Write(Line(1, kSecret1, "read") + Line(2, kSecret1, "read"));
  authenticator_.Look(/*asked=*/false);
  EXPECT_TRUE(first->revoked);
  EXPECT_TRUE(second->revoked);
  EXPECT_TRUE(Judge(RequestWith(KeyOf(file_, 0), 3)).key->key.read_only);
}

TEST_F(AuthenticatorTest, AWrongFileChangesNothing) {
  const auto first = Judge(RequestWith(KeyOf(file_, 0), 1)).key;
  const AuthKey key = KeyOf(file_, 0);
  file_.Write("1 00\n");
  const auto read = authenticator_.Look(/*asked=*/false);
  ASSERT_TRUE(read.has_value());
  EXPECT_THAT(std::string(read->status().message()), HasSubstr(":1: a key of 1 bytes"));
  EXPECT_FALSE(authenticator_.Look(/*asked=*/false).has_value()) << "one line in the log is enough";
  EXPECT_TRUE(authenticator_.Look(/*asked=*/true).has_value());
  EXPECT_FALSE(first->revoked);
  EXPECT_EQ(Judge(RequestWith(key, 2)).key, first);
}

TEST(AuthenticatorStartTest, DoesNotStartWithAWrongFile) {
  EXPECT_FALSE(Authenticator::Create("/no/such/keys", kNow).ok());
}

}  // namespace
}  // namespace gannet
