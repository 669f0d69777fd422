// A client of a group for takeover.py: GETs, PUTs and INCRs, one after the other in a thread each.
// It checks what they answer, and keeps the longest wait of each. Commands come as lines:
//
//   answers N   prints "ok" once each thread had N answers more
//   gaps        prints the longest waits in ms since the last time: {"get": 1.5, "put": ...,
//   "incr": ...} end         stops, checks each key, prints a line of JSON with all counts, and
//   exits

#include <gannet/client.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "gflags/gflags.h"
#include "nlohmann/json.hpp"

DEFINE_string(server, "", "the group: cluster:HOST:PORT,...");
DEFINE_string(device, "soft", "RDMA device");
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
      ++(operation(*client_) ? answers_ : unanswered_);
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

// One thread PUTs growing numbers, another one GETs them.
class Checks {
 public:
  bool Put(Client& client) {
    const uint64_t number = ++puts_;
    const uint64_t key = number % kKeys;
    sent_[key] = number;
    if (!client.Put(KeyOf(key), absl::StrCat(number)).ok()) return false;
    acknowledged_[key] = number;
    return true;
  }

  bool Get(Client& client) {
    const uint64_t key = ++gets_ * 7 % kKeys;
    const uint64_t least = acknowledged_[key];
    const auto got = client.Get(KeyOf(key));
    if (!got.ok()) return false;
    uint64_t number = 0;
    if (got->has_value() && !absl::SimpleAtoi((*got)->data, &number)) ++wrong_;
    if (number < least) ++lost_;
    if (number > sent_[key]) ++wrong_;
    return true;
  }

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

  // Of all keys, when the threads have ended.
  void CheckAll(Client& client) {
    for (uint64_t key = 0; key < kKeys; ++key) {
      const auto got = client.Get(KeyOf(key));
      uint64_t number = 0;
      if (!got.ok() || (got->has_value() && !absl::SimpleAtoi((*got)->data, &number))) ++wrong_;
      if (number < acknowledged_[key]) ++lost_;
      if (number > sent_[key]) ++wrong_;
    }
  }

  uint64_t lost() const { return lost_; }
  uint64_t twice() const { return twice_; }
  uint64_t wrong() const { return wrong_; }

 private:
  std::array<std::atomic<uint64_t>, kKeys> sent_{};
  std::array<std::atomic<uint64_t>, kKeys> acknowledged_{};
  uint64_t puts_ = 0;
  uint64_t gets_ = 0;
  int64_t counter_ = 0;
  int64_t unsure_ = 0;
  std::atomic<uint64_t> lost_{0};
  std::atomic<uint64_t> twice_{0};
  std::atomic<uint64_t> wrong_{0};
};

int Run() {
  Options options;
  options.device = FLAGS_device;
  options.deadline = std::chrono::seconds(kDeadlineS);
  Checks checks;
  Repeater get(options, [&](Client& client) { return checks.Get(client); });
  Repeater put(options, [&](Client& client) { return checks.Put(client); });
  Repeater incr(options, [&](Client& client) { return checks.Increment(client); });
  const std::array<Repeater*, 3> all = {&get, &put, &incr};
  std::string command;
  while (std::cin >> command && command != "end") {
    if (command == "answers") {
      uint64_t wanted = 0;
      std::cin >> wanted;
      std::array<uint64_t, 3> until;
      for (size_t i = 0; i < all.size(); ++i) until[i] = all[i]->answers() + wanted;
      for (size_t i = 0; i < all.size(); ++i) {
        while (all[i]->answers() < until[i]) {
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
      }
      std::cout << "ok" << std::endl;
    } else if (command == "gaps") {
      std::cout << nlohmann::json{{"get", get.TakeGapMs()},
                                  {"put", put.TakeGapMs()},
                                  {"incr", incr.TakeGapMs()}}
                << std::endl;
    }
  }
  for (Repeater* one : all) one->Stop();
  checks.CheckAll(get.client());
  std::cout
      << nlohmann::json{{"gets", get.answers()},
                        {"puts", put.answers()},
                        {"incrs", incr.answers()},
                        {"unanswered", get.unanswered() + put.unanswered() + incr.unanswered()},
                        {"lost", checks.lost()},
                        {"twice", checks.twice()},
                        {"wrong", checks.wrong()}}
      << std::endl;
  return checks.lost() + checks.twice() + checks.wrong() == 0 ? 0 : 1;
}

}  // namespace
}  // namespace gannet

int main(int argc, char** argv) {
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  return gannet::Run();
}
