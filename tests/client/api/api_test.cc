// Every call of the synchronous client against a real server.

#include <gannet/client.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "tests/client/api/patient_options.h"
#include "tests/support/server_process.h"

namespace gannet {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

class ClientTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = new ServerProcess({"--memory=128M"}); }
  static void TearDownTestSuite() { delete server_; }

  static std::unique_ptr<Client> Connect() {
    auto client = Client::Connect({server_->endpoint()}, PatientOptions());
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }
  void SetUp() override {
    client_ = Connect();
    ASSERT_NE(client_, nullptr);
  }
  std::string Read(std::string_view key) {
    const auto value = client_->Get(key);
    EXPECT_TRUE(value.ok()) << value.status();
    if (!value.ok()) return "error";
    return value->has_value() ? (*value)->data : "absent";
  }

  static ServerProcess* server_;
  std::unique_ptr<Client> client_;
};
ServerProcess* ClientTest::server_ = nullptr;

TEST_F(ClientTest, GetsWhatItPut) {
  const auto version = client_->Put("a", "value", {.flags = 42});
  ASSERT_TRUE(version.ok()) << version.status();
  const auto value = client_->Get("a");
  ASSERT_TRUE(value.ok() && value->has_value()) << value.status();
  EXPECT_EQ((*value)->data, "value");
  EXPECT_EQ((*value)->info.version, *version);
  EXPECT_EQ((*value)->info.flags, 42u);
  EXPECT_EQ((*value)->info.expiry_ms, 0u);
  EXPECT_EQ((*value)->info.value_bytes, 5u);
}

TEST_F(ClientTest, AMissIsAnAnswer) {
  EXPECT_EQ(Read("never put"), "absent");
  const auto deleted = client_->Delete("never put");
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_FALSE(*deleted);
}

TEST_F(ClientTest, DeleteTakesAway) {
  ASSERT_TRUE(client_->Put("b", "x").ok());
  ASSERT_EQ(Read("b"), "x");
  const auto deleted = client_->Delete("b");
  ASSERT_TRUE(deleted.ok()) << deleted.status();
  EXPECT_TRUE(*deleted);
  EXPECT_EQ(Read("b"), "absent");
}

TEST_F(ClientTest, CarriesValuesOfEverySize) {
  for (const size_t bytes : {0, 1, 8, 63, 64, 1000, 1200, 1300, 3700, 3900, 4000, 4096, 16'000,
                             20'000, 130'000, 1 << 20}) {
    std::string value(bytes, '\0');
    for (size_t i = 0; i < bytes; ++i) value[i] = static_cast<char>(i * 31 + bytes);
    const auto version = client_->Put("sized", value);
    ASSERT_TRUE(version.ok()) << bytes << ": " << version.status();
    EXPECT_TRUE(Read("sized") == value) << bytes;
    EXPECT_TRUE(Connect()->Get("sized").value()->data == value) << bytes << ", cold";
  }
}

TEST_F(ClientTest, KeysAreBinaryAndOfOneTo250Bytes) {
  const std::string binary("\0\xff\n key", 7), longest(250, 'k');
  for (const std::string& key : {std::string("k"), binary, longest}) {
    ASSERT_TRUE(client_->Put(key, key).ok());
    EXPECT_EQ(Read(key), key);
  }
  EXPECT_EQ(Read(binary.substr(0, 6)), "absent");
}

TEST_F(ClientTest, WrongSizesAreRefusedBeforeAnythingIsSent) {
  const uint64_t rpcs = client_->Stats()[0].stats->rpcs;
  for (const std::string& key : {std::string(), std::string(251, 'k')}) {
    EXPECT_TRUE(absl::IsInvalidArgument(client_->Get(key).status()));
    EXPECT_TRUE(absl::IsInvalidArgument(client_->Put(key, "v").status()));
    EXPECT_TRUE(absl::IsInvalidArgument(client_->Delete(key).status()));
    EXPECT_TRUE(absl::IsInvalidArgument(client_->AcquireLock(key).status()));
    EXPECT_TRUE(absl::IsInvalidArgument(client_->MultiGet({{key}})[0].status()));
  }
  EXPECT_TRUE(
      absl::IsInvalidArgument(client_->Put("k", std::string((64 << 20) + 1, 'v')).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(client_->Put("k", "v", {.ttl = milliseconds(-1)}).status()));
  EXPECT_EQ(client_->Stats()[0].stats->rpcs, rpcs + 1);
}

TEST_F(ClientTest, OnlyIfAbsent) {
  ASSERT_TRUE(client_->Put("once", "first", {.only_if_absent = true}).ok());
  const auto again = client_->Put("once", "second", {.only_if_absent = true});
  EXPECT_TRUE(absl::IsAlreadyExists(again.status())) << again.status();
  EXPECT_EQ(Read("once"), "first");
}

TEST_F(ClientTest, OnlyIfVersion) {
  const uint64_t first = client_->Put("versioned", "1", {.only_if_version = 0}).value();
  EXPECT_TRUE(
      absl::IsFailedPrecondition(client_->Put("versioned", "x", {.only_if_version = 0}).status()));
  const auto second = client_->Put("versioned", "2", {.only_if_version = first});
  ASSERT_TRUE(second.ok()) << second.status();
  const auto late = client_->Put("versioned", "x", {.only_if_version = first});
  EXPECT_TRUE(absl::IsFailedPrecondition(late.status()));
  EXPECT_THAT(std::string(late.status().message()), HasSubstr(std::to_string(*second)));
  EXPECT_TRUE(absl::IsFailedPrecondition(
      client_->Delete("versioned", {.only_if_version = first}).status()));
  EXPECT_TRUE(client_->Delete("versioned", {.only_if_version = *second}).value());
  EXPECT_TRUE(absl::IsInvalidArgument(
      client_->Put("versioned", "x", {.only_if_absent = true, .only_if_version = 1}).status()));
}

TEST_F(ClientTest, AnItemPastItsTimeIsGone) {
  ASSERT_TRUE(client_->Put("short", "lived", {.ttl = milliseconds(1)}).ok());
  ASSERT_TRUE(client_->Put("long", "lived", {.ttl = std::chrono::hours(1)}).ok());
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (Read("short") != "absent" && std::chrono::steady_clock::now() < give_up) {
  }
  EXPECT_EQ(Read("short"), "absent");
  EXPECT_EQ(Read("long"), "lived");
  EXPECT_GT(client_->Get("long").value()->info.expiry_ms, 0u);
}

TEST_F(ClientTest, GetIntoCopiesWhatFits) {
  ASSERT_TRUE(client_->Put("long value", "0123456789").ok());
  std::array<std::byte, 4> out{};
  const auto info = client_->GetInto("long value", out);
  ASSERT_TRUE(info.ok() && info->has_value()) << info.status();
  EXPECT_EQ((*info)->value_bytes, 10u);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(out.data()), out.size()), "0123");
  EXPECT_FALSE(client_->GetInto("never put", out).value().has_value());
}

TEST_F(ClientTest, GetViewCallsBackWithTheValueAndMayCallTheClient) {
  ASSERT_TRUE(client_->Put("viewed", "seen").ok());
  std::string seen;
  const auto found = client_->GetView("viewed", [&](std::string_view value, const ItemInfo& info) {
    seen = value;
    EXPECT_EQ(info.value_bytes, value.size());
    EXPECT_TRUE(client_->Ping().ok());
  });
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_TRUE(*found);
  EXPECT_EQ(seen, "seen");
  EXPECT_FALSE(client_->GetView("never put", [](auto, auto&) { FAIL(); }).value());
}

TEST_F(ClientTest, MultiGetAnswersInOrder) {
  std::vector<std::string> keys;
  for (int i = 0; i < 300; ++i) {  // more than are in flight at once
    keys.push_back("multi" + std::to_string(i));
    if (i % 3 != 0) {
      ASSERT_TRUE(client_->Put(keys.back(), std::to_string(i)).ok());
    }
  }
  keys.push_back(keys[1]);
  const auto values = client_->MultiGet(keys);
  ASSERT_EQ(values.size(), keys.size());
  for (size_t i = 0; i < 300; ++i) {
    ASSERT_TRUE(values[i].ok()) << values[i].status();
    ASSERT_EQ(values[i]->has_value(), i % 3 != 0) << i;
    if (i % 3 != 0) {
      EXPECT_EQ((*values[i])->data, std::to_string(i));
    }
  }
  EXPECT_EQ((*values.back())->data, "1");
  EXPECT_TRUE(client_->MultiGet({}).empty());
}

TEST_F(ClientTest, AKeyThatIsNoneIsItsOwnErrorInAMultiGet) {
  ASSERT_TRUE(client_->Put("good", "value").ok());
  const std::vector<std::string> keys = {"good", "", std::string(251, 'k'), "", "good"};
  const auto values = client_->MultiGet(keys);
  ASSERT_EQ(values.size(), keys.size());
  EXPECT_EQ((*values[0])->data, "value");
  EXPECT_EQ((*values[4])->data, "value");
  for (const size_t i : {1, 2, 3}) EXPECT_TRUE(absl::IsInvalidArgument(values[i].status())) << i;
}

TEST_F(ClientTest, ALockIsHeldByOne) {
  const auto other = Connect();
  const auto lock = client_->AcquireLock("locked");
  ASSERT_TRUE(lock.ok()) << lock.status();
  EXPECT_FALSE(other->TryLock("locked").value().has_value());
  const auto waited = other->AcquireLock("locked", milliseconds(20));
  EXPECT_TRUE(absl::IsDeadlineExceeded(waited.status())) << waited.status();
  EXPECT_THAT(std::string(waited.status().message()),
              HasSubstr("connection " + std::to_string(lock->word >> 32)));
  EXPECT_TRUE(client_->Unlock(*lock).ok());
  const auto now = other->TryLock("locked");
  ASSERT_TRUE(now.ok() && now->has_value()) << now.status();
  EXPECT_TRUE(other->Unlock(**now).ok());
}

TEST_F(ClientTest, AWaiterGetsTheLockWhenItIsReleased) {
  const auto other = Connect();
  const Lock lock = client_->AcquireLock("awaited").value();
  std::thread waiter([&] {
    const auto got = other->AcquireLock("awaited");
    EXPECT_TRUE(got.ok()) << got.status();
    EXPECT_TRUE(other->Unlock(*got).ok());
  });
  EXPECT_TRUE(client_->Unlock(lock).ok());
  waiter.join();
}

TEST_F(ClientTest, UnlockingTwiceIsAborted) {
  const Lock lock = client_->AcquireLock("twice").value();
  EXPECT_TRUE(client_->Unlock(lock).ok());
  EXPECT_TRUE(absl::IsAborted(client_->Unlock(lock)));
}

TEST_F(ClientTest, ReadModifyWriteUnderALock) {
  ASSERT_TRUE(client_->Put("counter", "1").ok());
  const auto locked = client_->LockAndGet("counter");
  ASSERT_TRUE(locked.ok()) << locked.status();
  ASSERT_TRUE(locked->value.has_value());
  EXPECT_EQ(locked->value->data, "1");
  const PutOptions under{.only_if_version = locked->value->info.version, .lock = &locked->lock};
  EXPECT_TRUE(client_->Put("counter", "2", under).ok());
  // The version that was read is not the current one any more.
  EXPECT_TRUE(absl::IsFailedPrecondition(client_->Put("counter", "3", under).status()));
  EXPECT_TRUE(client_->Unlock(locked->lock).ok());
  EXPECT_TRUE(absl::IsAborted(client_->Put("counter", "3", under).status()));
  EXPECT_EQ(Read("counter"), "2");
}

TEST_F(ClientTest, LockAndGetOfAnAbsentKey) {
  const auto locked = client_->LockAndGet("not yet there");
  ASSERT_TRUE(locked.ok()) << locked.status();
  EXPECT_FALSE(locked->value.has_value());
  EXPECT_TRUE(
      client_->Put("not yet there", "now", {.only_if_version = 0, .lock = &locked->lock}).ok());
  EXPECT_TRUE(client_->Delete("not yet there", {.only_if_version = 0, .lock = &locked->lock})
                  .status()
                  .code() == absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(client_->Unlock(locked->lock).ok());
}

TEST_F(ClientTest, AWriteUnderALockNeedsTheVersionAndTheKey) {
  const Lock lock = client_->AcquireLock("mine").value();
  EXPECT_TRUE(absl::IsInvalidArgument(client_->Put("mine", "x", {.lock = &lock}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      client_->Put("yours", "x", {.only_if_version = 0, .lock = &lock}).status()));
  EXPECT_TRUE(client_->Unlock(lock).ok());
}

TEST_F(ClientTest, NoticesTwoKeysOfOneLockWord) {
  ServerProcess server({"--lock_words=1"});
  auto client = Client::Connect({server.endpoint()}, PatientOptions()).value();
  const Lock lock = client->AcquireLock("one").value();
  EXPECT_TRUE(absl::IsFailedPrecondition(client->AcquireLock("other").status()));
  EXPECT_FALSE(client->TryLock("one").value().has_value());
  EXPECT_TRUE(client->Unlock(lock).ok());
  EXPECT_TRUE(client->TryLock("other").value().has_value());
}

TEST_F(ClientTest, TellsOfItsServer) {
  EXPECT_TRUE(client_->Ping().ok());
  const std::vector<ServerInfo> info = client_->Info();
  ASSERT_EQ(info.size(), 1u);
  EXPECT_EQ(info[0].endpoint, server_->endpoint());
  EXPECT_GT(info[0].index_slots, 0u);
  EXPECT_GT(info[0].read_depth, 0u);
  const auto stats = client_->Stats();
  ASSERT_EQ(stats.size(), 1u);
  ASSERT_TRUE(stats[0].stats.ok()) << stats[0].stats.status();
  EXPECT_EQ(stats[0].endpoint, server_->endpoint());
  EXPECT_EQ(stats[0].stats->slots_total, info[0].index_slots);
  EXPECT_GT(stats[0].stats->rpcs, 0u);
}

// Only its heartbeats tell the server that it is alive.
TEST_F(ClientTest, AnIdleClientStaysConnected) {
  ServerProcess server;
  auto idle = Client::Connect({server.endpoint()}, PatientOptions()).value();
  auto watcher = Client::Connect({server.endpoint()}, PatientOptions()).value();
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  ServerStats stats;
  do {
    std::this_thread::sleep_for(milliseconds(20));
    stats = watcher->Stats()[0].stats.value();
  } while (stats.heartbeats < 4 && std::chrono::steady_clock::now() < give_up);
  // The watcher needs no heartbeats, because its requests show that it is alive. So these came from
  // the idle client.
  EXPECT_GE(stats.heartbeats, 4u);
  EXPECT_EQ(stats.connections, 2u);
  EXPECT_TRUE(idle->Ping().ok());
}

TEST_F(ClientTest, NobodyThereIsUnavailable) {
  const auto client = Client::Connect({"127.0.0.1:1"}, PatientOptions());
  EXPECT_TRUE(absl::IsUnavailable(client.status())) << client.status();
  EXPECT_THAT(std::string(client.status().message()), HasSubstr("127.0.0.1:1"));
}

TEST_F(ClientTest, RefusesWhatIsNoEndpointOrNoDevice) {
  EXPECT_TRUE(absl::IsInvalidArgument(Client::Connect({}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Client::Connect({"host:port"}).status()));
  Options options;
  options.device = "no-such-device";
  const auto client = Client::Connect({server_->endpoint()}, options);
  EXPECT_TRUE(absl::IsFailedPrecondition(client.status())) << client.status();
  EXPECT_THAT(std::string(client.status().message()), HasSubstr("no-such-device"));
}

// A name may have several addresses, and the server may listen on only one of them.
TEST_F(ClientTest, TakesNames) {
  const std::string port = server_->endpoint().substr(server_->endpoint().rfind(':'));
  auto client = Client::Connect({"localhost" + port}, PatientOptions());
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_TRUE((*client)->Ping().ok());
}

TEST_F(ClientTest, SpeaksIPv6) {
  ServerProcess server({"--listen=[::1]:0"});
  auto client = Client::Connect({server.endpoint()}, PatientOptions());
  ASSERT_TRUE(client.ok()) << client.status();
  ASSERT_TRUE((*client)->Put("six", "6").ok());
  EXPECT_EQ((*client)->Get("six").value()->data, "6");
}

TEST_F(ClientTest, SpreadsKeysOverSeveralServers) {
  ServerProcess second;
  const std::vector<std::string> endpoints = {server_->endpoint(), second.endpoint()};
  auto client = Client::Connect(endpoints, PatientOptions()).value();
  auto turned = Client::Connect({endpoints[1], endpoints[0]}, PatientOptions()).value();
  for (int i = 0; i < 50; ++i) {
    const std::string key = "spread" + std::to_string(i);
    ASSERT_TRUE(client->Put(key, key).ok());
    ASSERT_TRUE(turned->Get(key).value().has_value()) << key;
  }
  const auto stats = client->Stats();
  ASSERT_EQ(stats.size(), 2u);
  EXPECT_GT(stats[1].stats->items, 10u);
  EXPECT_LT(stats[1].stats->items, 40u);
}

}  // namespace
}  // namespace gannet
