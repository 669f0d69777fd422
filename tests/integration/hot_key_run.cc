#include "tests/integration/hot_key_run.h"

#include <gannet/client.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/hash.h"
#include "tests/common/rdma/test_device.h"
#include "tests/linearizability/linearizability.h"
#include "tests/support/test_seed.h"

namespace gannet {
namespace {

using linearizability::Kind;
using linearizability::Operation;
using linearizability::Outcome;
using std::chrono::milliseconds;

constexpr char kCounter[] = "counter";
constexpr size_t kBytesMax = 4 << 20;

const std::vector<std::string> kHotKeys = {"small", "medium", "large"};

// A value names the write that it is from, and every byte of it can be checked.
std::string ValueOf(uint64_t id, size_t size) {
  std::string value(size, '\0');
  for (size_t i = 0; i < size; i += kIdBytes) {
    const uint64_t word = i == 0 ? id : Mix64(id + i);
    std::memcpy(value.data() + i, &word, std::min(kIdBytes, size - i));
  }
  return value;
}

size_t SizeFor(const std::string& key, size_t size_min, std::mt19937_64& random) {
  if (key == "small") return size_min + random() % 100;
  if (key == "medium") return size_min + random() % (20 << 10);
  if (random() % 8 != 0) return size_min + random() % 4096;
  return random() % 8 == 0 ? kBytesMax : 1 << 20;
}

// What one client did with one key, and how it is passed to the checker.
struct Seen {
  Operation operation;
  uint64_t version = 0;  // that the server named, of what was written or read; 0 = none
  size_t value_bytes = 0;
};
using SeenByKey = std::map<std::string, std::vector<Seen>>;

class HotKeyClient {
 public:
  struct Options : HotKeyOptions {
    std::string endpoint;
    uint32_t number = 0;
    uint64_t seed = 0;
    // Counts what the client did and what it logged (the loss of a connection, its return).
    std::atomic<uint64_t>* steps = nullptr;
    std::atomic<uint64_t>* lines = nullptr;
  };

  explicit HotKeyClient(const Options& options)
      : options_(options), random_(options.seed + options.number) {}

  void Run() {
    gannet::Options client_options{.connect_timeout = milliseconds(30'000),
                                   .deadline = milliseconds(30'000)};
    // Every other client looks up each key in the index every time.
    client_options.location_cache_bytes = options_.number % 2 == 0 ? 0 : 1 << 16;
    client_options.log = [this](LogLevel, std::string_view) { CountUp(options_.lines); };
    auto client = Client::Connect({options_.endpoint}, client_options);
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = std::move(*client);
    // Every third client has values land in memory of its own.
    if (options_.number % 3 == 1) {
      auto memory = client_->AllocateMemory(kBytesMax);
      ASSERT_TRUE(memory.ok()) << memory.status();
      memory_ = *std::move(memory);
    }
    for (int i = 0; i < options_.operations / TestSlowness(); ++i) {
      Step();
      CountUp(options_.steps);
    }
  }

  const SeenByKey& seen() const { return seen_; }
  int64_t counted() const { return counted_; }
  int64_t uncertain() const { return uncertain_; }

 private:
  // A READ is much shorter than a write's round trip, so only many READs meet a half-done write.
  static constexpr int kReadsInARow = 20;

  struct Known {
    uint64_t version = 0;
    uint64_t id = linearizability::kAbsent;
  };

  static void CountUp(std::atomic<uint64_t>* counter) {
    counter->fetch_add(1);
    counter->notify_all();
  }

  void Step() {
    const std::string& key = kHotKeys[random_() % kHotKeys.size()];
    switch (random_() % 10) {
      case 0:
        return Delete(key);
      case 1:
        return Put(key, Kind::kReplace);
      case 2:
        return Put(key, Kind::kPut);
      case 3:
      case 4:
        return Put(key, Kind::kCompareAndSet);
      case 5:
        return Count();
      default:
        for (int i = 0; i < kReadsInARow; ++i) Get(key);
    }
  }

  std::optional<milliseconds> Deadline() {
    if (!options_.hasty || random_() % 4 != 0) return std::nullopt;
    return milliseconds(random_() % 2);
  }

  Operation Begin(Kind kind) {
    Operation op;
    op.client = options_.number;
    op.kind = kind;
    op.invoke_ns = MonotonicNs();
    return op;
  }

  void Get(const std::string& key) {
    Operation op = Begin(Kind::kGet);
    const auto value = GetSomehow(key);
    op.respond_ns = MonotonicNs();
    if (!value.ok()) return ExpectHasty(value.status());
    if (!value->has_value()) {
      known_[key] = {};
      return Record(key, {op});
    }
    op.found = true;
    const std::string& data = (*value)->data;
    if (data.size() >= kIdBytes) {
      std::memcpy(&op.value, data.data(), kIdBytes);
      EXPECT_EQ(data, ValueOf(op.value, data.size())) << "a torn value of " << key;
    }
    known_[key] = {(*value)->info.version, op.value};
    Record(key, {op, (*value)->info.version, data.size()});
  }

  absl::StatusOr<std::optional<Value>> GetSomehow(const std::string& key) {
    if (memory_.size() == 0) return client_->Get(key, Deadline());
    const auto info = client_->GetInto(key, memory_, Deadline());
    if (!info.ok()) return info.status();
    if (!info->has_value()) return std::nullopt;
    return Value{{reinterpret_cast<const char*>(memory_.data()), (*info)->value_bytes}, **info};
  }

  // The counter has a key of its own. Its numbers must grow, and in the end show each increment
  // once.
  void Count() {
    const auto number = client_->Incr(kCounter, 1, {}, Deadline());
    if (!MayHaveHappened(number.status())) return;
    ++(number.ok() ? counted_ : uncertain_);
    if (!number.ok()) return;
    EXPECT_GT(*number, last_number_);
    last_number_ = *number;
  }

  void Put(const std::string& key, Kind kind) {
    const bool compare = kind == Kind::kCompareAndSet;
    Operation op = Begin(kind);
    op.value = (static_cast<uint64_t>(options_.number) + 1) << 32 | ++writes_;
    const std::string value = ValueOf(op.value, SizeFor(key, options_.value_bytes_min, random_));
    PutOptions put;
    const Known known = known_[key];
    if (compare) {
      op.expected = known.id;
      if (known.version == 0) {
        put.only_if_absent = true;
      } else if (known.id == linearizability::kAbsent) {
        return;  // read, but too short to say what it was
      } else {
        put.only_if_version = known.version;
      }
    }
    put.only_if_present = kind == Kind::kReplace;
    op.invoke_ns = MonotonicNs();
    const auto version = client_->Put(key, value, put, Deadline());
    op.respond_ns = MonotonicNs();
    const bool conditional = compare || kind == Kind::kReplace;
    if (conditional &&
        (absl::IsFailedPrecondition(version.status()) || absl::IsAlreadyExists(version.status()) ||
         absl::IsNotFound(version.status()))) {
      op.outcome = Outcome::kRefused;
      known_.erase(key);
      return Record(key, {op});
    }
    if (!MayHaveHappened(version.status())) return;
    if (version.ok()) {
      known_[key] = {*version, op.value};
      return Record(key, {op, *version, value.size()});
    }
    op.outcome = Outcome::kUnknown;
    Record(key, {op, 0, value.size()});
  }

  void Delete(const std::string& key) {
    Operation op = Begin(Kind::kDelete);
    const auto found = client_->Delete(key, {}, Deadline());
    op.respond_ns = MonotonicNs();
    if (!MayHaveHappened(found.status())) return;
    op.found = found.ok() && *found;
    if (!found.ok()) op.outcome = Outcome::kUnknown;
    known_.erase(key);
    Record(key, {op});
  }

  // Returns whether a write with this status may have been applied.
  bool MayHaveHappened(const absl::Status& status) {
    if (status.ok()) return true;
    // The index is nearly full on purpose.
    if (absl::IsResourceExhausted(status)) return false;
    ExpectHasty(status);
    return !absl::IsUnavailable(status);
  }

  void ExpectHasty(const absl::Status& status) { EXPECT_TRUE(options_.hasty) << status; }

  void Record(const std::string& key, Seen seen) { seen_[key].push_back(std::move(seen)); }

  const Options options_;
  std::mt19937_64 random_;
  std::unique_ptr<Client> client_;
  RegisteredMemory memory_;
  uint32_t writes_ = 0;
  int64_t counted_ = 0;
  int64_t uncertain_ = 0;
  int64_t last_number_ = 0;
  std::map<std::string, Known> known_;
  SeenByKey seen_;
};

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

  // Inserts keys, so that the index grows again and again.
  void Grow(const std::atomic<bool>& stop) {
    while (!stop.load(std::memory_order_relaxed)) EXPECT_TRUE(Put());
  }

  void Run(const std::atomic<bool>& stop) {
    while (!stop.load(std::memory_order_relaxed)) {
      DeleteOne();
      Put();
    }
  }

 private:
  static constexpr int kRoom = 12;

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
        server_(grows_ ? std::vector<std::string>{"--memory=256M", "--index_slots=64"}
                       : std::vector<std::string>{"--memory=256M", "--index_slots=512",
                                                  "--index_grows=false"}) {
    options.endpoint = server_.endpoint();
    options.seed = test_support::TestSeed();
    options.steps = &steps_;
    options.lines = &lines_;
    churn_.emplace(options.endpoint, options.seed);
    if (!grows_) churn_->Fill();
    for (options.number = 0; options.number < options.clients; ++options.number) {
      clients_.push_back(std::make_unique<HotKeyClient>(options));
    }
  }

  // Returns when all clients have done their operations.
  void Run() {
    std::atomic<bool> stop{false};
    std::thread churner([&] { grows_ ? churn_->Grow(stop) : churn_->Run(stop); });
    std::vector<std::thread> threads;
    for (const auto& client : clients_) threads.emplace_back([&client] { client->Run(); });
    for (std::thread& thread : threads) thread.join();
    stop.store(true, std::memory_order_relaxed);
    churner.join();
    grows_ ? ExpectGrowth() : ExpectMoves();
    for (const std::string& key : kHotKeys) CheckHistory(key);
    CheckCounter();
  }

  ServerProcess& server() { return server_; }
  const std::atomic<uint64_t>& steps() const { return steps_; }
  const std::atomic<uint64_t>& lines() const { return lines_; }

 private:
  absl::StatusOr<ServerStats> Stats() {
    auto client = Client::Connect({server_.endpoint()});
    if (!client.ok()) return client.status();
    return (*client)->Stats().front().stats;
  }

  void ExpectGrowth() {
    const auto stats = Stats();
    ASSERT_TRUE(stats.ok()) << stats.status();
    std::cout << "the index grew " << stats->index_growths << " times, to " << stats->slots_total
              << " slots" << std::endl;
    // Some seven times here; in a guest, where fewer operations are done, two.
    EXPECT_GE(stats->index_growths, 1u);
  }

  void ExpectMoves() {
    const auto stats = Stats();
    ASSERT_TRUE(stats.ok()) << stats.status();
    std::cout << "displacements " << stats->displacements << ", in the stash " << stats->stash_used
              << ", rpcs " << stats->rpcs << std::endl;
    EXPECT_GT(stats->displacements, 0u) << "nothing was moved: the test shows less";
  }

  void CheckCounter() {
    int64_t counted = 0;
    int64_t uncertain = 0;
    for (const auto& client : clients_) {
      counted += client->counted();
      uncertain += client->uncertain();
    }
    auto client = Client::Connect({server_.endpoint()});
    ASSERT_TRUE(client.ok()) << client.status();
    const auto number = (*client)->Incr(kCounter, 0);
    ASSERT_TRUE(number.ok()) << number.status();
    std::cout << "counter " << *number << ", " << uncertain << " unknown" << std::endl;
    EXPECT_GE(*number, counted);
    EXPECT_LE(*number, counted + uncertain);
  }

  void CheckHistory(const std::string& key) {
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
    EXPECT_FALSE(history.empty());
    std::string why;
    EXPECT_TRUE(linearizability::Check(history, &why)) << key << ": " << why;
  }

  const bool grows_;
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
ServerProcess& HotKeyRun::server() { return state_->server(); }
const std::atomic<uint64_t>& HotKeyRun::steps() const { return state_->steps(); }
const std::atomic<uint64_t>& HotKeyRun::lines() const { return state_->lines(); }

// Waits until the counter is at least `value`.
void WaitFor(const std::atomic<uint64_t>& counter, uint64_t value) {
  for (uint64_t now = counter.load(); now < value; now = counter.load()) counter.wait(now);
}

}  // namespace gannet
