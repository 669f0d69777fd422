// A client of a group for takeover.py and tests: GETs, PUTs and INCRs, one after the other in a
// thread each. It checks what they answer, and keeps the longest wait of each. Commands come as
// lines:
//
//   answers N   prints "ok" once each thread had N answers more
//   counts      prints how many answers each thread had
//   gaps        prints the longest waits in ms since the last time: {"get": 1.5, "put": ...,
//   "incr": ...} end         stops, checks each key, prints a line of JSON with all counts, and
//   exits

#include <fcntl.h>
#include <gannet/client.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/clock.h"
#include "gflags/gflags.h"
#include "nlohmann/json.hpp"

DEFINE_string(server, "", "the group: cluster:HOST:PORT,...");
DEFINE_string(device, "soft", "RDMA device");
DEFINE_string(operations, "get,put,incr", "what threads do, one each");
DEFINE_string(
    numbers, "",
    "a file in which clients tell each other what was PUT, so that each checks its GETs by it. "
    "Without it, a client that does not PUT only checks that no value goes back");
DEFINE_bool(verbose, false, "print what the clients log");
DEFINE_int64(pause_us, 0, "of each thread after each answer");

namespace gannet {
namespace {

constexpr int kKeys = 1000;
constexpr int kDeadlineS = 30;  // so that an operation waits for the takeover
constexpr char kCounter[] = "counter";

std::string KeyOf(uint64_t i) { return absl::StrCat("key", i); }

// A thread that repeats an operation.
class Repeater {
 public:
  // `operation` returns whether it was answered.
  Repeater(const Options& options, std::function<bool(Client&)> operation) {
    auto client = Client::Connect({FLAGS_server}, options);
    if (!client.ok()) {
      std::cerr << client.status() << std::endl;
      std::exit(1);
    }
    client_ = *std::move(client);
    thread_ = std::thread([this, operation] { Run(operation); });
  }
  ~Repeater() { Stop(); }

  void Stop() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  uint64_t answers() const { return answers_; }
  uint64_t unanswered() const { return unanswered_; }
  double TakeGapMs() { return static_cast<double>(longest_ns_.exchange(0)) / 1e6; }
  Client& client() { return *client_; }

 private:
  void Run(const std::function<bool(Client&)>& operation) {
    while (!stop_) {
      const int64_t begin = MonotonicNs();
      const bool answered = operation(*client_);
      ++(answered ? answers_ : unanswered_);
      // A group that is unreachable fails calls at once.
      if (!answered) std::this_thread::sleep_for(std::chrono::milliseconds(10));
      const int64_t took = MonotonicNs() - begin;
      // Only this thread makes it longer.
      if (took > longest_ns_) longest_ns_ = took;
      if (FLAGS_pause_us > 0) {
        std::this_thread::sleep_for(std::chrono::microseconds(FLAGS_pause_us));
      }
    }
  }

  std::unique_ptr<Client> client_;
  std::atomic<uint64_t> answers_{0};
  std::atomic<uint64_t> unanswered_{0};
  std::atomic<int64_t> longest_ns_{0};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// What was PUT so far. Clients may share it, in one of which a thread PUTs.
struct Numbers {
  std::array<std::atomic<uint64_t>, kKeys> sent;
  std::array<std::atomic<uint64_t>, kKeys> acknowledged;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);

// Returns numbers that all processes with this file share, or those of this process alone.
Numbers* MapNumbers(const std::string& path) {
  int fd = -1;
  if (!path.empty()) {
    fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(Numbers)) != 0) return nullptr;
  }
  const int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  void* const at = mmap(nullptr, sizeof(Numbers), PROT_READ | PROT_WRITE, flags, fd, 0);
  if (fd >= 0) close(fd);
  return at == MAP_FAILED ? nullptr : static_cast<Numbers*>(at);
}

// One thread PUTs growing numbers, others GET them.
class Checks {
 public:
  // `knows_puts`: all that was PUT is in `numbers`.
  Checks(Numbers* numbers, bool knows_puts) : numbers_(numbers), knows_puts_(knows_puts) {}

  bool Put(Client& client) {
    const uint64_t number = ++puts_;
    const uint64_t key = number % kKeys;
    numbers_->sent[key] = number;
    if (!client.Put(KeyOf(key), absl::StrCat(number)).ok()) return false;
    numbers_->acknowledged[key] = number;
    return true;
  }

  bool Get(Client& client) { return GetKey(client, ++gets_ * 7 % kKeys); }

  // Only this thread counts, so a number is the last one plus 1, plus 1 for each INCR without an
  // answer that was applied.
  bool Increment(Client& client) {
    const auto now = client.Incr(kCounter);
    if (!now.ok()) {
      ++unsure_;
      return false;
    }
    if (*now <= counter_) ++lost_;
    if (*now > counter_ + 1 + unsure_) ++twice_;
    counter_ = *now;
    unsure_ = 0;
    return true;
  }

  // When the threads have ended.
  void CheckAllKeys(Client& client) {
    for (uint64_t key = 0; key < kKeys; ++key) {
      if (!GetKey(client, key)) ++wrong_;
    }
  }

  uint64_t lost() const { return lost_; }
  uint64_t twice() const { return twice_; }
  uint64_t wrong() const { return wrong_; }

 private:
  bool GetKey(Client& client, uint64_t key) {
    const uint64_t least = std::max<uint64_t>(numbers_->acknowledged[key], seen_[key]);
    const auto got = client.Get(KeyOf(key));
    if (!got.ok()) return false;
    uint64_t number = 0;
    if (got->has_value() && !absl::SimpleAtoi((*got)->data, &number)) ++wrong_;
    if (number < least) ++lost_;
    if (knows_puts_ && number > numbers_->sent[key]) ++wrong_;
    seen_[key] = number;
    return true;
  }

  Numbers* const numbers_;
  const bool knows_puts_;
  std::array<uint64_t, kKeys> seen_{};  // of the thread that GETs, and of the end
  uint64_t puts_ = 0;
  uint64_t gets_ = 0;
  int64_t counter_ = 0;
  int64_t unsure_ = 0;
  std::atomic<uint64_t> lost_{0};
  std::atomic<uint64_t> twice_{0};
  std::atomic<uint64_t> wrong_{0};
};

using Threads = std::map<std::string, std::unique_ptr<Repeater>>;  // by their operations

void AwaitAnswers(const Threads& threads, uint64_t wanted) {
  std::map<std::string, uint64_t> until;
  for (const auto& [name, one] : threads) until[name] = one->answers() + wanted;
  for (const auto& [name, one] : threads) {
    while (one->answers() < until[name]) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

nlohmann::json TakeGaps(const Threads& threads) {
  nlohmann::json gaps;
  for (const auto& [name, one] : threads) gaps[name] = one->TakeGapMs();
  return gaps;
}

int Run() {
  Options options;
  options.device = FLAGS_device;
  options.deadline = std::chrono::seconds(kDeadlineS);
  if (FLAGS_verbose) {
    options.log = [](LogLevel, std::string_view line) {
      std::cerr << absl::StrCat(MonotonicNs() / kNsPerMs, " ", std::string(line), "\n");
    };
  }
  Numbers* const numbers = MapNumbers(FLAGS_numbers);
  if (numbers == nullptr) {
    std::cerr << FLAGS_numbers << ": " << std::strerror(errno) << std::endl;
    return 1;
  }
  Checks checks(numbers, !FLAGS_numbers.empty() || absl::StrContains(FLAGS_operations, "put"));
  const std::map<std::string, std::function<bool(Client&)>> known = {
      {"get", [&](Client& client) { return checks.Get(client); }},
      {"put", [&](Client& client) { return checks.Put(client); }},
      {"incr", [&](Client& client) { return checks.Increment(client); }}};
  Threads threads;
  for (const std::string& name : std::vector<std::string>(absl::StrSplit(FLAGS_operations, ','))) {
    threads[name] = std::make_unique<Repeater>(options, known.at(name));
  }
  std::string command;
  while (std::cin >> command && command != "end") {
    if (command == "answers") {
      uint64_t wanted = 0;
      std::cin >> wanted;
      AwaitAnswers(threads, wanted);
      std::cout << "ok" << std::endl;
    } else if (command == "counts") {
      nlohmann::json counts;
      for (const auto& [name, one] : threads) counts[name] = one->answers();
      std::cout << counts << std::endl;
    } else if (command == "gaps") {
      std::cout << TakeGaps(threads) << std::endl;
    }
  }
  nlohmann::json report;
  uint64_t unanswered = 0;
  uint64_t disbelieved = 0;
  for (const auto& [name, one] : threads) {
    one->Stop();
    report[name + "s"] = one->answers();
    unanswered += one->unanswered();
    disbelieved += one->client().Info()[0].reads_disbelieved;
  }
  checks.CheckAllKeys(threads.begin()->second->client());
  report.update({{"unanswered", unanswered},
                 {"reads_disbelieved", disbelieved},
                 {"lost", checks.lost()},
                 {"twice", checks.twice()},
                 {"wrong", checks.wrong()}});
  std::cout << report << std::endl;
  return checks.lost() + checks.twice() + checks.wrong() == 0 ? 0 : 1;
}

}  // namespace
}  // namespace gannet

int main(int argc, char** argv) {
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  return gannet::Run();
}
