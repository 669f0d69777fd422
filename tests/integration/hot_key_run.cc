#include "tests/integration/hot_key_run.h"

#include <gannet/client.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "softverbs/tests/support/test_seed.h"
#include "tests/client/api/patient_options.h"
#include "tests/common/rdma/test_device.h"
#include "tests/integration/hot_key_client.h"
#include "tests/linearizability/linearizability.h"

namespace gannet {
namespace {

using linearizability::Evictions;
using linearizability::Kind;
using linearizability::Operation;
using linearizability::Outcome;
using std::chrono::milliseconds;

constexpr char kEvictingMemory[] = "8M";
constexpr uint64_t kFirstSlots = 64;          // of an index that grows
constexpr size_t kFillerBytesMax = 16 << 10;  // in a store that evicts

// Inserts and deletes other keys in a nearly full index, so that the hot keys move between buckets
// and to and from the stash.
class Churn {
 public:
  Churn(const std::string& endpoint, uint64_t seed) : random_(seed) {
    auto client = Client::Connect(
        {endpoint}, {.connect_timeout = milliseconds(30'000), .deadline = milliseconds(30'000)});
    GANNET_CHECK(client.ok(), "no connection for the churn");
    client_ = std::move(*client);
  }

  // Fills the index, except for a little room for the hot keys.
  void Fill() {
    EXPECT_TRUE(client_->Put(kCounter, "0").ok());
    while (Put()) {
    }
    for (int i = 0; i < kRoom; ++i) DeleteOne();
  }

  // Fills the first index to two thirds, so that it grows soon even where inserts are slow.
  void BeginToGrow() {
    for (uint64_t i = 0; i < kFirstSlots * 2 / 3; ++i) EXPECT_TRUE(Put());
  }

  // Fills the memory until something is evicted.
  void BeginToCrowd() {
    constexpr int kPutsBetweenLooks = 64;
    for (;;) {
      for (int i = 0; i < kPutsBetweenLooks; ++i) PutOfSomeSize();
      const auto stats = client_->Stats().front().stats;
      ASSERT_TRUE(stats.ok()) << stats.status();
      if (stats->items_evicted + stats->items_on_disk > 0) return;
    }
  }

  // Inserts keys, so that the index grows again and again.
  void Grow(const std::atomic<bool>& stop) {
    while (!stop.load(std::memory_order_relaxed)) EXPECT_TRUE(Put());
  }

  // Inserts keys of many sizes into a store that evicts, so that others have to go.
  void Crowd(const std::atomic<bool>& stop) {
    while (!stop.load(std::memory_order_relaxed)) PutOfSomeSize();
  }

  void Run(const std::atomic<bool>& stop) {
    while (!stop.load(std::memory_order_relaxed)) {
      DeleteOne();
      Put();
    }
  }

 private:
  static constexpr int kRoom = 12;

  void PutOfSomeSize() {
    const std::string value(random_() % kFillerBytesMax, 'f');
    const auto version = client_->Put(absl::StrCat("filler ", next_++), value);
    EXPECT_TRUE(version.ok()) << version.status();
  }

  // Returns false if the index is full.
  bool Put() {
    const std::string key = "filler " + std::to_string(next_++);
    const auto version = client_->Put(key, "filler");
    EXPECT_TRUE(version.ok() || absl::IsResourceExhausted(version.status())) << version.status();
    if (version.ok()) keys_.push_back(key);
    return version.ok();
  }

  void DeleteOne() {
    std::swap(keys_[random_() % keys_.size()], keys_.back());
    const auto found = client_->Delete(keys_.back());
    EXPECT_TRUE(found.ok() && *found) << found.status();
    keys_.pop_back();
  }

  std::mt19937_64 random_;
  std::unique_ptr<Client> client_;
  std::vector<std::string> keys_;
  uint64_t next_ = 0;
};

// If a value is too short to contain its writer's id, its version identifies it.
std::vector<Operation> HistoryOf(const std::vector<Seen>& seen) {
  std::map<uint64_t, const Seen*> writes;
  for (const Seen& s : seen) {
    if (s.operation.kind == Kind::kGet || s.version == 0) continue;
    EXPECT_TRUE(writes.emplace(s.version, &s).second) << "version given twice: " << s.version;
  }
  std::vector<Operation> history;
  for (const Seen& s : seen) {
    history.push_back(s.operation);
    if (s.operation.kind != Kind::kGet || !s.operation.found) continue;
    const auto write = writes.find(s.version);
    if (write == writes.end()) {
      EXPECT_GE(s.value_bytes, kIdBytes) << "a version that nobody wrote: " << s.version;
      continue;
    }
    EXPECT_EQ(s.value_bytes, write->second->value_bytes) << linearizability::ToString(s.operation);
    if (s.value_bytes >= kIdBytes) {
      EXPECT_EQ(s.operation.value, write->second->operation.value) << "version of another value";
    }
    history.back().value = write->second->operation.value;
  }
  return history;
}

}  // namespace

class HotKeyRun::State {
 public:
  explicit State(HotKeyClient::Options options)
      : grows_(options.index_grows),
        evicts_(options.evicts),
        tier_(!options.tier.empty()),
        server_(ServerFlags(options)) {
    options.endpoint = server_.endpoint();
    options.seed = test_support::TestSeed();
    options.steps = &steps_;
    options.lines = &lines_;
    churn_.emplace(options.endpoint, options.seed);
    evicts_ ? churn_->BeginToCrowd() : grows_ ? churn_->BeginToGrow() : churn_->Fill();
    for (options.number = 0; options.number < options.clients; ++options.number) {
      clients_.push_back(std::make_unique<HotKeyClient>(options));
    }
  }

  // Returns when all clients have done their operations.
  void Run() {
    std::atomic<bool> stop{false};
    std::thread churner([&] {
      evicts_ ? churn_->Crowd(stop) : grows_ ? churn_->Grow(stop) : churn_->Run(stop);
    });
    std::vector<std::thread> threads;
    for (const auto& client : clients_) threads.emplace_back([&client] { client->Run(); });
    for (std::thread& thread : threads) thread.join();
    stop.store(true, std::memory_order_relaxed);
    churner.join();
    evicts_ ? ExpectEvictions() : grows_ ? ExpectGrowth() : ExpectMoves();
    if (!evicts_) CheckCounter();
    int evicted = 0;
    for (const std::string& key : HotKeys(clients_.front()->options())) {
      evicted += CheckHistory(key);
    }
    if (!evicts_ || tier_) return;
    std::cout << evicted << " hot keys were certainly evicted" << std::endl;
    // Where operations are slow, there are too few of them for that.
    if (TestSlowness() > 1) return;
    EXPECT_GT(evicted, 0) << "no history needs an eviction: the test shows less";
  }

  std::chrono::nanoseconds Slowest() const {
    int64_t slowest_ns = 0;
    for (const auto& client : clients_) {
      for (const auto& [key, all] : client->seen()) {
        for (const Seen& seen : all) {
          slowest_ns = std::max(slowest_ns, seen.operation.respond_ns - seen.operation.invoke_ns);
        }
      }
    }
    return std::chrono::nanoseconds(slowest_ns);
  }
  ServerProcess& server() { return server_; }
  const std::atomic<uint64_t>& steps() const { return steps_; }
  const std::atomic<uint64_t>& lines() const { return lines_; }

 private:
  static std::vector<std::string> ServerFlags(const HotKeyOptions& options) {
    std::vector<std::string> flags = {"--memory=256M", "--index_slots=512", "--index_grows=false"};
    if (options.index_grows) {
      flags = {"--memory=256M", absl::StrCat("--index_slots=", kFirstSlots)};
    } else if (options.evicts) {
      flags = {absl::StrCat("--memory=", kEvictingMemory), "--on_full=evict"};
      if (!options.tier.empty()) {
        flags.insert(flags.end(), {absl::StrCat("--tier=", options.tier), "--tier_bytes=1G"});
      }
    }
    flags.insert(flags.end(), options.server_flags.begin(), options.server_flags.end());
    return flags;
  }

  absl::StatusOr<ServerStats> Stats() {
    auto client = Client::Connect({server_.endpoint()}, PatientOptions());
    if (!client.ok()) return client.status();
    return (*client)->Stats().front().stats;
  }

  void ExpectGrowth() {
    const auto stats = Stats();
    ASSERT_TRUE(stats.ok()) << stats.status();
    std::cout << "the index grew " << stats->index_growths << " times, to " << stats->slots_total
              << " slots" << std::endl;
    // Some seven times here; in a guest, where fewer operations are done, once or twice.
    EXPECT_GE(stats->index_growths, 1u);
  }

  void ExpectMoves() {
    const auto stats = Stats();
    ASSERT_TRUE(stats.ok()) << stats.status();
    std::cout << "displacements " << stats->displacements << ", in the stash " << stats->stash_used
              << ", rpcs " << stats->rpcs << std::endl;
    EXPECT_GT(stats->displacements, 0u) << "nothing was moved: the test shows less";
  }

  // A write into a store that evicts is refused only if its value alone does not fit.
  void ExpectEvictions() {
    const auto stats = Stats();
    ASSERT_TRUE(stats.ok()) << stats.status();
    std::cout << stats->items_evicted << " items were evicted, " << stats->evicted_by_writes
              << " of them by writes" << std::endl;
    if (tier_) {
      std::cout << stats->tier_written << " values were written to the disk, which was read "
                << stats->tier_reads << " times" << std::endl;
      EXPECT_GT(stats->tier_reads, 0u) << "nobody asked for what is there: the test shows less";
      EXPECT_EQ(stats->tier_reads_failed, 0u);
    } else {
      EXPECT_GT(stats->items_evicted, 0u);
    }
    EXPECT_EQ(stats->refused_heap_full, 0u);
    EXPECT_EQ(stats->refused_index_full, 0u);
  }

  void CheckCounter() {
    int64_t counted = 0;
    int64_t uncertain = 0;
    for (const auto& client : clients_) {
      counted += client->counted();
      uncertain += client->uncertain();
    }
    auto client = Client::Connect({server_.endpoint()}, PatientOptions());
    ASSERT_TRUE(client.ok()) << client.status();
    const auto number = (*client)->Incr(kCounter, 0);
    ASSERT_TRUE(number.ok()) << number.status();
    std::cout << "counter " << *number << ", " << uncertain << " unknown" << std::endl;
    EXPECT_GE(*number, counted);
    EXPECT_LE(*number, counted + uncertain);
  }

  // Returns whether only an eviction explains what was seen.
  bool CheckHistory(const std::string& key) {
    std::vector<Seen> all;
    for (const auto& client : clients_) {
      const auto seen = client->seen().find(key);
      if (seen == client->seen().end()) continue;
      all.insert(all.end(), seen->second.begin(), seen->second.end());
    }
    const std::vector<Operation> history = HistoryOf(all);
    const size_t unknown = std::ranges::count(history, Outcome::kUnknown, &Operation::outcome);
    std::cout << key << ": " << history.size() << " operations, " << unknown << " unknown"
              << std::endl;
    EXPECT_FALSE(history.empty() && !evicts_);
    std::string why;
    if (linearizability::Check(history, &why)) return false;
    const bool explained = evicts_ && linearizability::Check(history, Evictions::kAnyTime, &why);
    EXPECT_TRUE(explained) << key << ": " << why;
    return explained;
  }

  const bool grows_;
  const bool evicts_;
  const bool tier_;
  ServerProcess server_;
  std::atomic<uint64_t> steps_{0};
  std::atomic<uint64_t> lines_{0};
  std::optional<Churn> churn_;
  std::vector<std::unique_ptr<HotKeyClient>> clients_;
};

HotKeyRun::HotKeyRun(const HotKeyOptions& options)
    : state_(std::make_unique<State>(HotKeyClient::Options{options})) {}
HotKeyRun::~HotKeyRun() = default;
void HotKeyRun::Run() { state_->Run(); }
std::chrono::nanoseconds HotKeyRun::Slowest() const { return state_->Slowest(); }
ServerProcess& HotKeyRun::server() { return state_->server(); }
const std::atomic<uint64_t>& HotKeyRun::steps() const { return state_->steps(); }
const std::atomic<uint64_t>& HotKeyRun::lines() const { return state_->lines(); }

// Waits until the counter is at least `value`.
void WaitFor(const std::atomic<uint64_t>& counter, uint64_t value) {
  for (uint64_t now = counter.load(); now < value; now = counter.load()) counter.wait(now);
}

}  // namespace gannet
