// GETs from copies at a real server: they are there, they are right beside a writer, and they cost
// no READ.

#include <gannet/async_client.h>
#include <gannet/client.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "tests/support/server_process.h"

namespace gannet {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Clock = std::chrono::steady_clock;

constexpr int kLeaseMs = 20;
constexpr seconds kPatient{60};

Options NearOptions() {
  Options options{.connect_timeout = kPatient, .deadline = kPatient};
  options.near_cache_bytes = 1 << 20;
  return options;
}

std::unique_ptr<Client> Connect(const std::string& endpoint, const Options& options) {
  auto client = Client::Connect({endpoint}, options);
  EXPECT_TRUE(client.ok()) << client.status();
  return client.ok() ? *std::move(client) : nullptr;
}

class NearCacheServerTest : public ::testing::Test {
 protected:
  ServerProcess server_{{absl::StrCat("--item_lease_ms=", kLeaseMs)}};
};

// One writer, and readers that never see a value older than one whose PUT had returned before, nor
// one that was not begun.
class Histories {
 public:
  static constexpr size_t kKeys = 3;

  static std::string KeyOf(size_t key) { return absl::StrCat("popular", key); }

  void Put(Client& client, size_t key) {
    const uint64_t number = begun_[key].fetch_add(1) + 1;
    const auto at = Clock::now();
    EXPECT_TRUE(client.Put(KeyOf(key), absl::StrCat(number)).ok());
    const auto took = std::chrono::duration_cast<milliseconds>(Clock::now() - at);
    slowest_ = std::max(slowest_, took);
    done_[key].store(number);
  }
  void Get(Client& client, size_t key) {
    const uint64_t least = done_[key].load();
    const auto value = client.Get(KeyOf(key));
    ASSERT_TRUE(value.ok() && value->has_value()) << value.status();
    uint64_t number = 0;
    ASSERT_TRUE(absl::SimpleAtoi((*value)->data, &number));
    ASSERT_GE(number, least) << "a stale answer";
    ASSERT_LE(number, begun_[key].load());
    RaiseTo(&done_[key], number);  // who GETs later must not see an older one
  }
  milliseconds slowest() const { return slowest_; }

 private:
  static void RaiseTo(std::atomic<uint64_t>* number, uint64_t to) {
    uint64_t is = number->load();
    while (is < to && !number->compare_exchange_weak(is, to)) {
    }
  }

  std::array<std::atomic<uint64_t>, kKeys> begun_{};
  std::array<std::atomic<uint64_t>, kKeys> done_{};
  milliseconds slowest_{0};  // the writer's
};

TEST_F(NearCacheServerTest, ReadersOfPopularKeysSeeEachWrite) {
  constexpr int kReaders = 4;
  constexpr int kWritesOfEach = 4;
  const auto writer =
      Connect(server_.endpoint(), {.connect_timeout = kPatient, .deadline = kPatient});
  ASSERT_NE(writer, nullptr);
  Histories histories;
  for (size_t key = 0; key < Histories::kKeys; ++key) histories.Put(*writer, key);
  // Two of the readers share a client.
  std::vector<std::shared_ptr<Client>> clients;
  for (int i = 0; i + 1 < kReaders; ++i)
    clients.push_back(Connect(server_.endpoint(), NearOptions()));
  clients.push_back(clients.back());
  std::atomic<bool> stop = false;
  std::vector<std::thread> readers;
  for (const auto& client : clients) {
    readers.emplace_back([&, client] {
      for (size_t i = 0; !stop.load() && !::testing::Test::HasFatalFailure(); ++i) {
        histories.Get(*client, i % Histories::kKeys);
      }
    });
  }
  uint64_t answers = 0;
  for (int i = 0; i < kWritesOfEach * static_cast<int>(Histories::kKeys); ++i) {
    std::this_thread::sleep_for(milliseconds(1200));
    histories.Put(*writer, static_cast<size_t>(i) % Histories::kKeys);
  }
  stop.store(true);
  for (std::thread& reader : readers) reader.join();
  for (const auto& client : clients) answers += client->Info()[0].near_cache_answers;
  EXPECT_GT(answers, 0u) << "nothing was leased";
  RecordProperty("answers", absl::StrCat(answers));
  RecordProperty("slowest_put_ms", absl::StrCat(histories.slowest().count()));
}

// A key that everybody reads costs no READ but those of the header.
TEST_F(NearCacheServerTest, AWarmKeyIsAnsweredWithoutREADs) {
  const std::string value(100, 'v');
  auto connected = AsyncClient::Connect({server_.endpoint()}, NearOptions());
  ASSERT_TRUE(connected.ok()) << connected.status();
  AsyncClient& client = **connected;
  ASSERT_TRUE(client.Put("key", value, {}, 0).ok());
  std::array<Completion, 32> done;
  while (client.in_flight() > 0) client.Wait(done, kPatient);
  std::array<std::byte, 128> out;
  const auto get = [&] {
    EXPECT_TRUE(client.Get("key", out, 1).ok());
    size_t n = 0;
    while (n == 0) n = client.Poll(done);
    EXPECT_TRUE(done[0].found);
    EXPECT_EQ(std::memcmp(out.data(), value.data(), value.size()), 0);
    return done[0].cost.from_near_cache;
  };
  const auto give_up = Clock::now() + kPatient;
  while (!get() && Clock::now() < give_up) {
  }
  uint64_t answered = 0, all = 0;
  const auto until = Clock::now() + milliseconds(500);
  while (Clock::now() < until) {
    answered += get();
    ++all;
  }
  EXPECT_GT(answered, all / 2);
  auto memory = client.AllocateMemory(128);
  ASSERT_TRUE(memory.ok()) << memory.status();
  const RegisteredSpan span(*memory, 0, 128);
  bool into = false;
  while (!into && Clock::now() < give_up) {
    ASSERT_TRUE(client.GetInto("key", {&span, 1}, 2).ok());
    size_t n = 0;
    while (n == 0) n = client.Poll(done);
    ASSERT_TRUE(done[0].found);
    EXPECT_EQ(done[0].type, OpType::kGetInto);
    EXPECT_EQ(std::memcmp(memory->data(), value.data(), value.size()), 0);
    into = done[0].cost.from_near_cache;
  }
  EXPECT_TRUE(into);
}

// Each of the calls that wait is answered from a copy, and tells what a READ would.
TEST_F(NearCacheServerTest, EachCallThatWaitsIsAnsweredFromACopy) {
  const std::string key = "key of a size", value(100, 'v');
  const auto client = Connect(server_.endpoint(), NearOptions());
  ASSERT_NE(client, nullptr);
  const absl::StatusOr<uint64_t> version = client->Put(key, value, {.flags = 3});
  ASSERT_TRUE(version.ok()) << version.status();
  const auto expect_told = [&](std::string_view bytes, const ItemInfo& info) {
    EXPECT_EQ(bytes, value);
    EXPECT_EQ(info.version, *version);
    EXPECT_EQ(info.flags, 3u);
    EXPECT_EQ(info.value_bytes, value.size());
    EXPECT_EQ(info.expiry_ms, 0u);
  };
  std::array<std::byte, 128> out;
  const std::array<std::function<void()>, 4> calls = {
      [&] {
        const auto got = client->Get(key);
        ASSERT_TRUE(got.ok() && got->has_value()) << got.status();
        expect_told((*got)->data, (*got)->info);
      },
      [&] {
        const auto got = client->GetInto(key, out);
        ASSERT_TRUE(got.ok() && got->has_value()) << got.status();
        expect_told({reinterpret_cast<const char*>(out.data()), value.size()}, **got);
      },
      [&] {
        const auto got = client->GetView(key, expect_told);
        ASSERT_TRUE(got.ok() && *got) << got.status();
      },
      [&] {
        const std::vector<std::string> keys = {"absent", key, "", key};
        const auto got = client->MultiGet(keys);
        ASSERT_EQ(got.size(), keys.size());
        EXPECT_TRUE(got[0].ok() && !got[0]->has_value()) << got[0].status();
        EXPECT_TRUE(absl::IsInvalidArgument(got[2].status())) << got[2].status();
        for (const size_t i : {1, 3}) {
          ASSERT_TRUE(got[i].ok() && got[i]->has_value()) << got[i].status();
          expect_told((*got[i])->data, (*got[i])->info);
        }
      }};
  const auto answers = [&] { return client->Info()[0].near_cache_answers; };
  const auto give_up = Clock::now() + kPatient;
  while (answers() == 0 && Clock::now() < give_up) calls[0]();
  for (const std::function<void()>& call : calls) {
    const uint64_t before = answers();
    while (answers() < before + 20 && Clock::now() < give_up) call();
    EXPECT_GE(answers(), before + 20);
  }
}

}  // namespace
}  // namespace gannet
