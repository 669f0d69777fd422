// A server with keys, and peers that prove too little.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "common/auth/auth_file.h"
#include "common/auth/handshake_mac.h"
#include "common/base/clocks.h"
#include "common/layout/key_hash.h"
#include "common/layout/lock_word.h"
#include "common/protocol/storage.h"
#include "softverbs/tests/support/key_file.h"
#include "tests/server/rpc/raw_peer.h"
#include "tests/server/rpc/server_fixture.h"

namespace gannet {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kSilenceMs = 60'000;
constexpr char kWriter[] = "1 000102030405060708090a0b0c0d0e0f\n";
constexpr char kReader[] = "2 202122232425262728292a2b2c2d2e2f read\n";

class AuthTest : public ServerTest {
 protected:
  void SetUp() override {
    const auto keys = AuthFile::Open(file_.path());
    ASSERT_TRUE(keys.ok()) << keys.status();
    writer_ = keys->keys()[0];
    reader_ = keys->keys()[1];
    StartServer([this](Server::Options* options) {
      options->auth_file = file_.path();
      options->silence_ms = kSilenceMs;  // peers of these tests send no heartbeats
    });
  }
  ConnectRequest Request(const AuthKey& key, uint64_t token = 0, uint16_t qp_index = 0) {
    ConnectRequest request = NewConnectRequest();
    request.session_token = token;
    request.qp_index = qp_index;
    request.time_ms = MachineWallTime().ms();
    request.nonce = UnpredictableNonce();
    SignRequest(key, address().NetworkBytes(), &request);
    return request;
  }
  // Expects that the server refuses the request, and tells nothing but the reason.
  void ExpectRefused(const ConnectRequest& request, RejectCode code, const char* text) {
    RawPeer peer(this);
    EXPECT_FALSE(peer.Connect(request));
    ASSERT_TRUE(peer.reject().has_value());
    EXPECT_EQ(peer.reject()->code, static_cast<uint32_t>(code));
    EXPECT_THAT(RejectReason(*peer.reject()), HasSubstr(text));
  }
  // Passes more than a third of the time of silence, in which workers look at each connection.
  void Rewrite(std::string_view text) {
    file_.Write(text);
    Pass(kSilenceMs * kNsPerMs * 4 / 10);
  }

  test_support::KeyFile file_{std::string(kWriter) + kReader};
  AuthKey writer_;
  AuthKey reader_;
};

TEST_F(AuthTest, TheGrantIsProvenToo) {
  const ConnectRequest request = Request(writer_);
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect(request));
  const Grant& grant = peer.grant();
  EXPECT_TRUE(VerifyGrant(writer_, request, std::as_bytes(std::span(&grant, 1))));
  EXPECT_FALSE(VerifyGrant(writer_, Request(writer_), std::as_bytes(std::span(&grant, 1))));
  EXPECT_NE(grant.lock_rkey, 0u);
  EXPECT_EQ(peer.Put("key", "value"), ReplyStatus::kOk);
}

TEST_F(AuthTest, RefusesPeersThatProveNothing) {
  ExpectRefused(NewConnectRequest(), RejectCode::kAuthentication, "one of its keys");
  ConnectRequest named = NewConnectRequest();
  named.key_id = 1;
  ExpectRefused(named, RejectCode::kAuthentication, "not made with the server's key 1");
  EXPECT_EQ(stats().connections, 0u);
  EXPECT_EQ(stats().refused_connections, 2u);
}

TEST_F(AuthTest, RefusesACopyAndAnOldRequest) {
  const ConnectRequest request = Request(writer_);
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect(request));
  ExpectRefused(request, RejectCode::kAuthentication, "accepted before");
  ConnectRequest old = request;
  old.time_ms -= 3'600'000;
  old.nonce ^= 1;
  SignRequest(writer_, address().NetworkBytes(), &old);
  ExpectRefused(old, RejectCode::kAuthentication, "clock");
}

TEST_F(AuthTest, TheSessionsTokenIsNotEnoughToJoinIt) {
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect(Request(writer_)));
  const uint64_t token = peer.grant().session_token;
  ConnectRequest request = NewConnectRequest();
  request.session_token = token;
  request.qp_index = 1;
  ExpectRefused(request, RejectCode::kAuthentication, "one of its keys");
  ExpectRefused(Request(reader_, token, 1), RejectCode::kSessionUnknown, "another key's");
  RawPeer second(this);
  EXPECT_TRUE(second.Connect(Request(writer_, token, 1)));
  EXPECT_FALSE(peer.broken());
}

TEST_F(AuthTest, AReaderGetsNoRightsToLocks) {
  const ConnectRequest request = Request(reader_);
  RawPeer reader(this);
  ASSERT_TRUE(reader.Connect(request));
  const Grant& grant = reader.grant();
  EXPECT_TRUE(grant.features & kGrantReadOnly);
  EXPECT_EQ(grant.lock_rkey, 0u);
  EXPECT_EQ(grant.lock_address, 0u);
  EXPECT_NE(grant.region_rkey, 0u);
  EXPECT_TRUE(VerifyGrant(reader_, request, std::as_bytes(std::span(&grant, 1))));
}

TEST_F(AuthTest, AReaderMayReadAndNothingElse) {
  RawPeer writer(this);
  ASSERT_TRUE(writer.Connect(Request(writer_)));
  ASSERT_EQ(writer.Put("key", "value"), ReplyStatus::kOk);
  RawPeer reader(this);
  ASSERT_TRUE(reader.Connect(Request(reader_)));
  EXPECT_EQ(reader.Get("key"), "value");
  EXPECT_EQ(reader.Put("key", "other"), ReplyStatus::kPermissionDenied);
  const std::string_view key = "key";
  const KeyHash hash = KeyHash::Of(key, reader.grant().hash_seed);
  for (const Opcode opcode :
       {Opcode::kDelete, Opcode::kLock, Opcode::kUnlock, Opcode::kExtendLock}) {
    RequestHeader header = reader.Header(opcode);
    header.key_bytes = 3;
    if (opcode != Opcode::kDelete) {
      header.lock.lock_word = LockWord::Of(reader.grant().connection_id, 1, hash.LockTag()).word();
    }
    const auto reply = reader.Call(header, key);
    ASSERT_TRUE(reply.has_value());
    EXPECT_EQ(reply->status(), ReplyStatus::kPermissionDenied) << static_cast<int>(opcode);
  }
  RequestHeader force = reader.Header(Opcode::kUnlock, kForce);
  force.key_bytes = 3;
  EXPECT_EQ(reader.Call(force, key)->status(), ReplyStatus::kPermissionDenied);
  for (const Opcode opcode :
       {Opcode::kPing, Opcode::kStats, Opcode::kListLocks, Opcode::kStorage, Opcode::kHeats}) {
    EXPECT_EQ(reader.Call(reader.Header(opcode))->status(), ReplyStatus::kOk);
  }
  RequestHeader snapshot = reader.Header(Opcode::kStorage);
  snapshot.storage.ask = static_cast<uint64_t>(StorageAsk::kSnapshot);
  EXPECT_EQ(reader.Call(snapshot)->status(), ReplyStatus::kPermissionDenied);
  EXPECT_EQ(writer.Get("key"), "value");
  EXPECT_FALSE(reader.broken());
}

// The same request again gets the same answer, and a burst of them counts against the credits.
TEST_F(AuthTest, ARefusedWriteIsAnsweredLikeAnyOther) {
  RawPeer reader(this);
  ASSERT_TRUE(reader.Connect(Request(reader_)));
  RequestHeader header = reader.Header(Opcode::kPut);
  header.key_bytes = 3;
  header.value_bytes = 5;
  for (int i = 0; i < 3; ++i) {
    const auto reply = reader.Call(header, "key", "value");
    ASSERT_TRUE(reply.has_value());
    EXPECT_EQ(reply->status(), ReplyStatus::kPermissionDenied);
    EXPECT_EQ(reply->header.sequence, header.sequence);
  }
  for (uint32_t i = 0; i < 3 * kCreditsDefault; ++i) {
    EXPECT_EQ(reader.Put("key", "value"), ReplyStatus::kPermissionDenied);
  }
  EXPECT_FALSE(reader.broken());
}

TEST_F(AuthTest, AKeyThatIsTakenAwayLosesItsConnections) {
  RawPeer writer(this);
  ASSERT_TRUE(writer.Connect(Request(writer_)));
  RawPeer reader(this);
  ASSERT_TRUE(reader.Connect(Request(reader_)));
  Rewrite("1 00\n");  // wrong: nothing changes
  EXPECT_EQ(writer.Put("key", "value"), ReplyStatus::kOk);
  EXPECT_EQ(reader.Get("key"), "value");
  Rewrite(kReader);
  EXPECT_TRUE(writer.WaitBroken());
  ExpectRefused(Request(writer_), RejectCode::kAuthentication, "does not have the key 1");
  EXPECT_FALSE(reader.broken());
  RawPeer another(this);
  EXPECT_TRUE(another.Connect(Request(reader_)));
}

// Its queue pairs have the rights of before.
TEST_F(AuthTest, AKeyThatMayOnlyReadFromNowOnLosesItsConnections) {
  RawPeer writer(this);
  ASSERT_TRUE(writer.Connect(Request(writer_)));
  Rewrite(std::string("1 000102030405060708090a0b0c0d0e0f read\n") + kReader);
  EXPECT_TRUE(writer.WaitBroken());
  RawPeer reader(this);
  ASSERT_TRUE(reader.Connect(Request(writer_)));
  EXPECT_EQ(reader.Put("key", "value"), ReplyStatus::kPermissionDenied);
}

}  // namespace
}  // namespace gannet
