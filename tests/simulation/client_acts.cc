// SimulatedClient: the operations that it begins.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/api/change_requests.h"
#include "client/api/make_requests.h"
#include "tests/simulation/simulated_client.h"

namespace gannet::simulation {
namespace {

using linearizability::Kind;

// Values up to this length always fit a message.
constexpr int64_t kSmallBytes = 1000;
// A client that has a near cache asks for one key up to so often, some times at once.
constexpr int64_t kHotGetsMax = 400;
constexpr uint64_t kHotGetsAtOnce = 8;

}  // namespace

void SimulatedClient::Act(bool patient) {
  if (!HasStarted()) return;
  if (puts_hot_) PutHot();
  if (options_.near_cache_bytes > 0 && ActOnHotKey(patient)) return;
  for (uint64_t n = 1 + run_->Below(options_.depth); n > 0; --n) {
    if (!BeginOne(patient)) return;
  }
}

// Now and then it does something else in between.
bool SimulatedClient::ActOnHotKey(bool patient) {
  if (hot_gets_left_ == 0) {
    if (!run_->OneIn(2)) return false;
    hot_gets_left_ = static_cast<uint64_t>(run_->LogUniform(kHotGetsAtOnce, kHotGetsMax));
    hot_key_ = static_cast<uint32_t>(run_->Below(run_->OneIn(2) ? kKeysMax : options_.keys));
  }
  if (run_->OneIn(16)) return false;
  timeout_ns_ = Timeout(patient);
  const uint64_t at_once = std::min<uint64_t>(options_.depth, kHotGetsAtOnce);
  for (uint64_t n = std::min(at_once, hot_gets_left_); n > 0; --n, --hot_gets_left_) {
    if (options_.hot_key && pending_count_ + 1 >= options_.depth) break;  // room for a PUT
    if (!BeginGet(options_.hot_key.value_or(hot_key_), false)) break;
  }
  return true;
}

void SimulatedClient::PutHot() {
  timeout_ns_ = Timeout(true);
  puts_hot_ = !BeginPut(*options_.hot_key);
}

bool SimulatedClient::BeginOne(bool patient) {
  timeout_ns_ = Timeout(patient);
  const uint32_t key =
      static_cast<uint32_t>(run_->Below(run_->OneIn(2) ? kKeysMax : options_.keys));
  if (key == options_.hot_key) return BeginGet(key, false);
  if (run_->Below(100) < options_.locks_percent) return BeginLockOp(key);
  switch (run_->Below(16)) {
    case 0:
      return options_.tallies && !run_->OneIn(4) ? BeginTally() : BeginOther();
    case 1:
      return run_->OneIn(4) ? BeginMultiDelete() : BeginDelete(key);
    case 2:
    case 3:
      return BeginMultiGet();
    case 4:
    case 5:
    case 6:
    case 7:
    case 8:
      return BeginPut(key);
    case 9:
      return run_->OneIn(4) ? BeginMultiExists() : BeginHeadRead(key);
    default:
      return BeginGet(key, false);
  }
}

int64_t SimulatedClient::Timeout(bool patient) {
  if (patient || run_->Below(100) >= options_.hasty_percent) {
    return (2'000 + static_cast<int64_t>(run_->Below(3'000))) * kNsPerMs;
  }
  return run_->LogUniform(1, 200 * kNsPerMs);
}

uint32_t SimulatedClient::ValueBytes() {
  if (run_->OneIn(16)) return 0;
  if (!run_->OneIn(4)) return static_cast<uint32_t>(run_->LogUniform(1, kSmallBytes));
  return static_cast<uint32_t>(run_->LogUniform(1, options_.value_bytes_max));
}

bool SimulatedClient::Begin(Pending p, absl::StatusOr<OpRequest> request) {
  const auto free = std::find_if(pending_.begin(), pending_.end(),
                                 [](const Pending& other) { return !other.used; });
  if (free == pending_.end()) {
    WatchRoom(false);
    return false;
  }
  if (!request.ok()) {
    run_->Fail(Check::kAnswers, std::string(request.status().message()));
    return false;
  }
  if (InHistory(p) && !history_->Begin(p.key, Writes(p.type))) return true;
  p.out = std::move(free->out);
  *free = std::move(p);
  Pending& pending = *free;
  request->timeout_ns = timeout_ns_;
  request->user_data = static_cast<uint64_t>(free - pending_.begin());
  request->out = pending.out;
  if (IsWrite(request->type)) request->value = pending.value;
  pending.timeout_ns = timeout_ns_;
  pending.connects = ready() ? connects_ : 0;
  pending.begun_ns = run_->now_ns();
  pending.operation.client = number();
  pending.operation.invoke_ns = run_->Tick();
  if (AnswerNear(static_cast<size_t>(free - pending_.begin()), request->key)) return true;
  const bool began = engine_->Begin(*request) != kInvalidOp;
  WatchRoom(began);
  if (!began) {
    if (InHistory(pending)) history_->End(pending.key, Writes(pending.type));
    return false;
  }
  run_->Note(absl::StrCat("client ", number(), " begins ", static_cast<int>(pending.type),
                          " of key ", pending.key, " write ", pending.operation.value, " of ",
                          pending.value.size(), " bytes, if ", pending.operation.expected, ", ",
                          pending.timeout_ns, " ns, lives ", pending.ttl_ms, " ms"));
  pending.used = true;
  ++pending_count_;
  return true;
}

// Half of the clients ask as those whose calls wait: before there is an operation.
bool SimulatedClient::AnswerNear(size_t i, std::string_view key) {
  Pending& p = pending_[i];
  if (options_.near_cache_bytes == 0 || number() % 2 == 0) return false;
  if (p.type != OpType::kGet || p.in_batch) return false;
  const int64_t now_ns = run_->now_ns();
  const ItemCopies::Copy* const copy = engine_->FindNear(key, now_ns);
  if (copy == nullptr) return false;
  p.used = true;
  ++pending_count_;
  CountGet({.from_near_cache = true});
  Finish(i, {.outcome = Outcome::kOk,
             .found = true,
             .info = engine_->servers()[0].MakeItemInfo(copy->header, now_ns),
             .value = copy->value,
             .whole = true});
  return true;
}

bool SimulatedClient::BeginGet(uint32_t key, bool share) {
  auto request = KeyRequest(OpType::kGet, KeyName(key));
  if (request.ok()) request->share_window = share;
  Pending p{.type = OpType::kGet, .key = key};
  p.operation.kind = Kind::kGet;
  return Begin(std::move(p), std::move(request));
}

bool SimulatedClient::BeginMultiGet() {
  for (uint32_t key = static_cast<uint32_t>(run_->Below(2)); key < options_.keys; key += 2) {
    if (!BeginGet(key, true)) return false;
  }
  return true;
}

// Exists, or GetIfChanged with the version that the client knows. Both tell which item is there.
bool SimulatedClient::BeginHeadRead(uint32_t key) {
  Pending p{.type = OpType::kExists, .key = key};
  p.operation.kind = Kind::kGet;
  const auto known = known_.find(key);
  if (known == known_.end() || run_->OneIn(2)) {
    return Begin(std::move(p), KeyRequest(OpType::kExists, KeyName(key)));
  }
  p.type = OpType::kGetIfChanged;
  p.known_version = known->second.version;
  return Begin(std::move(p), IfChangedRequest(KeyName(key), known->second.version));
}

bool SimulatedClient::BeginMultiExists() {
  for (uint32_t key = static_cast<uint32_t>(run_->Below(2)); key < options_.keys; key += 2) {
    if (!BeginHeadRead(key)) return false;
  }
  return true;
}

bool SimulatedClient::BeginMultiDelete() {
  for (uint32_t key = static_cast<uint32_t>(run_->Below(4)); key < options_.keys; key += 4) {
    if (!BeginDelete(key)) return false;
  }
  return true;
}

SimulatedClient::Pending SimulatedClient::Write(Kind kind, OpType type, uint32_t key) {
  Pending p{.type = type, .key = key, .number = ++writes_};
  p.operation.kind = kind;
  return p;
}

bool SimulatedClient::BeginPut(uint32_t key) {
  Pending p = Write(Kind::kPut, OpType::kPut, key);
  PutOptions put;
  Lock lock{.key = KeyName(key)};
  const auto held = held_.find(key);
  const auto known = known_.find(key);
  if (held != held_.end() && known != known_.end()) {
    lock.word = held->second.word;
    put.lock = &lock;
    p.under_lock = true;
    p.acquisition = held->second.acquisition;
  }
  if (key == options_.hot_key) {
    // It is written seldom, and must be.
  } else if (p.under_lock || (known != known_.end() && run_->OneIn(3))) {
    p.operation.kind = Kind::kCompareAndSet;
    p.operation.expected = known->second.id;
    put.only_if_version = known->second.version;
  } else if (run_->OneIn(8)) {
    p.operation.kind = Kind::kCompareAndSet;
    put.only_if_absent = true;
  } else if (run_->OneIn(8)) {
    p.operation.kind = Kind::kReplace;
    put.only_if_present = true;
  }
  if (run_->Below(100) < options_.ttl_percent) {
    put.ttl = std::chrono::milliseconds(run_->LogUniform(1, 2'000));
    p.ttl_ms = static_cast<uint64_t>(put.ttl.count());
  }
  const uint32_t id = history_->NextWrite();
  p.operation.value = put.flags = id;
  p.value = History::ValueOf(id, ValueBytes());
  auto request = PutRequest(KeyName(key), p.value, put);
  return Begin(std::move(p), std::move(request));
}

bool SimulatedClient::BeginDelete(uint32_t key) {
  Pending p = Write(Kind::kDelete, OpType::kDelete, key);
  DeleteOptions options;
  const auto known = known_.find(key);
  if (known != known_.end() && known->second.version != 0 && run_->OneIn(3)) {
    p.operation.kind = Kind::kCompareAndDelete;
    p.operation.expected = known->second.id;
    options.only_if_version = known->second.version;
  }
  auto request = DeleteRequest(KeyName(key), options);
  return Begin(std::move(p), std::move(request));
}

// Half of the time writes under a lock that the client holds, or releases it. Otherwise takes the
// lock of `key`, or releases it if the client holds it.
bool SimulatedClient::BeginLockOp(uint32_t key) {
  if (!held_.empty() && run_->OneIn(2)) {
    key = std::next(held_.begin(), static_cast<long>(run_->Below(held_.size())))->first;
    return run_->OneIn(2) ? BeginPut(key) : BeginUnlock(key);
  }
  if (held_.contains(key)) return BeginUnlock(key);
  Pending p{.type = run_->OneIn(2) ? OpType::kLock : OpType::kLockAndGet, .key = key};
  p.operation.kind = Kind::kGet;
  if (run_->Below(100) < options_.leases_percent) {
    p.ttl_ms = static_cast<uint64_t>(run_->LogUniform(1, 2'000));
  }
  auto request = KeyRequest(p.type, KeyName(key));
  if (request.ok()) request->ttl_ms = p.ttl_ms;
  return Begin(std::move(p), std::move(request));
}

// Whatever the outcome, the client does not rely on the lock any more.
bool SimulatedClient::BeginUnlock(uint32_t key) {
  const auto held = held_.find(key);
  Pending p{.type = OpType::kUnlock, .key = key, .acquisition = held->second.acquisition};
  const Lock lock{.key = KeyName(key), .word = held->second.word};
  if (!Begin(std::move(p), UnlockRequest(lock))) return false;
  held_.erase(held);
  return true;
}

// Adds to the counter or to the growing value, or reads the value. A touch changes nothing of it.
bool SimulatedClient::BeginTally() {
  Tallies& tallies = history_->tallies();
  const std::string_view value_key = Tallies::kValueKey;
  Pending p{.tallied = true};
  switch (run_->Below(5)) {
    case 0:
      p.type = OpType::kGet;
      return Begin(std::move(p), KeyRequest(OpType::kGet, value_key));
    case 1:
      p.type = OpType::kGetAndTouch;
      return Begin(std::move(p),
                   TouchRequest(OpType::kGetAndTouch, value_key, std::chrono::milliseconds(0), {}));
    case 2:
      if (tallies.full()) return true;
      p.type = OpType::kAppend;
      p.value = tallies.NextPiece();
      return Begin(std::move(p), AppendRequest(OpType::kAppend, value_key, {}, {}));
    default:
      p.type = OpType::kIncr;
      return Begin(std::move(p), IncrRequest(Tallies::kCounterKey, 1, {}));
  }
}

bool SimulatedClient::BeginOther() {
  const OpType type = run_->OneIn(2) ? OpType::kStats : OpType::kPing;
  return Begin({.type = type}, ServerRequest(*engine_, type, 0));
}

void SimulatedClient::ReadAll() {
  timeout_ns_ = Timeout(true);
  for (uint32_t key = 0; key < options_.keys; ++key) BeginGet(key, false);
}

void SimulatedClient::DeleteTally(std::string_view key) {
  timeout_ns_ = Timeout(true);
  Begin({.type = OpType::kDelete, .tallied = true}, DeleteRequest(key, {}));
}

void SimulatedClient::BeginBatch(std::string_view key, uint32_t gets) {
  timeout_ns_ = Timeout(true);
  uint32_t begun = 0;
  while (begun < gets && Begin({.in_batch = true}, KeyRequest(OpType::kGet, key))) ++begun;
  batch_.Begin(begun);
}

}  // namespace gannet::simulation
