// What a GET costs its client. These tests check verbs. The ctest entries get_instructions_* check
// instructions, by running these tests under tools/figures/instructions.

#include <gannet/async_client.h>
#include <gannet/client.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <string>
#include <vector>

#include "tests/client/api/async_run.h"
#include "tests/client/api/patient_options.h"
#include "tests/support/server_process.h"

namespace gannet {

constexpr uint32_t kDepthMax = 128;
using GetBuffers = std::array<std::array<std::byte, 64>, kDepthMax>;

// The measured part: asks for all keys at once, and Polls until all are answered. The first Poll
// posts, and each further one takes one round trip's READs. Returns how many were answered, which
// is all of them unless the device was held up.
__attribute__((noinline)) size_t GetAll(AsyncClient& client, std::span<const std::string> keys,
                                        GetBuffers& out, int polls, std::span<Completion> done) {
  for (size_t i = 0; i < keys.size(); ++i) static_cast<void>(client.Get(keys[i], out[i], i));
  size_t n = 0;
  for (int i = 0; i < polls && n < keys.size(); ++i) n += client.Poll(done.subspan(n));
  return n;
}

// The same into registered memory. Each large item takes two round trips, so there is one Poll
// more.
__attribute__((noinline)) size_t GetAllInto(AsyncClient& client, std::span<const std::string> keys,
                                            std::span<const RegisteredSpan> into,
                                            std::span<Completion> done) {
  for (size_t i = 0; i < keys.size(); ++i) {
    static_cast<void>(client.GetInto(keys[i], into.subspan(i, 1), i));
  }
  size_t n = 0;
  for (int i = 0; i < 3 && n < keys.size(); ++i) n += client.Poll(done.subspan(n));
  return n;
}

// The same by a client whose calls wait, one after the other.
__attribute__((noinline)) size_t GetEach(Client& client, const std::string& key, size_t gets,
                                         std::span<std::byte> out) {
  size_t found = 0;
  for (size_t i = 0; i < gets; ++i) found += client.GetInto(key, out)->has_value();
  return found;
}

namespace {

constexpr uint32_t kGets = 2048;
constexpr uint32_t kLargeKeys = 256;  // whose heads a client remembers
constexpr uint32_t kLargeBytes = 4096;
constexpr uint64_t kSmallCacheBytes = 16 << 10;  // 1,024 locations

struct Totals {
  uint32_t found = 0;
  uint32_t from_cached_location = 0;
  uint32_t reads = 0;
  uint32_t posts = 0;
  uint32_t completions = 0;

  void Add(std::span<const Completion> gets) {
    for (const Completion& get : gets) {
      if (get.code != absl::StatusCode::kOk) ADD_FAILURE() << "code " << get.code;
      found += get.found;
      from_cached_location += get.cost.from_cached_location;
      reads += get.cost.reads;
      posts += get.cost.posts;
      completions += get.cost.completions;
    }
  }
};

// 16 bytes each.
std::vector<std::string> Keys(const std::string& prefix, uint32_t n) {
  std::vector<std::string> keys;
  for (uint32_t i = 0; i < n; ++i) {
    const std::string digits = std::to_string(i);
    keys.push_back(prefix + std::string(16 - prefix.size() - digits.size(), '0') + digits);
  }
  return keys;
}

class GetCostTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = new ServerProcess; }
  static void TearDownTestSuite() { delete server_; }

  void Connect(uint64_t location_cache_bytes) {
    Options options = PatientOptions();
    options.deadline = kHang;  // valgrind is slow
    options.location_cache_bytes = location_cache_bytes;
    auto client = AsyncClient::Connect({server_->endpoint()}, options);
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }
  void Load(const std::vector<std::string>& keys) {
    for (const std::string& key : keys) {
      ASSERT_EQ(RunPut(*client_, key, std::string(64, 'v')).code, absl::StatusCode::kOk);
    }
  }
  void Warm(const std::vector<std::string>& keys) {
    for (int round = 0; round < 8; ++round) {
      for (size_t i = 0; i < keys.size();) {
        for (; i < keys.size() && client_->Get(keys[i], {}, i).ok(); ++i) {
        }
        PollUntil(*client_, client_->in_flight());
      }
    }
  }
  Totals Measure(const std::vector<std::string>& keys, uint32_t depth, int round_trips) {
    Totals totals;
    for (size_t first = 0; first < keys.size(); first += depth) {
      std::array<Completion, kDepthMax> done;
      const auto room = std::span(done).first(depth);
      size_t n =
          GetAll(*client_, std::span(keys).subspan(first, depth), out_, 1 + round_trips, room);
      while (n < depth) n += client_->Poll(room.subspan(n));
      totals.Add(room);
    }
    return totals;
  }
  // Begins a GET for each one that is answered. At first half of them are one READ behind the
  // others.
  Totals MeasureKeptInFlight(const std::vector<std::string>& keys, uint32_t depth) {
    Totals totals;
    size_t begun = 0, over = 0;
    const auto begin = [&](uint32_t in_flight) {
      for (; begun < keys.size() && begun - over < in_flight; ++begun) {
        ASSERT_TRUE(client_->Get(keys[begun], {}, begun).ok());
      }
    };
    begin(depth / 2);
    while (over < keys.size()) {
      std::array<Completion, kDepthMax> done;
      const size_t n = client_->Poll(done);
      totals.Add(std::span(done).first(n));
      over += n;
      begin(depth);
    }
    return totals;
  }

  Totals MeasureInto(std::span<const std::string> keys, std::span<const RegisteredSpan> into) {
    Totals totals;
    for (size_t begun = 0; begun < kGets; begun += into.size()) {
      std::array<Completion, kDepthMax> done;
      const auto room = std::span(done).first(into.size());
      size_t n = GetAllInto(*client_, keys.subspan(begun % keys.size(), into.size()), into, room);
      while (n < room.size()) n += client_->Poll(room.subspan(n));
      totals.Add(room);
    }
    return totals;
  }

  // Expects `chain` READs per doorbell and 32 READs per completion, but for GETs that take one READ
  // more. The device may be held up for any time, which parts a chain. So this measures again if
  // there are more, as nobody holds it up each time. Returns what was measured last.
  template <class Measure>
  static Totals MeasureChains(uint32_t chain, const Measure& measure) {
    constexpr uint32_t kFew = kGets / 128;
    Totals totals;
    for (int tries = 0; tries < 8; ++tries) {
      totals = measure();
      const uint32_t posts = totals.reads / chain;
      const uint32_t completions = posts * std::max(chain / 32, 1u);
      if (chain == 1 ||
          (totals.posts <= posts + kFew && totals.completions <= completions + kFew)) {
        return totals;
      }
    }
    ADD_FAILURE() << totals.reads << " READs took " << totals.posts << " doorbells and "
                  << totals.completions << " completions, each time more than one for " << chain;
    return totals;
  }

  void RunWarm(uint32_t depth) {
    Connect(4 << 20);
    const std::vector<std::string> keys = Keys("warm", kGets);
    Load(keys);  // whose replies tell the locations
    const Totals totals = MeasureChains(depth, [&] { return Measure(keys, depth, 1); });
    EXPECT_EQ(totals.found, kGets);
    EXPECT_EQ(totals.from_cached_location, kGets);
    EXPECT_EQ(totals.reads, kGets);
  }
  // As in a long run, the cache is full of keys that are more popular than those measured.
  void RunCold(uint32_t depth) {
    const std::vector<std::string> keys = Keys("cold", kGets);
    Connect(0);
    Load(keys);
    const std::vector<std::string> popular = Keys("popular", kSmallCacheBytes / 16);
    const Totals totals = MeasureChains(depth, [&] {
      Connect(kSmallCacheBytes);
      Load(popular);
      Warm(popular);
      return Measure(keys, depth, 2);
    });
    EXPECT_EQ(totals.found, kGets);
    EXPECT_LE(totals.from_cached_location, kGets / 100);
    EXPECT_LE(totals.reads, 2 * kGets + kGets / 50);
  }
  void RunColdKeptInFlight(uint32_t depth, uint32_t chain) {
    const std::vector<std::string> keys = Keys("kept", kGets);
    Connect(0);
    Load(keys);
    const Totals totals = MeasureChains(chain, [&] { return MeasureKeptInFlight(keys, depth); });
    EXPECT_EQ(totals.found, kGets);
  }
  // GETs of large values whose heads the client knows.
  void RunInto(uint32_t depth) {
    Connect(4 << 20);
    const std::vector<std::string> keys = Keys("large", kLargeKeys);
    for (const std::string& key : keys) {
      ASSERT_EQ(RunPut(*client_, key, std::string(kLargeBytes, 'v')).code, absl::StatusCode::kOk);
    }
    const auto memory = client_->AllocateMemory(uint64_t{depth} * kLargeBytes);
    ASSERT_TRUE(memory.ok()) << memory.status();
    std::vector<RegisteredSpan> into;
    for (uint32_t i = 0; i < depth; ++i) into.emplace_back(*memory, i * kLargeBytes, kLargeBytes);
    for (const std::string& key : keys) {
      EXPECT_TRUE(RunOne(*client_, [&] { return client_->GetInto(key, {&into[0], 1}, 1); }).found);
    }
    const Totals totals = MeasureChains(depth, [&] { return MeasureInto(keys, into); });
    EXPECT_EQ(totals.found, kGets);
    EXPECT_EQ(totals.from_cached_location, kGets);
    EXPECT_EQ(totals.reads, 2 * kGets) << "value and commit word";
  }
  void RunMisses(uint32_t depth) {
    Connect(kSmallCacheBytes);
    const Totals totals = Measure(Keys("none", kGets), depth, 1);
    EXPECT_EQ(totals.found, 0u);
    EXPECT_EQ(totals.from_cached_location, 0u);
  }

  static ServerProcess* server_;
  std::unique_ptr<AsyncClient> client_;
  GetBuffers out_;
};
ServerProcess* GetCostTest::server_ = nullptr;

// GETs of a key that is leased, and that the client has a copy of.
class NearGetCostTest : public ::testing::Test {
 protected:
  void Run(uint32_t depth) {
    auto connected = AsyncClient::Connect({server_.endpoint()}, NearOptions());
    ASSERT_TRUE(connected.ok()) << connected.status();
    AsyncClient& client = **connected;
    const std::vector<std::string> keys(depth, Keys("near", 1)[0]);
    ASSERT_EQ(RunPut(client, keys[0], std::string(64, 'v')).code, absl::StatusCode::kOk);
    const auto give_up = std::chrono::steady_clock::now() + kHang;
    const auto is_near = [&] {
      return RunOne(client, [&] { return client.Get(keys[0], out_[0], 1); }).cost.from_near_cache;
    };
    while (!is_near() && std::chrono::steady_clock::now() < give_up) {
    }
    uint32_t near_gets = 0;
    for (uint32_t begun = 0; begun < kGets; begun += depth) {
      std::array<Completion, kDepthMax> done;
      const auto room = std::span(done).first(depth);
      size_t n = GetAll(client, keys, out_, 2, room);
      while (n < depth) n += client.Poll(room.subspan(n));
      for (const Completion& get : room) near_gets += get.cost.from_near_cache;
    }
    // Who holds up the server for longer than a lease has others READ.
    EXPECT_GE(near_gets, kGets / 2);
  }

  static Options NearOptions() {
    Options options = PatientOptions();
    options.deadline = kHang;
    options.near_cache_bytes = 1 << 20;
    return options;
  }

  ServerProcess server_{{"--item_lease_ms=100"}};
  GetBuffers out_;
};

TEST_F(NearGetCostTest, OneAtATime) { Run(1); }
TEST_F(NearGetCostTest, ThirtyTwoAtOnce) { Run(32); }
TEST_F(NearGetCostTest, BySync) {
  auto connected = Client::Connect({server_.endpoint()}, NearOptions());
  ASSERT_TRUE(connected.ok()) << connected.status();
  Client& client = **connected;
  const std::string key = Keys("near", 1)[0];
  ASSERT_TRUE(client.Put(key, std::string(64, 'v')).ok());
  const auto answers = [&] { return client.Info()[0].near_cache_answers; };
  const auto give_up = std::chrono::steady_clock::now() + kHang;
  while (answers() < 8 && std::chrono::steady_clock::now() < give_up) {
    ASSERT_TRUE(client.GetInto(key, out_[0]).ok());
  }
  const uint64_t before = answers();
  EXPECT_EQ(GetEach(client, key, kGets, out_[0]), kGets);
  EXPECT_GE(answers() - before, kGets / 2);
}

TEST_F(GetCostTest, WarmOneAtATime) { RunWarm(1); }
TEST_F(GetCostTest, WarmThirtyTwoAtOnce) { RunWarm(32); }
TEST_F(GetCostTest, ColdOneAtATime) { RunCold(1); }
TEST_F(GetCostTest, ColdThirtyTwoAtOnce) { RunCold(32); }
TEST_F(GetCostTest, MissesThirtyTwoAtOnce) { RunMisses(32); }
TEST_F(GetCostTest, IntoRegisteredMemorySixteenAtOnce) { RunInto(16); }
// At depths where work requests must be shared, and beyond.
TEST_F(GetCostTest, WarmSixteenAtOnce) { RunWarm(16); }
TEST_F(GetCostTest, ColdSixteenAtOnce) { RunCold(16); }
TEST_F(GetCostTest, WarmAHundredAndTwentyEightAtOnce) { RunWarm(128); }
TEST_F(GetCostTest, ColdAHundredAndTwentyEightAtOnce) { RunCold(128); }
// Halves that are large enough for their own doorbell and completion may stay apart.
TEST_F(GetCostTest, ColdSixteenKeptInFlight) { RunColdKeptInFlight(16, 16); }
TEST_F(GetCostTest, ColdThirtyTwoKeptInFlight) { RunColdKeptInFlight(32, 32); }
TEST_F(GetCostTest, ColdAHundredAndTwentyEightKeptInFlight) { RunColdKeptInFlight(128, 64); }

}  // namespace
}  // namespace gannet
