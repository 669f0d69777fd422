// A client that has a key believes only servers that have it too.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "common/auth/auth_file.h"
#include "common/auth/handshake_mac.h"
#include "softverbs/tests/support/key_file.h"
#include "tests/client/engine/fake_run.h"

namespace gannet {
namespace {

using ::testing::HasSubstr;

constexpr char kOneKey[] = "5 000102030405060708090a0b0c0d0e0f\n";
constexpr char kOtherKey[] = "6 202122232425262728292a2b2c2d2e2f\n";

class AuthTest : public FakeRun {
 protected:
  AuthKey Key() const { return AuthFile::Open(file_.path()).value().keys().front(); }
  const ClientSession& session() const { return engine_->servers().session(0); }

  // Begins to connect with the file's first key, to a server whose grants `alter` has the last word
  // on.
  void Start(std::function<void(const ConnectRequest&, Grant*)> alter) {
    server_->alter_grant = std::move(alter);
    Engine::Settings settings{.endpoints = {server_->endpoint()}, .clock = clock_};
    settings.options.depth = 8;
    settings.options.device = std::string(kSoftverbsDeviceName);
    settings.options.auth_file = file_.path();
    auto engine = Engine::Create(std::move(settings));
    ASSERT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
    Settle();
  }
  void ExpectNotBelieved() {
    EXPECT_FALSE(session().ready());
    EXPECT_FALSE(session().attempts().was_connected());
    EXPECT_EQ(session().attempts().status().code(), absl::StatusCode::kPermissionDenied);
    EXPECT_THAT(std::string(session().attempts().status().message()),
                HasSubstr("did not prove that it has the key 5"));
    const uint64_t get = BeginKey(OpType::kGet, "key");
    const uint64_t put = BeginPut("key", "value");
    PassMs(500);
    EXPECT_EQ(ended_[get].outcome, Outcome::kUnavailable);
    EXPECT_EQ(ended_[put].outcome, Outcome::kUnavailable);
    EXPECT_EQ(server_->Count(Opcode::kPut), 0u) << "it was told a value";
    EXPECT_EQ(server_->heartbeats(), 0u);
  }

  test_support::KeyFile file_{kOneKey};
};

TEST_F(AuthTest, BelievesAServerThatHasTheKey) {
  Start([this](const ConnectRequest& request, Grant* grant) {
    EXPECT_TRUE(VerifyRequest(Key(), Resolve(server_->endpoint(), 0)->NetworkBytes(), request));
    SignGrant(Key(), request, grant);
  });
  EXPECT_TRUE(session().ready()) << session().attempts().status();
  EXPECT_TRUE(engine_->servers().Info().at(0).authenticated);
  EXPECT_FALSE(engine_->servers().Info().at(0).read_only);
}

TEST_F(AuthTest, DoesNotGoDownToAServerWithoutKeys) {
  Start(nullptr);
  ExpectNotBelieved();
}

TEST_F(AuthTest, BelievesNoServerWithAnotherKeyOfThatId) {
  Start([this](const ConnectRequest& request, Grant* grant) {
    AuthKey other = Key();
    other.secret[0] ^= 1;
    SignGrant(other, request, grant);
  });
  ExpectNotBelieved();
}

TEST_F(AuthTest, BelievesNoGrantForAnotherRequest) {
  Start([this](const ConnectRequest& request, Grant* grant) {
    ConnectRequest other = request;
    other.nonce ^= 1;
    SignGrant(Key(), other, grant);
  });
  ExpectNotBelieved();
}

TEST_F(AuthTest, BelievesNoGrantThatWasChangedOnItsWay) {
  Start([this](const ConnectRequest& request, Grant* grant) {
    SignGrant(Key(), request, grant);
    grant->region_rkey ^= 1;
  });
  ExpectNotBelieved();
}

TEST_F(AuthTest, GoesOnTryingUntilTheServerProvesItself) {
  Start(nullptr);
  ASSERT_FALSE(session().ready());
  server_->alter_grant = [this](const ConnectRequest& request, Grant* grant) {
    SignGrant(Key(), request, grant);
  };
  PassMs(2'000);
  EXPECT_TRUE(session().ready()) << session().attempts().status();
}

TEST_F(AuthTest, TakesTheNewKeyWithTheNextConnection) {
  uint32_t key_id = 0;
  Start([&](const ConnectRequest& request, Grant* grant) {
    key_id = request.key_id;
    SignGrant(Key(), request, grant);
  });
  EXPECT_EQ(key_id, 5u);
  file_.Write(std::string(kOtherKey) + kOneKey);
  engine_->servers().Break(0, absl::UnavailableError("the test breaks it"));
  PassMs(2'000);
  EXPECT_TRUE(session().ready()) << session().attempts().status();
  EXPECT_EQ(key_id, 6u);
}

TEST_F(AuthTest, KeepsItsKeyWhileTheFileIsWrong) {
  const AuthKey key = Key();
  uint32_t key_id = 0;
  Start([&](const ConnectRequest& request, Grant* grant) {
    key_id = request.key_id;
    SignGrant(key, request, grant);
  });
  file_.Write("5 00\n");
  key_id = 0;
  engine_->servers().Break(0, absl::UnavailableError("the test breaks it"));
  PassMs(2'000);
  EXPECT_TRUE(session().ready()) << session().attempts().status();
  EXPECT_EQ(key_id, 5u);
}

TEST_F(AuthTest, AReaderAsksTheServerForLocksAndIsToldWhyNot) {
  Start([this](const ConnectRequest& request, Grant* grant) {
    grant->features |= kGrantReadOnly;
    grant->lock_rkey = 0;
    grant->lock_address = 0;
    SignGrant(Key(), request, grant);
  });
  ASSERT_TRUE(session().ready()) << session().attempts().status();
  EXPECT_TRUE(engine_->servers().Info().at(0).read_only);
  EXPECT_EQ(engine_->servers().Info().at(0).lock_mode, "none");
  server_->answer = [](const FakeServer::Request& request) {
    return FakeServer::ReplyTo(request, ReplyStatus::kPermissionDenied);
  };
  const uint64_t put = BeginPut("key", "value");
  const uint64_t lock = Begin(LockRequest(OpType::kLock, "key", {}));
  const uint64_t both = Begin(LockRequest(OpType::kLockAndGet, "other", {}));
  Settle();
  for (const uint64_t op : {put, lock, both}) EXPECT_EQ(ended_[op].outcome, Outcome::kReadOnly);
  EXPECT_EQ(server_->Count(Opcode::kLock), 2u);
  EXPECT_EQ(engine_->busy(), 0u);
}

TEST_F(AuthTest, AWrongFileIsTheConnectsError) {
  Engine::Settings settings{.endpoints = {server_->endpoint()}, .clock = clock_};
  settings.options.auth_file = "/no/such/keys";
  const auto engine = Engine::Create(std::move(settings));
  EXPECT_FALSE(engine.ok());
  EXPECT_THAT(std::string(engine.status().message()), HasSubstr("/no/such/keys"));
}

}  // namespace
}  // namespace gannet
