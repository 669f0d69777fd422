#include "tests/integration/hot_key_client.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/hash.h"
#include "tests/common/rdma/test_device.h"

namespace gannet {
namespace {

using linearizability::Kind;
using linearizability::Operation;
using linearizability::Outcome;
using std::chrono::milliseconds;

constexpr size_t kBytesMax = 4 << 20;
// A READ is much shorter than a write's round trip, so only many READs meet a half-done write.
constexpr int kReadsInARow = 20;

// With a server that evicts: so many keys of each size, of which so many are hot for so many steps
// of all clients.
constexpr int kKeysOfEachSize = 24;
constexpr uint64_t kKeysAtOnce = 6;
constexpr uint64_t kStepsAtOnce = 100;
constexpr size_t kEvictedBytesMax = 512 << 10;

// A value names the write that it is from, and every byte of it can be checked.
std::string ValueOf(uint64_t id, size_t size) {
  std::string value(size, '\0');
  for (size_t i = 0; i < size; i += kIdBytes) {
    const uint64_t word = i == 0 ? id : Mix64(id + i);
    std::memcpy(value.data() + i, &word, std::min(kIdBytes, size - i));
  }
  return value;
}

void CountUp(std::atomic<uint64_t>* counter) {
  counter->fetch_add(1);
  counter->notify_all();
}

}  // namespace

// The letter that a key begins with tells the size of its values.
std::vector<std::string> HotKeys(const HotKeyOptions& options) {
  if (!options.evicts) return {"small", "medium", "large"};
  std::vector<std::string> keys;
  for (int i = 0; i < kKeysOfEachSize; ++i) {
    for (const char* size : {"small", "medium", "large"}) keys.push_back(absl::StrCat(size, i));
  }
  return keys;
}

void HotKeyClient::Run() {
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
  for (int i = 0; GoesOn(i); ++i) {
    Step();
    CountUp(options_.steps);
  }
}

bool HotKeyClient::GoesOn(int done) const {
  if (options_.until != nullptr) return !options_.until->load(std::memory_order_relaxed);
  return done < options_.operations / TestSlowness();
}

void HotKeyClient::Step() {
  const std::string& key = ChooseKey();
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
      if (!options_.evicts) return Count();
      [[fallthrough]];
    default:
      for (int i = 0; i < kReadsInARow; ++i) Get(key);
  }
}

// If keys were always hot, they would not be evicted. The hot ones are others from time to time,
// and any client may choose any key at any time.
const std::string& HotKeyClient::ChooseKey() {
  if (!options_.evicts || random_() % 4 == 0) return keys_[random_() % keys_.size()];
  const uint64_t first = options_.steps->load() / kStepsAtOnce * kKeysAtOnce;
  return keys_[(first + random_() % kKeysAtOnce) % keys_.size()];
}

size_t HotKeyClient::ChooseSize(const std::string& key) {
  const size_t size_min = options_.value_bytes_min;
  if (key[0] == 's') return size_min + random_() % 100;
  if (key[0] == 'm') return size_min + random_() % (20 << 10);
  if (options_.evicts) return size_min + random_() % kEvictedBytesMax;
  if (random_() % 8 != 0) return size_min + random_() % 4096;
  return random_() % 8 == 0 ? kBytesMax : 1 << 20;
}

std::optional<milliseconds> HotKeyClient::Deadline() {
  if (!options_.hasty || random_() % 4 != 0) return std::nullopt;
  return milliseconds(random_() % 2);
}

Operation HotKeyClient::Begin(Kind kind) const {
  Operation op;
  op.client = options_.number;
  op.kind = kind;
  op.invoke_ns = MonotonicNs();
  return op;
}

void HotKeyClient::Get(const std::string& key) {
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

absl::StatusOr<std::optional<Value>> HotKeyClient::GetSomehow(const std::string& key) {
  if (memory_.size() == 0) return client_->Get(key, Deadline());
  const auto info = client_->GetInto(key, memory_, Deadline());
  if (!info.ok()) return info.status();
  if (!info->has_value()) return std::nullopt;
  return Value{{reinterpret_cast<const char*>(memory_.data()), (*info)->value_bytes}, **info};
}

// The counter has a key of its own. Its numbers must grow, and in the end show each increment
// once.
void HotKeyClient::Count() {
  const auto number = client_->Incr(kCounter, 1, {}, Deadline());
  if (!MayHaveHappened(number.status())) return;
  ++(number.ok() ? counted_ : uncertain_);
  if (!number.ok()) return;
  EXPECT_GT(*number, last_number_);
  last_number_ = *number;
}

void HotKeyClient::Put(const std::string& key, Kind kind) {
  const bool compare = kind == Kind::kCompareAndSet;
  Operation op = Begin(kind);
  op.value = (static_cast<uint64_t>(options_.number) + 1) << 32 | ++writes_;
  const std::string value = ValueOf(op.value, ChooseSize(key));
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

void HotKeyClient::Delete(const std::string& key) {
  Operation op = Begin(Kind::kDelete);
  const auto found = client_->Delete(key, {}, Deadline());
  op.respond_ns = MonotonicNs();
  if (!MayHaveHappened(found.status())) return;
  op.found = found.ok() && *found;
  if (!found.ok()) op.outcome = Outcome::kUnknown;
  known_.erase(key);
  Record(key, {op});
}

bool HotKeyClient::MayHaveHappened(const absl::Status& status) const {
  if (status.ok()) return true;
  // The index is nearly full on purpose. A store that evicts counts it as a refusal.
  if (absl::IsResourceExhausted(status)) return false;
  ExpectHasty(status);
  return !absl::IsUnavailable(status);
}

void HotKeyClient::ExpectHasty(const absl::Status& status) const {
  EXPECT_TRUE(options_.hasty) << status;
}

}  // namespace gannet
