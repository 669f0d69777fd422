#include "tests/integration/group_observer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/clock.h"
#include "common/base/clocks.h"

namespace gannet {

namespace {

constexpr size_t kLogLines = 100;
// A client whose group is unreachable fails at once. One that called again at once would take the
// cores from the servers that it waits for.
constexpr std::chrono::milliseconds kPauseAfterError{10};

std::chrono::microseconds PauseAfterAnswers() {
  const char* const given = std::getenv("GANNET_GROUP_PAUSE_US");
  return std::chrono::microseconds(given != nullptr ? std::atoi(given) : 0);
}

}  // namespace

using linearizability::Kind;
using linearizability::Operation;
using linearizability::Outcome;

std::string GroupObserver::Key(int i) { return absl::StrCat("key", i); }

GroupObserver::GroupObserver(const std::string& endpoint, uint32_t number, Work work, uint64_t seed)
    : number_(number), work_(work), pause_(PauseAfterAnswers()), random_(seed + number) {
  Options options;
  options.log = [this](LogLevel, std::string_view line) {
    MutexLock lock(mutex_);
    log_.push_back(absl::StrCat(MachineWallTime().ms() % 1'000'000, " ", std::string(line)));
    if (log_.size() > kLogLines) log_.pop_front();
  };
  auto client = Client::Connect({endpoint}, options);
  EXPECT_TRUE(client.ok()) << client.status();
  if (!client.ok()) return;
  client_ = *std::move(client);
  thread_ = std::thread([this] {
    while (!stop_.load(std::memory_order_relaxed)) Step();
  });
}

std::string GroupObserver::Log() {
  MutexLock lock(mutex_);
  return absl::StrJoin(log_, "\n");
}

void GroupObserver::Stop() {
  stop_.store(true, std::memory_order_relaxed);
  if (thread_.joinable()) thread_.join();
}

void GroupObserver::Step() {
  ++operations_;
  const bool all = work_ == Work::kAll;
  if (all && random_() % 8 == 0) return Increment();
  const int key = static_cast<int>(random_() % kKeys);
  const uint64_t what = all ? random_() % 8 : 0;
  Operation op{.client = number_, .invoke_ns = MonotonicNs()};
  absl::Status status;
  if (what < 4) {
    status = Get(key, &op);
  } else if (what < 7) {
    op.kind = Kind::kPut;
    op.value = uint64_t{number_ + 1} << 40 | ++values_;
    status = client_->Put(Key(key), absl::StrCat(op.value), {}, kDeadline).status();
  } else {
    op.kind = Kind::kDelete;
    const auto deleted = client_->Delete(Key(key), {}, kDeadline);
    if (deleted.ok()) op.found = *deleted;
    status = deleted.status();
  }
  op.respond_ns = MonotonicNs();
  int64_t& longest = op.kind == Kind::kGet ? longest_get_ns_ : longest_write_ns_;
  longest = std::max(longest, op.respond_ns - op.invoke_ns);
  if (status.ok()) {
    answers_.fetch_add(1, std::memory_order_relaxed);
  } else {
    op.outcome = Outcome::kUnknown;
    ++unknown_;
    last_error_ = status;
    std::this_thread::sleep_for(kPauseAfterError);
  }
  if (status.ok() || op.kind != Kind::kGet) Keep(key, op);
  if (pause_.count() > 0) std::this_thread::sleep_for(pause_);
}

absl::Status GroupObserver::Get(int key, Operation* op) {
  const auto got = client_->Get(Key(key), kDeadline);
  if (!got.ok()) return got.status();
  op->found = got->has_value();
  if (op->found) {
    EXPECT_TRUE(absl::SimpleAtoi((*got)->data, &op->value)) << (*got)->data;
  }
  return absl::OkStatus();
}

// Each value is written once. So of the GETs in a row that found the same value, the first and the
// last say all.
void GroupObserver::Keep(int key, const Operation& op) {
  std::vector<Operation>& seen = seen_[key];
  const auto same = [&op](const Operation& it) {
    return it.kind == Kind::kGet && it.found && it.value == op.value;
  };
  const bool repeats = op.kind == Kind::kGet && op.found && seen.size() >= 2 && same(seen.back()) &&
                       same(seen[seen.size() - 2]);
  if (repeats) {
    seen.back() = op;
  } else {
    seen.push_back(op);
  }
}

// What this client reads must grow, as nobody counts down.
void GroupObserver::Increment() {
  const auto now = client_->Incr(kCounter, 1, {}, kDeadline);
  if (!now.ok()) {
    ++increments_unknown_;
    last_error_ = now.status();
    std::this_thread::sleep_for(kPauseAfterError);
    return;
  }
  EXPECT_GT(*now, counter_);
  counter_ = *now;
  ++incremented_;
}

}  // namespace gannet
