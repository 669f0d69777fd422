#include "common/auth/handshake.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>
#include <string>

#include "common/base/clocks.h"
#include "common/layout/superblock.h"
#include "common/protocol/message.h"

namespace gannet {
namespace {

using ::testing::HasSubstr;

Grant GoodGrant() {
  Grant grant = NewGrant();
  grant.incarnation = 5;
  grant.region_bytes = 1 << 20;
  grant.lock_words = 8;
  grant.connection_id = 3;
  grant.session_token = 77;
  grant.index = {1, 4096, 16, 1};
  grant.message_bytes_max = kMessageBytesMax;
  grant.value_bytes_max = kValueBytesMax;
  grant.credits = 32;
  grant.lock_mode = 1;
  return grant;
}

absl::StatusOr<Grant> Check(const Grant& grant) {
  return CheckGrant(std::as_bytes(std::span(&grant, 1)), "host:1");
}

TEST(HandshakeTest, TakesAGoodGrant) {
  const auto grant = Check(GoodGrant());
  ASSERT_TRUE(grant.ok()) << grant.status();
  EXPECT_EQ(grant->session_token, 77u);
}

TEST(HandshakeTest, RefusesALayoutThatItDoesNotKnow) {
  Grant grant = GoodGrant();
  grant.layout_version = kLayoutVersion + 1;
  EXPECT_TRUE(absl::IsUnimplemented(Check(grant).status())) << Check(grant).status();
}

TEST(HandshakeTest, RefusesWhatNoClientCanWorkWith) {
  Grant grant = GoodGrant();
  grant.message_bytes_max = 64;
  EXPECT_FALSE(Check(grant).ok());
  grant = GoodGrant();
  grant.session_token = 0;
  EXPECT_FALSE(Check(grant).ok());
  grant = GoodGrant();
  grant.incarnation = 0;
  EXPECT_FALSE(Check(grant).ok());
  grant = GoodGrant();
  grant.magic ^= 1;
  EXPECT_THAT(std::string(Check(grant).status().message()), HasSubstr("host:1"));
}

TEST(HandshakeTest, ARefusalIsASentence) {
  const Reject reject = NewReject(RejectCode::kTooManyConnections, "1024 connections are open");
  RejectCode code;
  const absl::Status status =
      RefusalStatus(std::as_bytes(std::span(&reject, 1)), "host:1",
                    absl::UnavailableError("refused; the local device is rxe0"), &code);
  EXPECT_EQ(code, RejectCode::kTooManyConnections);
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_EQ(status.message(), "host:1 refused: 1024 connections are open");
}

TEST(HandshakeTest, AMemberThatIsNotPrimarySaysWhoIs) {
  const auto of = [](std::string_view reason) {
    const Reject reject = NewReject(RejectCode::kNotPrimary, reason);
    RejectCode code;
    const absl::Status status =
        RefusalStatus(std::as_bytes(std::span(&reject, 1)), "host:1",
                      absl::UnavailableError("refused; the local device is rxe0"), &code);
    EXPECT_TRUE(absl::IsUnavailable(status));
    return std::string(status.message());
  };
  EXPECT_EQ(of("primary=127.0.0.1:7003 epoch=1"),
            "host:1 is not primary of its group: 127.0.0.1:7003 is, in epoch 1");
  EXPECT_EQ(of(""), "host:1 is not primary of its group, and knows of no primary");
}

TEST(HandshakeTest, ARefusalWithoutWordsIsTheTransports) {
  RejectCode code;
  const absl::Status transport = absl::UnavailableError("nobody listens");
  EXPECT_EQ(RefusalStatus({}, "host:1", transport, &code), transport);
  EXPECT_EQ(code, RejectCode{});
}

TEST(HandshakeTest, TheRequestCarriesTokenAndIndex) {
  const ConnectRequest request = MakeConnectRequest(7, 3, 11, WallTime::FromNs(13 * kNsPerMs));
  const auto decoded = DecodeConnectRequest(std::as_bytes(std::span(&request, 1)));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded->session_token, 7u);
  EXPECT_EQ(decoded->qp_index, 3u);
}

}  // namespace
}  // namespace gannet
