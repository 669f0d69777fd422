// gannet_client: connecting, reads, memory and servers, each over one call of the C++ client.
// client_writes.cc and client_locks.cc have the other calls.

#include <algorithm>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "client/c/answer.h"
#include "client/c/call.h"
#include "client/c/client_handle.h"
#include "client/c/register_memory.h"
#include "client/c/report_status.h"

using gannet::Bytes;
using gannet::Call;
using gannet::FirstError;
using gannet::Report;

gannet_status gannet_client_connect(const char* const* servers, size_t server_count,
                                    const gannet_options* options, gannet_client** client) {
  *client = nullptr;
  auto endpoints = gannet::ReadServers(servers, server_count);
  if (!endpoints.ok()) return Report(endpoints.status());
  auto read = gannet::ReadOptions(options);
  if (!read.ok()) return Report(read.status());
  auto connected = gannet::Client::Connect(*std::move(endpoints), *std::move(read));
  if (!connected.ok()) return Report(connected.status());
  *client = new gannet_client{*std::move(connected), server_count};
  return GANNET_OK;
}

void gannet_client_close(gannet_client* client) { delete client; }

gannet_status gannet_client_get(gannet_client* client, const void* key, size_t key_size,
                                const gannet_call* call, gannet_value* value) {
  *value = {};
  Call read;
  absl::Status status = read.Read(call, Call::kDeadline);
  if (!status.ok()) return Report(status);
  absl::Status copied;
  const absl::StatusOr<bool> found = client->client->GetView(
      Bytes(key, key_size),
      [&](std::string_view data, const gannet::ItemInfo& info) {
        copied = gannet::CopyValue(data, info, value);
      },
      read.deadline());
  if (!found.ok()) return Report(found.status());
  return *found ? Report(copied) : GANNET_NOT_FOUND;
}

gannet_status gannet_client_get_into(gannet_client* client, const void* key, size_t key_size,
                                     void* buffer, size_t size, const gannet_call* call,
                                     gannet_item_info* info) {
  *info = {};
  Call read;
  absl::Status status = read.Read(call, Call::kDeadline);
  if (!status.ok()) return Report(status);
  const std::span<std::byte> out(static_cast<std::byte*>(buffer), size);
  return gannet::WriteInfo(client->client->GetInto(Bytes(key, key_size), out, read.deadline()),
                           info);
}

gannet_status gannet_client_get_into_memory(gannet_client* client, const void* key, size_t key_size,
                                            const gannet_span* spans, size_t span_count,
                                            const gannet_call* call, gannet_item_info* info) {
  *info = {};
  Call read;
  absl::Status status = read.Read(call, Call::kDeadline);
  if (!status.ok()) return Report(status);
  return gannet::WriteInfo(
      client->client->GetInto(Bytes(key, key_size), gannet::AsSpans(spans, span_count),
                              read.deadline()),
      info);
}

gannet_status gannet_client_exists(gannet_client* client, const void* key, size_t key_size,
                                   const gannet_call* call) {
  return gannet::WithCall(call, 0, [&](const Call& c) {
    return gannet::WasThere(client->client->Exists(Bytes(key, key_size), c.deadline()));
  });
}

gannet_status gannet_client_get_if_changed(gannet_client* client, const void* key, size_t key_size,
                                           uint64_t version, const gannet_call* call,
                                           gannet_value* value) {
  *value = {};
  return gannet::WithCall(call, 0, [&](const Call& c) -> gannet_status {
    const auto got = client->client->GetIfChanged(Bytes(key, key_size), version, c.deadline());
    if (!got.ok()) return Report(got.status());
    value->info.version = version;
    if (!got->changed) return GANNET_OK;
    *value = {};
    if (!got->value.has_value()) return GANNET_NOT_FOUND;
    return Report(gannet::CopyValue(got->value->data, got->value->info, value));
  });
}

// --- registered memory

gannet_status gannet_client_register(gannet_client* client, void* memory, size_t size,
                                     uint32_t flags, gannet_memory** registered) {
  return gannet::RegisterBuffer(*client->client, memory, size, flags, registered);
}

gannet_status gannet_client_allocate(gannet_client* client, uint64_t size,
                                     gannet_memory** registered) {
  return gannet::WriteMemory(client->client->AllocateMemory(size), registered);
}

gannet_status gannet_client_register_dmabuf(gannet_client* client, int fd, uint64_t offset,
                                            uint64_t size, uint32_t flags,
                                            gannet_memory** registered) {
  return gannet::RegisterDmabuf(*client->client, fd, offset, size, flags, registered);
}

// --- servers

size_t gannet_client_server_count(const gannet_client* client) { return client->servers; }

gannet_status gannet_client_stats(gannet_client* client, const gannet_call* call,
                                  gannet_stats* stats) {
  Call read;
  absl::Status status = read.Read(call, Call::kDeadline);
  if (!status.ok()) return Report(status);
  const size_t stride = stats->size;  // as the caller's compiler knows the structure
  const std::vector<gannet::ServerReport> reports = client->client->Stats(read.deadline());
  FirstError error;
  for (size_t i = 0; i < reports.size(); ++i) {
    auto* out = reinterpret_cast<gannet_stats*>(reinterpret_cast<char*>(stats) + i * stride);
    status = gannet::WriteStats(reports[i].stats, out);
    if (!status.ok()) return Report(status);
    error.Add(reports[i].stats.status());
  }
  return error.Take();
}

gannet_status gannet_client_ping(gannet_client* client, const gannet_call* call,
                                 gannet_status* statuses) {
  Call read;
  absl::Status status = read.Read(call, Call::kDeadline);
  if (!status.ok()) return Report(status);
  const std::vector<gannet::ServerPing> pings = client->client->PingEach(read.deadline());
  FirstError error;
  for (size_t i = 0; i < pings.size(); ++i) {
    const gannet_status of_server = error.Add(pings[i].status);
    if (statuses != nullptr) statuses[i] = of_server;
  }
  return error.Take();
}

gannet_status gannet_client_server_info(gannet_client* client, uint32_t server,
                                        gannet_server_info** info) {
  return gannet::WriteServerInfo(client->client->Info(), server, info);
}

gannet_status gannet_client_rails(gannet_client* client, uint32_t server, gannet_rail** rails,
                                  size_t* rail_count) {
  return gannet::WriteRails(client->client->Info(), server, rails, rail_count);
}
