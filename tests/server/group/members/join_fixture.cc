#include "tests/server/group/members/join_fixture.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clocks.h"
#include "common/base/server_time.h"
#include "tests/common/rdma/test_device.h"

namespace gannet {
namespace {

constexpr int kTriesMax = 1000;
constexpr uint64_t kPollsMax = 20'000'000;

std::string Key(uint64_t i) { return absl::StrCat("key", i); }

}  // namespace

bool RelayedChanges::Take(const Change& change, ChangePlace*) {
  MutexLock lock(mutex_);
  copies_.push_back({change, std::string(change.key), std::string(change.value)});
  return true;
}

bool RelayedChanges::Pop(const std::function<void(const Change&)>& apply) {
  Copy copy;
  {
    MutexLock lock(mutex_);
    if (copies_.empty()) return false;
    copy = std::move(copies_.front());
    copies_.pop_front();
  }
  copy.change.key = copy.key;
  copy.change.value = copy.value;
  apply(copy.change);
  return true;
}

void RelayedChanges::Begin() {
  MutexLock lock(mutex_);
  copies_.clear();
}

void JoinFixture::TearDown() {
  joiner_.reset();
  ServerTest::TearDown();
}

void JoinFixture::StartPrimary(const std::function<void(Server::Options*)>& change) {
  StartServer(change);
  if (HasFatalFailure()) return;
  server().AddConsumer(&relay_);
}

void JoinFixture::MakeBackup(uint64_t bytes, uint64_t slots, bool grows) {
  joiner_.reset();
  backup_ = std::make_unique<TestStore>(bytes, slots, grows);
  target_.emplace(&**backup_);
}

Joiner::Options JoinFixture::JoinOptions() {
  return {.device = TestDevice(),
          .primary = address(),
          .target = &*target_,
          .server_time = this,
          .clocks = {.wall = MachineWallTime, .boot = [this] { return boot_now(); }},
          .now = boot_now()};
}

void JoinFixture::Join(Joiner::Options options) {
  relay_.Begin();
  auto joiner = Joiner::Begin(std::move(options));
  ASSERT_TRUE(joiner.ok()) << joiner.status();
  joiner_ = *std::move(joiner);
  joiner_->BeginWalk();  // what is decided is published at once
}

void JoinFixture::Put(std::string_view key, std::string_view value, ItemAttributes attributes) {
  Writes::Decided put;
  for (int tries = 0; tries < kTriesMax; ++tries) {
    put = server().writes().Put(key, value, attributes, {}, now().server_time);
    if (put.outcome.status == ReplyStatus::kOk) return;
    server().store().Tidy(now().server_time);
  }
  ADD_FAILURE() << "a put is refused: " << static_cast<int>(put.outcome.status);
}

void JoinFixture::Delete(std::string_view key) {
  server().writes().Delete(key, {}, now().server_time);
}

std::string JoinFixture::RandomValue(std::mt19937_64& random) const {
  const uint64_t kind = random() % 20;
  uint64_t bytes = random() % 100;
  if (kind == 0) bytes = 4200 + random() % (long_bytes_max_ - 4200);
  if (kind == 1) bytes = random() % 5000;
  return std::string(bytes, static_cast<char>('a' + random() % 26));
}

void JoinFixture::ChangeSomething(uint32_t keys, std::mt19937_64& random) {
  const std::string key = Key(random() % keys);
  const ServerTime time = now().server_time;
  const auto flags = static_cast<uint32_t>(random() % 1000);
  switch (random() % 10) {
    case 0:
    case 1:
    case 2:
    case 3:
      return Put(key, RandomValue(random), {.flags = flags});
    case 4:
      return Put(key, RandomValue(random), {flags, Expiry::At(time + 1 + random() % 30)});
    case 5:
    case 6:
    case 7:
      return Delete(key);
    case 8:
      server().writes().Touch(
          key, random() % 2 == 0 ? Expiry() : Expiry::At(time + 1 + random() % 30), {}, time);
      return;
    case 9:
      server().store().Tidy(time);
      server().store().Compact(16);
      server().store().Sweep(time, 16);
      (*backup_)->Sweep(time, 16);
      return;
  }
}

void JoinFixture::ApplySome(uint64_t n) {
  const auto apply = [this](const Change& change) {
    ReplyStatus status = ReplyStatus::kTryAgain;
    for (int tries = 0; tries < kTriesMax && status != ReplyStatus::kOk; ++tries) {
      status = (*backup_)->Apply(change, now().server_time);
      if (status != ReplyStatus::kOk) (*backup_)->Tidy(now().server_time);
    }
    EXPECT_EQ(status, ReplyStatus::kOk);
    const bool deletes = change.kind == Change::Kind::kDelete;
    if (told_ == Told::kNoDeletions && deletes) return;
    if (told_ == Told::kNoExpiring && !change.expiry.never()) return;
    joiner_->OnApplied(change);
  };
  while (n-- > 0 && relay_.Pop(apply)) {
  }
}

Joiner::Step JoinFixture::Finish(const std::function<void()>& between) {
  const int64_t give_up_ns = MonotonicNs() + 10 * kStepNsMax;
  for (uint64_t polls = 0; polls < kPollsMax && MonotonicNs() < give_up_ns; ++polls) {
    between();
    const Joiner::Step step = joiner_->Poll(boot_now());
    if (step != Joiner::Step::kGoesOn) return step;
    Step();
    (*backup_)->Tidy(now().server_time);
  }
  ADD_FAILURE() << "the joiner does not end";
  return Joiner::Step::kGoesOn;
}

void JoinFixture::PassSome(int64_t ns) {
  const int64_t now_ns = MonotonicNs();
  may_pass_ns_ = std::min(may_pass_ns_ + now_ns - looked_ns_, kNsPerSecond);
  looked_ns_ = now_ns;
  if (may_pass_ns_ < ns) return;
  may_pass_ns_ -= ns;
  Advance(ns);
}

JoinFixture::Items JoinFixture::ItemsOf(Store& store) {
  Items items;
  std::vector<std::string> keys;
  uint64_t position = 0;
  do position = store.ListKeys(position, &keys);
  while (position != 0);
  std::string value(1 << 20, '\0');
  for (const std::string& key : keys) {
    const ReadOutcome read =
        store.Get(key, std::as_writable_bytes(std::span(value)), now().server_time);
    if (read.status == ReplyStatus::kNotFound) continue;
    EXPECT_EQ(read.status, ReplyStatus::kOk) << key;
    items[key] = absl::StrCat(read.version, " ", read.attributes.flags, " ",
                              read.attributes.expiry.ms(), " ", value.substr(0, read.value_bytes));
  }
  return items;
}

std::string JoinFixture::Difference() {
  const Items wanted = ItemsOf(server().store());
  Items there = ItemsOf(**backup_);
  for (const auto& [key, item] : wanted) {
    const auto found = there.find(key);
    if (found == there.end()) return absl::StrCat(key, " is missing");
    if (found->second != item) {
      return absl::StrCat(key, " is ", found->second.substr(0, 100), " instead of ",
                          item.substr(0, 100));
    }
    there.erase(found);
  }
  return there.empty() ? "" : absl::StrCat(there.begin()->first, " is there");
}

}  // namespace gannet
