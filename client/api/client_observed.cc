// What a Client asks a server about its clients and its work.

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "client/api/client_state.h"
#include "common/protocol/list_entries.h"
#include "common/protocol/opcode_name.h"

namespace gannet {
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

}  // namespace gannet
