#include <gannet/client.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "client/api/client_state.h"
#include "client/api/connect_engine.h"
#include "common/base/client_clock.h"

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
  absl::Status status =
      state_->Run(KeyRequest(OpType::kGet, key), state_->TimeoutNs(deadline), [&](const Op& op) {
        if (!op.done.found) return;
        info = op.done.info;
        if (op.value.size() > small.size()) {
          value = large = op.value;
        } else if (!op.value.empty()) {
          std::memcpy(small.data(), op.value.data(), op.value.size());
          value = {small.data(), op.value.size()};
        }
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

}  // namespace gannet
