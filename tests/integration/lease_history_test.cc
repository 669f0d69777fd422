// Readers in processes of their own answer GETs of three popular keys from copies, while these are
// written, deleted, evicted and expire, the server is killed, readers stand still, and their clocks
// go wrong. What all saw of each key is one history.

#include <gannet/client.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "softverbs/tests/support/child_process.h"
#include "softverbs/tests/support/sanitizer.h"
#include "softverbs/tests/support/test_seed.h"
#include "tests/client/api/patient_options.h"
#include "tests/linearizability/history_file.h"
#include "tests/linearizability/linearizability.h"
#include "tests/support/server_process.h"

namespace gannet {
namespace {

using linearizability::Kind;
using linearizability::Operation;
using linearizability::Outcome;
using std::chrono::milliseconds;
using std::chrono::seconds;
using test_support::ChildProcess;

constexpr size_t kKeys = 3;
constexpr milliseconds kTtl{300};
// How much later than its time a value may be seen: the server's clock counts in ms.
constexpr milliseconds kTtlSlack{50};
// For a write while the server is killed. Restarting it takes longer than that is left.
constexpr milliseconds kHasty{400};
constexpr int kFillersAtOnce = 250;
constexpr size_t kFillerBytes = 8000;

std::string KeyOf(size_t key) { return absl::StrCat("popular", key); }

uint64_t NumberFrom(const char* variable, uint64_t otherwise) {
  const char* const given = std::getenv(variable);
  return given != nullptr ? std::strtoull(given, nullptr, 10) : otherwise;
}

// Readers of one server, some with clocks that are as wrong as they may be.
class Readers {
 public:
  Readers(const std::string& endpoint, size_t count) {
    constexpr std::array kPpm = {-1800, 1800, 0};
    std::vector<std::string> argv = {test_support::TestProgramPath("lease_reader"), "soft",
                                     endpoint};
    for (size_t key = 0; key < kKeys; ++key) argv.push_back(KeyOf(key));
    for (size_t i = 0; i < count; ++i) {
      ChildProcess::Options options{.argv = argv};
      if (!test_support::kSanitizer) {  // what is preloaded is not instrumented
        options.environment = {
            absl::StrCat("LD_PRELOAD=", test_support::TestProgramPath("other_clock.so")),
            absl::StrCat("GANNET_CLOCK_FAST_PPM=", kPpm[i % kPpm.size()])};
      }
      all_.push_back(std::make_unique<ChildProcess>(options));
    }
  }

  ChildProcess& at(size_t reader) { return *all_[reader % all_.size()]; }

  // Ends them, and adds what they saw.
  void Take(std::array<std::vector<Operation>, kKeys>* histories) {
    for (auto& reader : all_) reader->WriteLine("end");
    uint32_t client = 0;
    for (auto& reader : all_) {
      ++client;
      std::istringstream lines(reader->ReadAll());
      bool ended = false;
      for (std::string word; !ended && lines >> word;) {
        ended = word == "END";
        if (ended) {
          uint64_t answers = 0, over = 0;
          lines >> answers >> over;
          answers_ += answers;
          over_ += over;
          break;
        }
        Operation get{.client = client};
        lines >> get.value >> get.invoke_ns >> get.respond_ns;
        get.found = get.value != 0;
        ++gets_;
        (*histories)[std::stoul(word)].push_back(get);
      }
      EXPECT_TRUE(ended) << reader->Stderr();
    }
  }
  // Of all of them.
  uint64_t gets() const { return gets_; }
  uint64_t answers() const { return answers_; }
  uint64_t over() const { return over_; }

 private:
  std::vector<std::unique_ptr<ChildProcess>> all_;
  uint64_t gets_ = 0, answers_ = 0, over_ = 0;
};

// The only one who writes.
class Writer {
 public:
  explicit Writer(const std::string& endpoint) {
    auto client = Client::Connect({endpoint}, PatientOptions());
    EXPECT_TRUE(client.ok()) << client.status();
    if (client.ok()) client_ = *std::move(client);
  }

  void Put(size_t key, milliseconds ttl = {}, milliseconds deadline = seconds(30)) {
    Operation op{.kind = Kind::kPut, .value = ++values_, .invoke_ns = MonotonicNs()};
    PutOptions options;
    options.ttl = ttl;
    const auto put = client_->Put(KeyOf(key), absl::StrCat(op.value), options, deadline);
    Keep(key, op, put.ok());
    if (ttl == ttl.zero()) return;
    over_.push_back({key, op.value, MonotonicNs() + (ttl + kTtlSlack).count() * kNsPerMs});
  }
  void Delete(size_t key) {
    Operation op{.kind = Kind::kDelete, .invoke_ns = MonotonicNs()};
    const auto deleted = client_->Delete(KeyOf(key));
    if (deleted.ok()) op.found = *deleted;
    Keep(key, op, deleted.ok());
  }
  // A server that begins refuses clients until the leases of the one before are over.
  void AwaitServer() {
    const auto give_up = std::chrono::steady_clock::now() + test_support::kStepTimeout;
    while (!client_->Exists("nothing").ok()) {
      ASSERT_LT(std::chrono::steady_clock::now(), give_up);
    }
  }
  // Has something evicted, once memory is full.
  void Fill() {
    const std::string value(kFillerBytes, 'x');
    for (int i = 0; i < kFillersAtOnce; ++i) {
      const auto put = client_->Put(absl::StrCat("filler", ++fillers_), value);
      EXPECT_TRUE(put.ok()) << put.status();
    }
  }
  bool Evicted() { return !client_->Exists("filler1").value_or(true); }
  // The server was dead at that time, before it began again, and nobody called it meanwhile.
  void EndUnknown(int64_t dead_ns) {
    for (auto& history : histories_) {
      for (Operation& op : history) {
        if (op.outcome == Outcome::kUnknown) op.until_ns = std::min(op.until_ns, dead_ns);
      }
    }
  }

  std::array<std::vector<Operation>, kKeys>& histories() { return histories_; }
  // A value that nobody may see in a GET that begins then, as it has expired.
  struct Over {
    size_t key;
    uint64_t value;
    int64_t at_ns;
  };
  const std::vector<Over>& over() const { return over_; }

 private:
  void Keep(size_t key, Operation op, bool ok) {
    op.respond_ns = MonotonicNs();
    if (!ok) op.outcome = Outcome::kUnknown;
    histories_[key].push_back(op);
  }

  std::unique_ptr<Client> client_;
  std::array<std::vector<Operation>, kKeys> histories_;
  std::vector<Over> over_;
  uint64_t values_ = 0;
  uint64_t fillers_ = 0;
};

class LeaseRun {
 public:
  ~LeaseRun() { std::filesystem::remove(file_); }

  // GANNET_LEASE_SECONDS, GANNET_LEASE_READERS: for how long, and with how many readers.
  void Go() {
    for (size_t key = 0; key < kKeys; ++key) writer_.Put(key);
    for (int i = 0; i < 12; ++i) writer_.Fill();
    const auto end =
        std::chrono::steady_clock::now() + seconds(NumberFrom("GANNET_LEASE_SECONDS", 14));
    for (int round = 1; std::chrono::steady_clock::now() < end; ++round) {
      Sleep(300, 900);
      if (round % 8 == 0) {
        KillAndRestart();
      } else if (round % 2 == 0) {
        StopAReader();
      } else {
        Write();
      }
      writer_.Fill();
    }
    EXPECT_TRUE(writer_.Evicted());
    readers_.Take(&writer_.histories());
  }

  void Check() {
    auto& histories = writer_.histories();
    for (size_t key = 0; key < kKeys; ++key) {
      std::string why;
      EXPECT_TRUE(
          linearizability::Check(histories[key], linearizability::Evictions::kAnyTime, &why))
          << KeyOf(key) << ": " << why;
    }
    for (const Writer::Over& over : writer_.over()) {
      for (const Operation& op : histories[over.key]) {
        EXPECT_FALSE(op.kind == Kind::kGet && op.value == over.value && op.invoke_ns > over.at_ns)
            << "read though it has expired: " << linearizability::ToString(op);
      }
    }
    if (const char* const file = std::getenv("GANNET_HISTORY")) {
      std::ofstream out(file);
      for (size_t key = 0; key < kKeys; ++key)
        linearizability::WriteHistory(KeyOf(key), histories[key], &out);
    }
    std::cout << readers_.gets() << " GETs kept, " << readers_.answers() << " answers from copies, "
              << readers_.over() << " copies whose lease was over, " << kills_ << " kills, "
              << stops_ << " stops" << std::endl;
    EXPECT_GT(readers_.answers(), 0u);
    EXPECT_GT(readers_.over(), 0u);
    EXPECT_GT(kills_, 0);
    EXPECT_GT(stops_, 0);
  }

 private:
  size_t SomeKey() { return random_() % kKeys; }
  void Sleep(int from_ms, int to_ms) {
    std::this_thread::sleep_for(
        milliseconds(std::uniform_int_distribution(from_ms, to_ms)(random_)));
  }

  void Write() {
    const size_t key = SomeKey();
    switch (random_() % 4) {
      case 0:
        writer_.Delete(key);
        return writer_.Put(key);
      case 1:
        writer_.Put(key, kTtl);
        Sleep(250, 350);
        return writer_.Put(key);
      default:
        return writer_.Put(key);
    }
  }

  // For 0.01 to 5 s, and each length up to ten times another one is as likely. A key is written
  // meanwhile, so the reader has a copy that is out of date when it goes on.
  void StopAReader() {
    ChildProcess& reader = readers_.at(random_());
    const double longest_ms = random_() % 4 == 0 ? 5000 : 500;
    const double ms = 10 * std::pow(longest_ms / 10, random_() % 1000 / 1000.0);
    reader.Stop();
    ++stops_;
    const auto end = std::chrono::steady_clock::now() + milliseconds(static_cast<int>(ms));
    for (size_t key = 0; key < kKeys; ++key) {
      if (random_() % 2 == 0) writer_.Put(key);
    }
    std::this_thread::sleep_until(end);
    reader.Signal(SIGCONT);
  }

  // While a write is under way, which waits for the end of a lease.
  void KillAndRestart() {
    std::thread write([this, key = SomeKey()] { writer_.Put(key, {}, kHasty); });
    Sleep(0, 25);
    server_.Kill();
    const int64_t dead_ns = MonotonicNs();
    write.join();
    writer_.EndUnknown(dead_ns);
    server_.Restart();
    writer_.AwaitServer();
    ++kills_;
    for (size_t key = 0; key < kKeys; ++key) writer_.Put(key);
  }

  std::mt19937_64 random_{test_support::TestSeed()};
  const std::string file_ = absl::StrCat("/dev/shm/gannet-lease-history-test-", getpid());
  ServerProcess server_{{"--memory=32M", "--on_full=evict", "--item_lease_ms=20",
                         absl::StrCat("--memory_file=", file_)}};
  Writer writer_{server_.endpoint()};
  Readers readers_{server_.endpoint(), NumberFrom("GANNET_LEASE_READERS", 3)};
  int kills_ = 0;
  int stops_ = 0;
};

TEST(LeaseHistoryTest, AnswersFromCopiesAreOfOneHistory) {
  LeaseRun run;
  run.Go();
  run.Check();
}

}  // namespace
}  // namespace gannet
