// What servers report of themselves, and walks.

#include <gannet/observed.h>
#include <gannet/walker.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "client/c/answer.h"
#include "client/c/call.h"
#include "client/c/client_handle.h"
#include "client/c/report_status.h"

using gannet::Call;
using gannet::Report;

namespace {

uint64_t Count(std::chrono::milliseconds time) { return static_cast<uint64_t>(time.count()); }

// Copies the text, cut to the room. The rest of `out` is 0 already.
template <size_t kRoom>
void Write(const std::string& text, char (&out)[kRoom]) {
  text.copy(out, kRoom - 1);
}

gannet_connected_client InC(const gannet::ConnectedClient& client) {
  gannet_connected_client c{};
  Write(client.peer, c.peer);
  Write(client.last_request, c.last_request);
  c.silent_ms = Count(client.silent);
  c.connected_ms = Count(client.connected);
  c.requests = client.requests;
  c.hits = client.hits;
  c.misses = client.misses;
  c.reads = client.reads;
  c.get_p50_ns = static_cast<uint64_t>(client.get_p50.count());
  c.get_p99_ns = static_cast<uint64_t>(client.get_p99.count());
  c.session_id = client.session_id;
  c.connection_id = client.connection_id;
  c.connection_index = client.connection_index;
  c.worker = client.worker;
  c.unanswered = client.unanswered;
  c.key_id = client.key_id;
  c.read_only = client.read_only;
  return c;
}

gannet_slow_request InC(const gannet::SlowRequest& request) {
  gannet_slow_request c{};
  c.answered_ms = Count(request.answered);
  c.took_us = static_cast<uint64_t>(request.took.count());
  Write(request.request, c.request);
  Write(request.peer, c.peer);
  c.session_id = request.session_id;
  c.key_size = request.key_bytes;
  c.value_size = request.value_bytes;
  c.key_kept = static_cast<uint32_t>(std::min(request.key.size(), sizeof(c.key)));
  std::memcpy(c.key, request.key.data(), c.key_kept);
  return c;
}

gannet_hot_key InC(const gannet::HotKey& key) {
  gannet_hot_key c{};
  c.uses = key.uses;
  c.info = gannet::MakeInfo(key.info);
  c.block_size = key.block_bytes;
  c.key_size = static_cast<uint32_t>(std::min(key.key.size(), sizeof(c.key)));
  c.at_least = key.at_least;
  c.leased = key.leased.value_or(false);
  std::memcpy(c.key, key.key.data(), c.key_size);
  return c;
}

// Copies what was found into an array for gannet_free.
template <class From, class To>
gannet_status WriteAll(const absl::StatusOr<std::vector<From>>& found, To** out, size_t* count) {
  if (!found.ok()) return Report(found.status());
  *out = static_cast<To*>(std::calloc(std::max<size_t>(found->size(), 1), sizeof(To)));
  if (*out == nullptr) return Report(gannet::NoMemory());
  *count = found->size();
  std::transform(found->begin(), found->end(), *out, [](const From& from) { return InC(from); });
  return GANNET_OK;
}

gannet_status WriteStorage(const absl::StatusOr<gannet::ServerStorage>& found,
                           gannet_storage** out) {
  if (!found.ok()) return Report(found.status());
  gannet::StructureWithTexts<gannet_storage> made(
      {&found->endpoint, &found->sync, &found->directory, &found->memory_file});
  if (made.get() == nullptr) return Report(gannet::NoMemory());
  gannet_storage& c = *made.get();
  c.endpoint = made.Add(found->endpoint);
  c.sync = made.Add(found->sync);
  c.directory = made.Add(found->directory);
  c.memory_file = made.Add(found->memory_file);
  c.behind_bytes = found->behind_bytes;
  c.behind_ms = Count(found->behind);
  c.has_snapshot = found->snapshot.has_value();
  if (found->snapshot.has_value()) {
    c.snapshot_position = found->snapshot->position;
    c.snapshot_items = found->snapshot->items;
    c.snapshot_bytes = found->snapshot->bytes;
    c.snapshot_completed_ms = Count(found->snapshot->completed);
  }
  *out = made.Release();
  return GANNET_OK;
}

std::optional<uint32_t> PaceOf(uint32_t reads_per_second) {
  if (reads_per_second == UINT32_MAX) return std::nullopt;
  return reads_per_second;
}

absl::StatusOr<std::unique_ptr<gannet::Walker>> Connect(const char* server,
                                                        const gannet_options* options,
                                                        uint32_t reads_per_second) {
  auto endpoints = gannet::ReadServers(&server, 1);
  if (!endpoints.ok()) return endpoints.status();
  auto read = gannet::ReadOptions(options);
  if (!read.ok()) return read.status();
  return gannet::Walker::Connect(std::move(endpoints->front()), *std::move(read),
                                 {.reads_per_second = PaceOf(reads_per_second)});
}

}  // namespace

gannet_status gannet_client_storage(gannet_client* client, uint32_t server, const gannet_call* call,
                                    gannet_storage** storage) {
  *storage = nullptr;
  Call read;
  absl::Status status = read.Read(call, Call::kDeadline);
  if (!status.ok()) return Report(status);
  return WriteStorage(client->client->Storage(server, read.deadline()), storage);
}

gannet_status gannet_client_snapshot(gannet_client* client, uint32_t server,
                                     const gannet_call* call, gannet_storage** storage) {
  *storage = nullptr;
  Call read;
  absl::Status status = read.Read(call, Call::kDeadline);
  if (!status.ok()) return Report(status);
  return WriteStorage(client->client->Snapshot(server, read.deadline()), storage);
}

gannet_status gannet_client_connected_clients(gannet_client* client, uint32_t server,
                                              const gannet_call* call,
                                              gannet_connected_client** clients,
                                              size_t* client_count) {
  *clients = nullptr;
  *client_count = 0;
  Call read;
  absl::Status status = read.Read(call, Call::kDeadline);
  if (!status.ok()) return Report(status);
  return WriteAll(client->client->ConnectedClients(server, read.deadline()), clients, client_count);
}

gannet_status gannet_client_slow_requests(gannet_client* client, uint32_t server,
                                          const gannet_call* call, gannet_slow_request** requests,
                                          size_t* request_count) {
  *requests = nullptr;
  *request_count = 0;
  Call read;
  absl::Status status = read.Read(call, Call::kDeadline);
  if (!status.ok()) return Report(status);
  return WriteAll(client->client->SlowRequests(server, read.deadline()), requests, request_count);
}

gannet_status gannet_walk(const char* server, const gannet_options* options,
                          uint32_t reads_per_second,
                          int (*show)(void* context, const gannet_walked_item* item),
                          void* context) {
  const auto walker = Connect(server, options, reads_per_second);
  if (!walker.ok()) return Report(walker.status());
  return Report((*walker)->Walk([&](const gannet::WalkedItem& item) {
    const gannet_walked_item c = {.key = item.key.data(),
                                  .key_size = item.key.size(),
                                  .value = item.value.data(),
                                  .value_size = item.value.size(),
                                  .info = gannet::MakeInfo(item.info),
                                  .block_size = item.block_bytes};
    return show(context, &c) != 0;
  }));
}

gannet_status gannet_hot_keys(const char* server, const gannet_options* options,
                              uint32_t reads_per_second, size_t hot_keys_max,
                              gannet_hot_key** hot_keys, size_t* hot_key_count) {
  *hot_keys = nullptr;
  *hot_key_count = 0;
  const auto walker = Connect(server, options, reads_per_second);
  if (!walker.ok()) return Report(walker.status());
  return WriteAll((*walker)->HotKeys(hot_keys_max), hot_keys, hot_key_count);
}
