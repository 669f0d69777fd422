// gannet_async: an AsyncClient for C. It keeps nothing but questions for statistics, whose answer
// in C++ has another form than the caller's. The types of operations have the same numbers in both
// languages, as the assertions say.

#include <gannet/async_client.h>
#include <gannet/gannet.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>

#include "client/c/answer.h"
#include "client/c/call.h"
#include "client/c/register_memory.h"
#include "client/c/report_status.h"

using gannet::Bytes;
using gannet::Call;
using gannet::Completion;
using gannet::OpType;
using gannet::Report;

namespace {

static_assert(GANNET_OP_EXTEND == static_cast<int>(OpType::kExtendLock));
static_assert(GANNET_OP_APPEND == static_cast<int>(OpType::kAppend));
static_assert(GANNET_OP_GET_INTO_MEMORY == static_cast<int>(OpType::kGetInto));
static_assert(GANNET_OP_EXISTS == static_cast<int>(OpType::kExists));
static_assert(GANNET_OP_GET_IF_CHANGED == static_cast<int>(OpType::kGetIfChanged));

}  // namespace

namespace gannet {

// A Stats that is under way. The C++ answer has another form than the caller's.
struct AskedStats {
  ServerStats stats;
  gannet_stats* out;
  uint64_t user_data;
};

}  // namespace gannet

// What C calls a gannet_async.
struct gannet_async {
  std::unique_ptr<gannet::AsyncClient> client;
  size_t servers = 0;
  std::unordered_map<uint64_t, gannet::AskedStats>
      asked;  // by the user data that the C++ client has
  uint64_t last_asked = 0;
};

namespace {

// A miss, or a lock that was not taken, is an answer with a status of its own in C.
gannet_status StatusOf(const Completion& done) {
  if (done.code != absl::StatusCode::kOk || done.found) return static_cast<int>(done.code);
  switch (done.type) {
    case OpType::kGet:
    case OpType::kGetInto:
    case OpType::kExists:
    case OpType::kGetIfChanged:
    case OpType::kDelete:
    case OpType::kTouch:
    case OpType::kGetAndTouch:
      return GANNET_NOT_FOUND;
    case OpType::kLock:
    case OpType::kLockAndGet:
      return GANNET_LOCKED;
    default:
      return GANNET_OK;
  }
}

void WriteCompletion(const Completion& done, gannet_completion* out) {
  const bool counts = done.type == OpType::kIncr || done.type == OpType::kFlush;
  const gannet::OpCost& cost = done.cost;
  *out = {.user_data = done.user_data,
          .op = static_cast<int>(done.type),
          .status = StatusOf(done),
          .info = gannet::MakeInfo(done.info),
          .lock_word = counts ? 0 : done.lock_word,
          .number = counts ? done.number() : 0,
          .cost = {.read_bytes = cost.read_bytes,
                   .reads = cost.reads,
                   .sends = cost.sends,
                   .cas = cost.cas,
                   .from_near_cache = cost.from_near_cache,
                   .posts = cost.posts,
                   .completions = cost.completions,
                   .from_cached_location = cost.from_cached_location,
                   .by_rpc = cost.by_rpc}};
}

// The caller's user data, and its structure filled in.
void EndStats(gannet_async* client, gannet_completion* out) {
  const auto asked = client->asked.extract(out->user_data);
  const gannet::AskedStats& stats = asked.mapped();
  out->user_data = stats.user_data;
  absl::StatusOr<gannet::ServerStats> answer = stats.stats;
  if (out->status != GANNET_OK) {
    answer = absl::Status(static_cast<absl::StatusCode>(out->status), "");
  }
  static_cast<void>(gannet::WriteStats(answer, stats.out));  // its size was right at the start
}

constexpr size_t kBatch = 64;

void WriteAll(gannet_async* client, std::span<const Completion> done, gannet_completion* out) {
  for (size_t i = 0; i < done.size(); ++i) {
    WriteCompletion(done[i], &out[i]);
    if (done[i].type == OpType::kStats) [[unlikely]]
      EndStats(client, &out[i]);
  }
}

std::span<std::byte> Room(void* buffer, size_t size) {
  return {static_cast<std::byte*>(buffer), size};
}

}  // namespace

gannet_status gannet_async_connect(const char* const* servers, size_t server_count,
                                   const gannet_options* options, gannet_async** client) {
  *client = nullptr;
  auto endpoints = gannet::ReadServers(servers, server_count);
  if (!endpoints.ok()) return Report(endpoints.status());
  auto read = gannet::ReadOptions(options);
  if (!read.ok()) return Report(read.status());
  auto connected = gannet::AsyncClient::Connect(*std::move(endpoints), *std::move(read));
  if (!connected.ok()) return Report(connected.status());
  *client = new gannet_async{.client = *std::move(connected), .servers = server_count, .asked = {}};
  return GANNET_OK;
}

void gannet_async_close(gannet_async* client) { delete client; }

gannet_status gannet_async_get(gannet_async* client, const void* key, size_t key_size, void* buffer,
                               size_t size, uint64_t user_data) {
  return Report(client->client->Get(Bytes(key, key_size), Room(buffer, size), user_data));
}

gannet_status gannet_async_get_into_memory(gannet_async* client, const void* key, size_t key_size,
                                           const gannet_span* spans, size_t span_count,
                                           uint64_t user_data) {
  return Report(
      client->client->GetInto(Bytes(key, key_size), gannet::AsSpans(spans, span_count), user_data));
}

gannet_status gannet_async_exists(gannet_async* client, const void* key, size_t key_size,
                                  uint64_t user_data) {
  return Report(client->client->Exists(Bytes(key, key_size), user_data));
}

gannet_status gannet_async_get_if_changed(gannet_async* client, const void* key, size_t key_size,
                                          uint64_t version, void* buffer, size_t size,
                                          uint64_t user_data) {
  return Report(
      client->client->GetIfChanged(Bytes(key, key_size), version, Room(buffer, size), user_data));
}

gannet_status gannet_async_put(gannet_async* client, const void* key, size_t key_size,
                               const void* value, size_t value_size, const gannet_call* call,
                               uint64_t user_data) {
  Call read;
  absl::Status status = read.Read(call, Call::kOfPut);
  if (!status.ok()) return Report(status);
  return Report(
      client->client->Put(Bytes(key, key_size), Bytes(value, value_size), read.put(), user_data));
}

gannet_status gannet_async_put_from_memory(gannet_async* client, const void* key, size_t key_size,
                                           const gannet_span* spans, size_t span_count,
                                           const gannet_call* call, uint64_t user_data) {
  Call read;
  absl::Status status = read.Read(call, Call::kOfPut);
  if (!status.ok()) return Report(status);
  return Report(client->client->PutFrom(Bytes(key, key_size), gannet::AsSpans(spans, span_count),
                                        read.put(), user_data));
}

gannet_status gannet_async_delete(gannet_async* client, const void* key, size_t key_size,
                                  const gannet_call* call, uint64_t user_data) {
  Call read;
  absl::Status status = read.Read(call, Call::kIfVersion);
  if (!status.ok()) return Report(status);
  return Report(client->client->Delete(Bytes(key, key_size), read.remove(), user_data));
}

gannet_status gannet_async_append(gannet_async* client, const void* key, size_t key_size,
                                  const void* piece, size_t piece_size, const gannet_call* call,
                                  uint64_t user_data) {
  Call read;
  absl::Status status = read.Read(call, Call::kOfChange);
  if (!status.ok()) return Report(status);
  return Report(client->client->Append(Bytes(key, key_size), Bytes(piece, piece_size),
                                       read.change(), user_data));
}

gannet_status gannet_async_prepend(gannet_async* client, const void* key, size_t key_size,
                                   const void* piece, size_t piece_size, const gannet_call* call,
                                   uint64_t user_data) {
  Call read;
  absl::Status status = read.Read(call, Call::kOfChange);
  if (!status.ok()) return Report(status);
  return Report(client->client->Prepend(Bytes(key, key_size), Bytes(piece, piece_size),
                                        read.change(), user_data));
}

gannet_status gannet_async_incr(gannet_async* client, const void* key, size_t key_size,
                                int64_t delta, const gannet_call* call, uint64_t user_data) {
  Call read;
  absl::Status status = read.Read(call, Call::kOfChange | Call::kInitial);
  if (!status.ok()) return Report(status);
  return Report(client->client->Incr(Bytes(key, key_size), delta, read.incr(), user_data));
}

gannet_status gannet_async_decr(gannet_async* client, const void* key, size_t key_size,
                                int64_t delta, const gannet_call* call, uint64_t user_data) {
  Call read;
  absl::Status status = read.Read(call, Call::kOfChange | Call::kInitial);
  if (!status.ok()) return Report(status);
  return Report(client->client->Decr(Bytes(key, key_size), delta, read.incr(), user_data));
}

gannet_status gannet_async_touch(gannet_async* client, const void* key, size_t key_size,
                                 uint64_t ttl_ms, const gannet_call* call, uint64_t user_data) {
  Call read;
  absl::Status status = read.Read(call, Call::kIfVersion);
  if (!status.ok()) return Report(status);
  return Report(client->client->Touch(Bytes(key, key_size), gannet::Milliseconds(ttl_ms),
                                      read.touch(), user_data));
}

gannet_status gannet_async_get_and_touch(gannet_async* client, const void* key, size_t key_size,
                                         uint64_t ttl_ms, void* buffer, size_t size,
                                         uint64_t user_data) {
  return Report(client->client->GetAndTouch(Bytes(key, key_size), gannet::Milliseconds(ttl_ms),
                                            Room(buffer, size), user_data));
}

gannet_status gannet_async_flush(gannet_async* client, uint32_t server, uint64_t user_data) {
  return Report(client->client->Flush(server, user_data));
}

gannet_status gannet_async_try_lock(gannet_async* client, const void* key, size_t key_size,
                                    const gannet_call* call, uint64_t user_data) {
  Call read;
  absl::Status status = read.Read(call, Call::kLease);
  if (!status.ok()) return Report(status);
  return Report(client->client->TryLock(Bytes(key, key_size), user_data, read.lock_options()));
}

gannet_status gannet_async_lock_and_get(gannet_async* client, const void* key, size_t key_size,
                                        void* buffer, size_t size, const gannet_call* call,
                                        uint64_t user_data) {
  Call read;
  absl::Status status = read.Read(call, Call::kLease);
  if (!status.ok()) return Report(status);
  return Report(client->client->LockAndGet(Bytes(key, key_size), Room(buffer, size), user_data,
                                           read.lock_options()));
}

gannet_status gannet_async_make_lock(const gannet_async* client, const void* key, size_t key_size,
                                     uint64_t lock_word, gannet_lock* lock) {
  *lock = {};
  if (key_size > sizeof(lock->key)) return Report(absl::InvalidArgumentError("key too long"));
  gannet::WriteLock({.key = std::string(Bytes(key, key_size)),
                     .word = lock_word,
                     .server = client->client->ServerOf(Bytes(key, key_size))},
                    lock);
  return GANNET_OK;
}

gannet_status gannet_async_unlock(gannet_async* client, const gannet_lock* lock,
                                  uint64_t user_data) {
  const absl::StatusOr<gannet::Lock> held = gannet::ReadLock(*lock);
  if (!held.ok()) return Report(held.status());
  return Report(client->client->Unlock(*held, user_data));
}

gannet_status gannet_async_extend(gannet_async* client, const gannet_lock* lock, uint64_t lease_ms,
                                  uint64_t user_data) {
  const absl::StatusOr<gannet::Lock> held = gannet::ReadLock(*lock);
  if (!held.ok()) return Report(held.status());
  return Report(client->client->Extend(*held, gannet::Milliseconds(lease_ms), user_data));
}

gannet_status gannet_async_ping(gannet_async* client, uint32_t server, uint64_t user_data) {
  return Report(client->client->Ping(server, user_data));
}

gannet_status gannet_async_stats(gannet_async* client, uint32_t server, gannet_stats* stats,
                                 uint64_t user_data) {
  absl::Status status = gannet::WriteStats(gannet::ServerStats{}, stats);
  if (!status.ok()) return Report(status);
  const uint64_t id = ++client->last_asked;
  gannet::AskedStats& asked = client->asked[id];
  asked.out = stats;
  asked.user_data = user_data;
  status = client->client->Stats(server, &asked.stats, id);
  if (!status.ok()) client->asked.erase(id);
  return Report(status);
}

size_t gannet_async_poll(gannet_async* client, gannet_completion* completions, size_t room) {
  std::array<Completion, kBatch> done;
  const size_t n = client->client->Poll(std::span(done).first(std::min(room, kBatch)));
  WriteAll(client, std::span(done).first(n), completions);
  return n;
}

size_t gannet_async_wait(gannet_async* client, gannet_completion* completions, size_t room,
                         uint64_t timeout_ns) {
  std::array<Completion, kBatch> done;
  const std::chrono::nanoseconds timeout(
      static_cast<int64_t>(std::min<uint64_t>(timeout_ns, INT64_MAX)));
  const size_t n = client->client->Wait(std::span(done).first(std::min(room, kBatch)), timeout);
  WriteAll(client, std::span(done).first(n), completions);
  return n;
}

int gannet_async_fd(const gannet_async* client) { return client->client->fd(); }

int gannet_async_arm(gannet_async* client) { return client->client->Arm() ? 1 : 0; }

gannet_status gannet_async_register(gannet_async* client, void* memory, size_t size, uint32_t flags,
                                    gannet_memory** registered) {
  return gannet::RegisterBuffer(*client->client, memory, size, flags, registered);
}

gannet_status gannet_async_allocate(gannet_async* client, uint64_t size,
                                    gannet_memory** registered) {
  return gannet::WriteMemory(client->client->AllocateMemory(size), registered);
}

gannet_status gannet_async_register_dmabuf(gannet_async* client, int fd, uint64_t offset,
                                           uint64_t size, uint32_t flags,
                                           gannet_memory** registered) {
  return gannet::RegisterDmabuf(*client->client, fd, offset, size, flags, registered);
}

void gannet_async_set_deadline(gannet_async* client, uint64_t deadline_ms) {
  client->client->set_deadline(gannet::Milliseconds(deadline_ms));
}

uint32_t gannet_async_in_flight(const gannet_async* client) { return client->client->in_flight(); }

size_t gannet_async_server_count(const gannet_async* client) { return client->servers; }

uint32_t gannet_async_server_of(const gannet_async* client, const void* key, size_t key_size) {
  return client->client->ServerOf(Bytes(key, key_size));
}

gannet_status gannet_async_server_info(gannet_async* client, uint32_t server,
                                       gannet_server_info** info) {
  return gannet::WriteServerInfo(client->client->Info(), server, info);
}

gannet_status gannet_async_rails(gannet_async* client, uint32_t server, gannet_rail** rails,
                                 size_t* rail_count) {
  return gannet::WriteRails(client->client->Info(), server, rails, rail_count);
}
