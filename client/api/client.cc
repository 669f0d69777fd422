// The calls that block. Each makes a request, has it done by whoever drives the engine (driver.h),
// and makes its answer of the operation that has ended. GetView calls the application only after
// it has given back the operation and its buffer, so the application may call this client again.

#include <gannet/client.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <iterator>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "client/api/change_requests.h"
#include "client/api/client_state.h"
#include "client/api/connect_engine.h"
#include "client/api/make_requests.h"
#include "common/base/client_clock.h"
#include "common/base/copy_bytes.h"
#include "common/protocol/list_entries.h"
#include "common/protocol/opcode.h"
#include "common/protocol/storage.h"

namespace gannet {

using Milliseconds = Client::Milliseconds;

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(std::vector<std::string> endpoints,
                                                        Options options) {
  auto engine = ConnectEngine(
      {.endpoints = std::move(endpoints), .options = options, .clock = ClientClock::Real()});
  if (!engine.ok()) return engine.status();
  auto wake = WakeFd::Create();
  if (!wake.ok()) return wake.status();
  return std::unique_ptr<Client>(
      new Client(std::make_unique<State>(*std::move(engine), *std::move(wake), options)));
}

Client::Client(std::unique_ptr<State> state) : state_(std::move(state)) {}

Client::~Client() {
  // A child of fork() has neither the thread nor the connections, so it cannot end them.
  if (state_->driver.forked()) static_cast<void>(state_.release());
}

absl::StatusOr<std::optional<Value>> Client::Get(std::string_view key,
                                                 std::optional<Milliseconds> deadline) {
  std::optional<Value> value;
  const bool near = state_->AnswerNear(key, [&](std::string_view bytes, const ItemInfo& info) {
    value = Value{std::string(bytes), info};
  });
  if (near) return value;
  absl::Status status =
      state_->Run(KeyRequest(OpType::kGet, key), state_->TimeoutNs(deadline), [&](const Op& op) {
        if (op.done.found) value = MakeValue(op);
      });
  if (!status.ok()) return status;
  return value;
}

absl::StatusOr<std::optional<ItemInfo>> Client::GetInto(std::string_view key,
                                                        std::span<std::byte> out,
                                                        std::optional<Milliseconds> deadline) {
  std::optional<ItemInfo> info;
  const bool near = state_->AnswerNear(key, [&](std::string_view bytes, const ItemInfo& it) {
    CopyValueBytes(out.data(), bytes.data(), std::min(bytes.size(), out.size()));
    info = it;
  });
  if (near) return info;
  absl::Status status =
      state_->Run(KeyRequest(OpType::kGet, key), state_->TimeoutNs(deadline), [&](const Op& op) {
        if (!op.done.found) return;
        if (!out.empty())
          std::memcpy(out.data(), op.value.data(), std::min(op.value.size(), out.size()));
        info = op.done.info;
      });
  if (!status.ok()) return status;
  return info;
}

// Copies the value and releases the operation and its buffer before it calls the application. The
// application may call this client again, and that call may need the last slot or buffer.
absl::StatusOr<bool> Client::GetView(
    std::string_view key, const std::function<void(std::string_view, const ItemInfo&)>& use,
    std::optional<Milliseconds> deadline) {
  std::array<char, OpBuffers::kSmallItemBytes> small;
  std::string large;
  std::string_view value;
  std::optional<ItemInfo> info;
  const auto keep = [&](std::string_view bytes, const ItemInfo& it) {
    info = it;
    if (bytes.size() > small.size()) {
      value = large = bytes;
    } else if (!bytes.empty()) {
      std::memcpy(small.data(), bytes.data(), bytes.size());
      value = {small.data(), bytes.size()};
    }
  };
  if (state_->AnswerNear(key, keep)) {
    use(value, *info);
    return true;
  }
  absl::Status status =
      state_->Run(KeyRequest(OpType::kGet, key), state_->TimeoutNs(deadline), [&](const Op& op) {
        if (op.done.found) keep(op.value, op.done.info);
      });
  if (!status.ok()) return status;
  if (info) use(value, *info);
  return info.has_value();
}

absl::StatusOr<bool> Client::Exists(std::string_view key, std::optional<Milliseconds> deadline) {
  bool found = false;
  absl::Status status = state_->Run(KeyRequest(OpType::kExists, key), state_->TimeoutNs(deadline),
                                    [&](const Op& op) { found = op.done.found; });
  if (!status.ok()) return status;
  return found;
}

absl::StatusOr<Client::IfChanged> Client::GetIfChanged(std::string_view key, uint64_t version,
                                                       std::optional<Milliseconds> deadline) {
  IfChanged answer;
  absl::Status status =
      state_->Run(IfChangedRequest(key, version), state_->TimeoutNs(deadline), [&](const Op& op) {
        answer.changed = !IsUnchanged(op);
        if (op.done.found && answer.changed) answer.value = MakeValue(op);
      });
  if (!status.ok()) return status;
  return answer;
}

absl::StatusOr<uint64_t> Client::Put(std::string_view key, std::string_view value,
                                     const PutOptions& options,
                                     std::optional<Milliseconds> deadline) {
  uint64_t version = 0;
  absl::Status status = state_->Run(PutRequest(key, value, options), state_->TimeoutNs(deadline),
                                    [&](const Op& op) { version = op.done.info.version; });
  if (!status.ok()) return status;
  return version;
}

absl::StatusOr<std::optional<ItemInfo>> Client::GetInto(std::string_view key,
                                                        std::span<const RegisteredSpan> into,
                                                        std::optional<Milliseconds> deadline) {
  std::optional<ItemInfo> info;
  absl::Status status = state_->Run(GetIntoRequest(state_->driver.engine(), key, into),
                                    state_->TimeoutNs(deadline), [&](const Op& op) {
                                      if (op.done.found) info = op.done.info;
                                    });
  if (!status.ok()) return status;
  return info;
}

absl::StatusOr<std::optional<ItemInfo>> Client::GetInto(std::string_view key,
                                                        const RegisteredSpan& into,
                                                        std::optional<Milliseconds> deadline) {
  return GetInto(key, std::span(&into, 1), deadline);
}

absl::StatusOr<uint64_t> Client::PutFrom(std::string_view key, std::span<const RegisteredSpan> from,
                                         const PutOptions& options,
                                         std::optional<Milliseconds> deadline) {
  uint64_t version = 0;
  absl::Status status = state_->Run(PutFromRequest(state_->driver.engine(), key, from, options),
                                    state_->TimeoutNs(deadline),
                                    [&](const Op& op) { version = op.done.info.version; });
  if (!status.ok()) return status;
  return version;
}

absl::StatusOr<uint64_t> Client::PutFrom(std::string_view key, const RegisteredSpan& from,
                                         const PutOptions& options,
                                         std::optional<Milliseconds> deadline) {
  return PutFrom(key, std::span(&from, 1), options, deadline);
}

absl::StatusOr<RegisteredMemory> Client::Register(std::span<std::byte> memory,
                                                  const RegisterOptions& options) {
  const Engine& engine = state_->driver.engine();
  return MakeRegistered(engine.domains().Register(memory, options.remote_read));
}

absl::StatusOr<RegisteredMemory> Client::AllocateMemory(uint64_t bytes) {
  const Engine& engine = state_->driver.engine();
  return MakeRegistered(engine.domains().Allocate(bytes));
}

absl::StatusOr<RegisteredMemory> Client::RegisterDmabuf(int fd, uint64_t offset, uint64_t bytes,
                                                        const RegisterOptions& options) {
  const Engine& engine = state_->driver.engine();
  return MakeRegistered(engine.domains().RegisterDmabuf(fd, offset, bytes, options.remote_read));
}

absl::StatusOr<bool> Client::Delete(std::string_view key, const DeleteOptions& options,
                                    std::optional<Milliseconds> deadline) {
  bool found = false;
  absl::Status status = state_->Run(DeleteRequest(key, options), state_->TimeoutNs(deadline),
                                    [&](const Op& op) { found = op.done.found; });
  if (!status.ok()) return status;
  return found;
}

absl::StatusOr<Lock> Client::AcquireLock(std::string_view key, std::optional<Milliseconds> deadline,
                                         const LockOptions& options) {
  return state_->Acquire(OpType::kLock, key, options, state_->TimeoutNs(deadline),
                         [](const Op&) {});
}

absl::StatusOr<std::optional<Lock>> Client::TryLock(std::string_view key,
                                                    std::optional<Milliseconds> deadline,
                                                    const LockOptions& options) {
  std::optional<Lock> lock;
  absl::Status status = state_->Run(
      LockRequest(OpType::kLock, key, options), state_->TimeoutNs(deadline), [&](const Op& op) {
        if (op.done.found) lock = Lock{std::string(key), op.lock.word.word(), op.request.server};
      });
  if (!status.ok()) return status;
  return lock;
}

absl::Status Client::Unlock(const Lock& lock, std::optional<Milliseconds> deadline) {
  return state_->Run(UnlockRequest(lock), state_->TimeoutNs(deadline), [](const Op&) {});
}

absl::Status Client::Extend(const Lock& lock, Milliseconds lease,
                            std::optional<Milliseconds> deadline) {
  return state_->Run(ExtendRequest(lock, lease), state_->TimeoutNs(deadline), [](const Op&) {});
}

absl::StatusOr<std::vector<HeldLock>> Client::Locks(uint32_t server,
                                                    std::optional<Milliseconds> deadline) {
  std::vector<HeldLock> locks;
  absl::Status status = state_->ListAll(OpType::kListLocks, server, state_->TimeoutNs(deadline),
                                        [&](const Op& op) { return AppendLocks(op, &locks); });
  if (!status.ok()) return status;
  return locks;
}

absl::StatusOr<bool> Client::BreakLock(std::string_view key, std::optional<Milliseconds> deadline) {
  bool found = false;
  absl::Status status =
      state_->Run(KeyRequest(OpType::kBreakLock, key), state_->TimeoutNs(deadline),
                  [&](const Op& op) { found = op.done.found; });
  if (!status.ok()) return status;
  return found;
}

absl::StatusOr<Client::LockedValue> Client::LockAndGet(std::string_view key,
                                                       std::optional<Milliseconds> deadline,
                                                       const LockOptions& options) {
  LockedValue locked;
  absl::StatusOr<Lock> lock = state_->Acquire(OpType::kLockAndGet, key, options,
                                              state_->TimeoutNs(deadline), [&](const Op& op) {
                                                if (op.done.info.version != 0)
                                                  locked.value = MakeValue(op);
                                              });
  if (!lock.ok()) return lock.status();
  locked.lock = *std::move(lock);
  return locked;
}

std::vector<ServerReport> Client::Stats(std::optional<Milliseconds> deadline) {
  return state_->AskEach<ServerReport>(OpType::kStats, state_->TimeoutNs(deadline),
                                       [](ServerReport& report, const Op& op, absl::Status status) {
                                         if (status.ok()) {
                                           report.stats = ParseStats(report.endpoint, op);
                                         } else {
                                           report.stats = std::move(status);
                                         }
                                       });
}

std::vector<ServerPing> Client::PingEach(std::optional<Milliseconds> deadline) {
  return state_->AskEach<ServerPing>(
      OpType::kPing, state_->TimeoutNs(deadline),
      [](ServerPing& ping, const Op&, absl::Status status) { ping.status = std::move(status); });
}

absl::Status Client::Ping(std::optional<Milliseconds> deadline) {
  absl::Status first;
  for (const ServerPing& ping : PingEach(deadline)) first.Update(ping.status);
  return first;
}

std::vector<ServerInfo> Client::Info() const {
  if (state_->driver.forked()) return {};
  return state_->driver.Info();
}

// The writes that make an item's new content from the old one, and the
// removal of all items.

using Milliseconds = Client::Milliseconds;

namespace {

// Between two tries, while partitions move.
constexpr int64_t kFlushPauseFirstNs = 5 * kNsPerMs;
constexpr int64_t kFlushPauseMaxNs = 100 * kNsPerMs;

}  // namespace

absl::StatusOr<uint64_t> Client::Add(std::string_view key, std::string_view value,
                                     PutOptions options, std::optional<Milliseconds> deadline) {
  options.only_if_absent = true;
  return Put(key, value, options, deadline);
}

absl::StatusOr<uint64_t> Client::Replace(std::string_view key, std::string_view value,
                                         PutOptions options, std::optional<Milliseconds> deadline) {
  options.only_if_present = true;
  return Put(key, value, options, deadline);
}

absl::StatusOr<uint64_t> Client::Append(std::string_view key, std::string_view piece,
                                        const ChangeOptions& options,
                                        std::optional<Milliseconds> deadline) {
  return state_->Version(AppendRequest(OpType::kAppend, key, piece, options), deadline);
}

absl::StatusOr<uint64_t> Client::Prepend(std::string_view key, std::string_view piece,
                                         const ChangeOptions& options,
                                         std::optional<Milliseconds> deadline) {
  return state_->Version(AppendRequest(OpType::kPrepend, key, piece, options), deadline);
}

absl::StatusOr<int64_t> Client::Incr(std::string_view key, int64_t delta,
                                     const IncrOptions& options,
                                     std::optional<Milliseconds> deadline) {
  return state_->Number(IncrRequest(key, delta, options), deadline);
}

absl::StatusOr<int64_t> Client::Decr(std::string_view key, int64_t delta,
                                     const IncrOptions& options,
                                     std::optional<Milliseconds> deadline) {
  return state_->Number(DecrRequest(key, delta, options), deadline);
}

absl::StatusOr<bool> Client::Touch(std::string_view key, Milliseconds ttl,
                                   const TouchOptions& options,
                                   std::optional<Milliseconds> deadline) {
  bool found = false;
  absl::Status status =
      state_->Run(TouchRequest(OpType::kTouch, key, ttl, options), state_->TimeoutNs(deadline),
                  [&](const Op& op) { found = op.done.found; });
  if (!status.ok()) return status;
  return found;
}

absl::StatusOr<std::optional<Value>> Client::GetAndTouch(std::string_view key, Milliseconds ttl,
                                                         std::optional<Milliseconds> deadline) {
  std::optional<Value> value;
  absl::Status status = state_->Run(TouchRequest(OpType::kGetAndTouch, key, ttl, {}),
                                    state_->TimeoutNs(deadline), [&](const Op& op) {
                                      if (op.done.found) value = MakeValue(op);
                                    });
  if (!status.ok()) return status;
  return value;
}

// What moves from a group that is not flushed yet to one that is would stay. So all groups are
// flushed by one map, or all are flushed again.
absl::StatusOr<uint64_t> Client::Flush(std::optional<Milliseconds> deadline) {
  const ClientClock& clock = state_->driver.engine().clock();
  const int64_t deadline_ns = clock.MonotonicNs() + state_->TimeoutNs(deadline);
  const auto left_ns = [&] { return std::max<int64_t>(deadline_ns - clock.MonotonicNs(), 0); };
  uint64_t removed = 0;
  for (int64_t pause_ns = kFlushPauseFirstNs;;
       pause_ns = std::min(2 * pause_ns, kFlushPauseMaxNs)) {
    std::set<uint64_t> maps;
    absl::Status moved;
    const auto flushed = state_->AskEach<ServerPing>(
        OpType::kFlush, left_ns(), [&](ServerPing& answer, const Op& op, absl::Status status) {
          removed += static_cast<uint64_t>(op.done.counted);
          maps.insert(op.rpc.flush_map);
          answer.status = std::move(status);
        });
    for (const ServerPing& answer : flushed) {
      if (answer.status.ok()) continue;
      if (!absl::IsAborted(answer.status)) return answer.status;
      moved = answer.status;
    }
    if (moved.ok() && maps.size() <= 1) return removed;
    if (left_ns() <= pause_ns) {
      return absl::AbortedError("partitions move between groups, and what was in them may be left");
    }
    std::this_thread::sleep_for(std::chrono::nanoseconds(pause_ns));
  }
}

// Calls for many keys. All are the same call, RunMany, with another verb.

namespace {

using Milliseconds = Client::Milliseconds;

// What each key's answer is, if its operation succeeded.
bool FoundOf(const Op& op) { return op.done.found; }
uint64_t VersionOf(const Op& op) { return op.done.info.version; }
std::optional<ItemInfo> InfoOf(const Op& op) {
  return op.done.found ? std::optional<ItemInfo>(op.done.info) : std::nullopt;
}
std::optional<Value> ValueOf(const Op& op) {
  return op.done.found ? std::optional<Value>(MakeValue(op)) : std::nullopt;
}

// The places of the keys that are asked for, and for each key which of these has its answer: equal
// keys are asked for once.
struct DistinctKeys {
  // Looks for equal keys until `has_time` says no: who asks for so many that this takes all the
  // time gets no answer anyway.
  template <class HasTime>
  DistinctKeys(std::span<const std::string> keys, const HasTime& has_time) {
    absl::flat_hash_map<std::string_view, size_t> first;
    bool looks = true;
    for (size_t i = 0; i < keys.size(); ++i) {
      if (i % kKeysPerLook == kKeysPerLook - 1) looks = looks && has_time();
      if (!looks) {
        answer_of_key.push_back(asked.size());
        asked.push_back(i);
        continue;
      }
      const auto [at, added] = first.try_emplace(keys[i], asked.size());
      if (added) asked.push_back(i);
      answer_of_key.push_back(at->second);
    }
  }

  static constexpr size_t kKeysPerLook = 1024;
  std::vector<size_t> asked;
  std::vector<size_t> answer_of_key;
};

template <class Answer>
std::vector<Answer> AnswerOfEachKey(std::vector<Answer> answers, const DistinctKeys& keys) {
  if (keys.asked.size() == keys.answer_of_key.size()) return answers;
  std::vector<Answer> of_each;
  of_each.reserve(keys.answer_of_key.size());
  for (const size_t i : keys.answer_of_key) of_each.push_back(answers[i]);
  return of_each;
}

}  // namespace

std::vector<absl::StatusOr<std::optional<Value>>> Client::MultiGet(
    std::span<const std::string> keys, std::optional<Milliseconds> deadline) {
  const int64_t end_ns = state_->EndNs(deadline);
  const DistinctKeys distinct(keys, [&] { return state_->driver.NowNs() < end_ns; });
  std::vector<size_t> left = distinct.asked;
  const auto request_of = [&](size_t i) {
    absl::StatusOr<OpRequest> request = KeyRequest(OpType::kGet, keys[left[i]]);
    if (request.ok()) request->share_window = true;
    return request;
  };
  if (!state_->AnswersNear()) {
    return AnswerOfEachKey(state_->RunMany(left.size(), end_ns, request_of, ValueOf), distinct);
  }
  std::vector<absl::StatusOr<std::optional<Value>>> answers(distinct.asked.size());
  state_->AnswerNear(
      distinct.asked.size(), [&](size_t i) -> std::string_view { return keys[distinct.asked[i]]; },
      [&](size_t i, std::string_view value, const ItemInfo& info) {
        answers[i] = Value{std::string(value), info};
      });
  left.clear();
  for (size_t i = 0; i < answers.size(); ++i) {
    if (!answers[i].ok()) left.push_back(distinct.asked[i]);
  }
  auto others = state_->RunMany(left.size(), end_ns, request_of, ValueOf);
  for (auto [i, other] = std::pair(size_t{0}, others.begin()); i < answers.size(); ++i) {
    if (!answers[i].ok()) answers[i] = *std::move(other++);
  }
  return AnswerOfEachKey(std::move(answers), distinct);
}

std::vector<absl::StatusOr<std::optional<ItemInfo>>> Client::MultiGetInto(
    std::span<const GetTarget> targets, std::optional<Milliseconds> deadline) {
  const auto request_of = [&](size_t i) {
    return GetIntoRequest(state_->driver.engine(), targets[i].key, targets[i].into);
  };
  return state_->RunMany(targets.size(), state_->EndNs(deadline), request_of, InfoOf);
}

std::vector<absl::StatusOr<bool>> Client::MultiExists(std::span<const std::string> keys,
                                                      std::optional<Milliseconds> deadline) {
  const int64_t end_ns = state_->EndNs(deadline);
  const DistinctKeys distinct(keys, [&] { return state_->driver.NowNs() < end_ns; });
  const auto request_of = [&](size_t i) {
    return KeyRequest(OpType::kExists, keys[distinct.asked[i]]);
  };
  return AnswerOfEachKey(state_->RunMany(distinct.asked.size(), end_ns, request_of, FoundOf),
                         distinct);
}

std::vector<absl::StatusOr<uint64_t>> Client::MultiPut(std::span<const KeyValue> items,
                                                       std::optional<Milliseconds> deadline) {
  const auto request_of = [&](size_t i) {
    return PutRequest(items[i].key, items[i].value, items[i].options);
  };
  return state_->RunMany(items.size(), state_->EndNs(deadline), request_of, VersionOf);
}

std::vector<absl::StatusOr<uint64_t>> Client::MultiPutFrom(std::span<const PutSource> sources,
                                                           std::optional<Milliseconds> deadline) {
  const auto request_of = [&](size_t i) {
    return PutFromRequest(state_->driver.engine(), sources[i].key, sources[i].from,
                          sources[i].options);
  };
  return state_->RunMany(sources.size(), state_->EndNs(deadline), request_of, VersionOf);
}

std::vector<absl::StatusOr<bool>> Client::MultiDelete(std::span<const std::string> keys,
                                                      std::optional<Milliseconds> deadline) {
  const auto request_of = [&](size_t i) { return DeleteRequest(keys[i], {}); };
  return state_->RunMany(keys.size(), state_->EndNs(deadline), request_of, FoundOf);
}

// What a Client asks a server about its clients and its work.

namespace {

// Calls use(entry) for each entry of a list's page. Returns the number to go on from.
template <class Entry, class F>
uint64_t ForEach(const Op& op, F use) {
  for (size_t at = 0; at + sizeof(Entry) <= op.value.size(); at += sizeof(Entry)) {
    Entry entry;
    std::memcpy(&entry, op.value.data() + at, sizeof(entry));
    use(entry);
  }
  return op.rpc.next_position;
}

ConnectedClient ClientOf(const ClientEntry& entry) {
  return {.peer = TextOf(entry.peer),
          .session_id = entry.session_id,
          .connection_id = entry.connection_id,
          .connection_index = entry.qp_index,
          .worker = entry.worker,
          .last_request = OpcodeName(entry.last_opcode),
          .read_only = entry.read_only != 0,
          .unanswered = entry.unanswered,
          .key_id = entry.key_id,
          .silent = std::chrono::milliseconds(entry.silent_ms),
          .connected = std::chrono::milliseconds(entry.connected_ms),
          .requests = entry.requests,
          .hits = entry.hits,
          .misses = entry.misses,
          .reads = entry.reads,
          .get_p50 = std::chrono::nanoseconds(entry.get_p50_ns),
          .get_p99 = std::chrono::nanoseconds(entry.get_p99_ns)};
}

SlowRequest SlowRequestOf(const SlowEntry& entry) {
  return {.answered = std::chrono::milliseconds(entry.time_ms),
          .took = std::chrono::microseconds(entry.us),
          .request = OpcodeName(entry.opcode),
          .session_id = entry.session_id,
          .peer = TextOf(entry.peer),
          .key_bytes = entry.key_bytes,
          .value_bytes = entry.value_bytes,
          .key = std::string(entry.key, std::min<size_t>(entry.key_bytes, sizeof(entry.key)))};
}

}  // namespace

absl::StatusOr<std::vector<ConnectedClient>> Client::ConnectedClients(
    uint32_t server, std::optional<Milliseconds> deadline) {
  std::vector<ConnectedClient> clients;
  absl::Status status =
      state_->ListAll(OpType::kListClients, server, state_->TimeoutNs(deadline), [&](const Op& op) {
        return ForEach<ClientEntry>(
            op, [&](const ClientEntry& entry) { clients.push_back(ClientOf(entry)); });
      });
  if (!status.ok()) return status;
  return clients;
}

absl::StatusOr<std::vector<SlowRequest>> Client::SlowRequests(
    uint32_t server, std::optional<Milliseconds> deadline) {
  std::vector<SlowRequest> slow;
  absl::Status status =
      state_->ListAll(OpType::kSlowLog, server, state_->TimeoutNs(deadline), [&](const Op& op) {
        return ForEach<SlowEntry>(
            op, [&](const SlowEntry& entry) { slow.push_back(SlowRequestOf(entry)); });
      });
  if (!status.ok()) return status;
  return slow;
}

// Where servers keep their items, and snapshots.

namespace {

// The first pause before asking again whether a snapshot is whole. Each pause is twice the one
// before.
constexpr std::chrono::milliseconds kAskAgainMin{1};
constexpr std::chrono::milliseconds kAskAgainMax{50};

const char* SyncName(uint64_t disk_sync) {
  constexpr const char* kNames[] = {"", "none", "interval", "always"};
  return disk_sync < std::size(kNames) ? kNames[disk_sync] : "unknown";
}

struct StorageAnswer {
  StorageReply reply{};  // fields that an older server does not send stay 0
  uint64_t number = 0;   // of the snapshot that was asked for
};

StorageAnswer AnswerOf(const Op& op) {
  StorageAnswer answer{.number = op.rpc.snapshot};
  std::memcpy(&answer.reply, op.value.data(), std::min(op.value.size(), sizeof(answer.reply)));
  return answer;
}

ServerStorage StorageOf(const std::string& endpoint, const StorageReply& reply) {
  ServerStorage storage;
  storage.endpoint = endpoint;
  storage.sync = SyncName(reply.disk_sync);
  storage.directory = TextOf(reply.directory);
  storage.memory_file = TextOf(reply.memory_file);
  storage.behind_bytes = reply.disk_behind_bytes;
  storage.behind = std::chrono::milliseconds(reply.disk_behind_ms);
  if (reply.bytes == 0) return storage;
  storage.snapshot = {.position = reply.position,
                      .items = reply.items,
                      .bytes = reply.bytes,
                      .completed = std::chrono::milliseconds(reply.completed_ms)};
  return storage;
}

}  // namespace

absl::StatusOr<ServerStorage> Client::Storage(uint32_t server,
                                              std::optional<Milliseconds> deadline) {
  const Engine& engine = state_->driver.engine();
  StorageAnswer answer;
  absl::Status status =
      state_->Run(ServerRequest(engine, OpType::kStorage, server), state_->TimeoutNs(deadline),
                  [&](const Op& op) { answer = AnswerOf(op); });
  if (!status.ok()) return status;
  return StorageOf(state_->driver.InfoOf(server).endpoint, answer.reply);
}

absl::StatusOr<ServerStorage> Client::Snapshot(uint32_t server,
                                               std::optional<Milliseconds> deadline) {
  const Engine& engine = state_->driver.engine();
  const int64_t deadline_ns = engine.clock().MonotonicNs() + state_->TimeoutNs(deadline);
  uint64_t number = 0;  // of the snapshot
  uint64_t asked = 0;   // the incarnation of the server that was asked
  for (std::chrono::milliseconds rest = kAskAgainMin;; rest = std::min(2 * rest, kAskAgainMax)) {
    absl::StatusOr<OpRequest> request = ServerRequest(engine, OpType::kStorage, server);
    if (request.ok()) request->begin_snapshot = number == 0;
    const int64_t left_ns = std::max<int64_t>(deadline_ns - engine.clock().MonotonicNs(), 0);
    StorageAnswer answer;
    absl::Status status =
        state_->Run(std::move(request), left_ns, [&](const Op& op) { answer = AnswerOf(op); });
    if (!status.ok()) return status;
    const ServerInfo info = state_->driver.InfoOf(server);
    const std::string& endpoint = info.endpoint;
    if (answer.reply.disk_sync == 0) {
      return absl::FailedPreconditionError(
          absl::StrCat(endpoint,
                       ": the server writes no snapshots, because it keeps no items on a "
                       "disk: start it with --data=DIR"));
    }
    const uint64_t incarnation = info.incarnation;
    if (number == 0) {
      number = answer.number;
      asked = incarnation;
    }
    if (incarnation != asked) {
      return absl::UnavailableError(absl::StrCat(endpoint, ": the server was started again"));
    }
    if (answer.reply.whole >= number) return StorageOf(endpoint, answer.reply);
    if (answer.reply.ended >= number) {
      return absl::AbortedError(
          absl::StrCat(endpoint, ": the snapshot was given up: ", TextOf(answer.reply.why_not)));
    }
    std::this_thread::sleep_for(rest);
  }
}

}  // namespace gannet
