// From answers of the C++ API to structures of C. Values and lists are allocated by malloc for the
// caller to free, and a failed allocation is an error of the call. gannet_stats says how long the
// caller's structure is, so one of an older header is filled as far as it goes.

#include "client/c/answer.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

#include "client/c/report_status.h"
#include "common/protocol/stats_reply.h"

namespace gannet {
namespace {

static_assert(sizeof(gannet_span) == sizeof(RegisteredSpan));
static_assert(offsetof(gannet_span, memory) == offsetof(RegisteredSpan, memory));
static_assert(offsetof(gannet_span, offset) == offsetof(RegisteredSpan, offset));
static_assert(offsetof(gannet_span, size) == offsetof(RegisteredSpan, bytes));

// C lacks no number of ServerStats, and both have those of the list.
#define GANNET_COUNT(name) +1
constexpr size_t kStatistics = GANNET_STATISTICS(GANNET_COUNT);
#undef GANNET_COUNT
static_assert(sizeof(ServerStats) == sizeof(std::string) + sizeof(uint64_t) * kStatistics);
static_assert(sizeof(gannet_stats) ==
              offsetof(gannet_stats, rpcs) + sizeof(uint64_t) * kStatistics);

}  // namespace

absl::Status NoMemory() { return absl::ResourceExhaustedError("no memory for the answer"); }

gannet_item_info MakeInfo(const ItemInfo& info) {
  return {.version = info.version,
          .expiry_ms = info.expiry_ms,
          .ttl_left_ms = static_cast<uint64_t>(info.ttl_left.count()),
          .flags = info.flags,
          .value_size = info.value_bytes};
}

absl::Status CopyValue(std::string_view data, const ItemInfo& info, gannet_value* out) {
  out->data = std::malloc(std::max<size_t>(data.size(), 1));
  if (out->data == nullptr) return NoMemory();
  if (!data.empty()) std::memcpy(out->data, data.data(), data.size());
  out->size = data.size();
  out->info = MakeInfo(info);
  return absl::OkStatus();
}

absl::Status WriteStats(const absl::StatusOr<ServerStats>& stats, gannet_stats* out) {
  const size_t size = out->size;
  if (size <= offsetof(gannet_stats, rpcs) || size > 65536) {
    return absl::InvalidArgumentError("set gannet_stats.size to sizeof(gannet_stats)");
  }
  gannet_stats all{};
  all.size = size;
  all.status = static_cast<gannet_status>(stats.status().code());
  if (stats.ok()) {
#define GANNET_COPY(name) all.name = stats->name;
    GANNET_STATISTICS(GANNET_COPY)
#undef GANNET_COPY
  }
  std::memset(static_cast<void*>(out), 0, size);
  std::memcpy(static_cast<void*>(out), &all, std::min(size, sizeof(all)));
  return absl::OkStatus();
}

gannet_status WriteServerInfo(const std::vector<ServerInfo>& infos, uint32_t server,
                              gannet_server_info** out) {
  *out = nullptr;
  if (server >= infos.size()) return Report(absl::InvalidArgumentError("no such server"));
  const ServerInfo& info = infos[server];
  StructureWithTexts<gannet_server_info> made({&info.endpoint, &info.name, &info.why_not,
                                               &info.device, &info.kind, &info.lock_mode,
                                               &info.address});
  if (made.get() == nullptr) return Report(NoMemory());
  *made.get() = {.endpoint = made.Add(info.endpoint),
                 .name = made.Add(info.name),
                 .why_not = made.Add(info.why_not),
                 .device = made.Add(info.device),
                 .kind = made.Add(info.kind),
                 .lock_mode = made.Add(info.lock_mode),
                 .incarnation = info.incarnation,
                 .region_bytes = info.region_bytes,
                 .index_slots = info.index_slots,
                 .lock_words = info.lock_words,
                 .protocol_version = info.protocol_version,
                 .session_id = info.session_id,
                 .read_depth = info.read_depth,
                 .silence_ms = info.silence_ms,
                 .connected = info.connected,
                 .unreachable = info.unreachable,
                 .authenticated = info.authenticated,
                 .read_only = info.read_only,
                 .reads_disbelieved = info.reads_disbelieved,
                 .history = info.history,
                 .address = made.Add(info.address),
                 .epoch = info.epoch,
                 .near_cache_answers = info.near_cache_answers,
                 .near_cache_items = info.near_cache_items,
                 .near_cache_reads = info.near_cache_reads,
                 .near_cache_over = info.near_cache_over};
  *out = made.Release();
  return GANNET_OK;
}

gannet_status WriteRails(const std::vector<ServerInfo>& infos, uint32_t server, gannet_rail** out,
                         size_t* count) {
  *out = nullptr;
  *count = 0;
  if (server >= infos.size()) return Report(absl::InvalidArgumentError("no such server"));
  const std::vector<RailInfo>& rails = infos[server].rails;
  *out = static_cast<gannet_rail*>(
      std::calloc(std::max<size_t>(rails.size(), 1), sizeof(gannet_rail)));
  if (*out == nullptr) return Report(NoMemory());
  *count = rails.size();
  for (size_t i = 0; i < rails.size(); ++i) {
    gannet_rail& rail = (*out)[i];
    rails[i].address.copy(rail.address, sizeof(rail.address) - 1);
    rail.works = rails[i].works;
    rail.mtu_bytes = rails[i].mtu_bytes;
    rail.mbit_per_second = rails[i].mbit_per_second;
    rail.port = rails[i].port;
    rail.connections = rails[i].connections;
    rail.up = rails[i].up;
    rail.connected = rails[i].connected;
  }
  return GANNET_OK;
}

gannet_status WriteHeldLocks(const std::vector<HeldLock>& locks, gannet_held_lock** out,
                             size_t* count) {
  *out = static_cast<gannet_held_lock*>(
      std::calloc(std::max<size_t>(locks.size(), 1), sizeof(gannet_held_lock)));
  if (*out == nullptr) return Report(NoMemory());
  *count = locks.size();
  for (size_t i = 0; i < locks.size(); ++i) {
    gannet_held_lock& lock = (*out)[i];
    lock.word = locks[i].word;
    lock.lease_ms = static_cast<uint64_t>(locks[i].lease.count());
    lock.index = locks[i].index;
    lock.session_id = locks[i].session_id;
    locks[i].holder.copy(lock.holder, sizeof(lock.holder) - 1);
  }
  return GANNET_OK;
}

std::span<const RegisteredSpan> AsSpans(const gannet_span* spans, size_t count) {
  return {reinterpret_cast<const RegisteredSpan*>(spans), count};
}

gannet_status WriteMemory(absl::StatusOr<RegisteredMemory> memory, gannet_memory** out) {
  *out = nullptr;
  if (!memory.ok()) return Report(memory.status());
  *out = reinterpret_cast<gannet_memory*>(new RegisteredMemory(*std::move(memory)));
  return GANNET_OK;
}

gannet_status WriteInfo(const absl::StatusOr<std::optional<ItemInfo>>& info,
                        gannet_item_info* out) {
  *out = {};
  if (!info.ok()) return Report(info.status());
  if (!info->has_value()) return GANNET_NOT_FOUND;
  *out = MakeInfo(**info);
  return GANNET_OK;
}

}  // namespace gannet

namespace {

const gannet::RegisteredMemory& MemoryOf(const gannet_memory* memory) {
  return *reinterpret_cast<const gannet::RegisteredMemory*>(memory);
}

}  // namespace

void* gannet_memory_data(const gannet_memory* memory) { return MemoryOf(memory).data(); }

uint64_t gannet_memory_size(const gannet_memory* memory) { return MemoryOf(memory).size(); }

void gannet_memory_free(gannet_memory* memory) {
  delete reinterpret_cast<gannet::RegisteredMemory*>(memory);
}
