// The steps of a connection: Start begins it, Configure makes the queue pair and asks the server,
// TakeGrant checks what that answered. A device other than the one that the user wanted is
// refused.

#include "client/session/connection_maker.h"

#include <algorithm>
#include <bit>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/auth/handshake.h"
#include "common/base/clock.h"
#include "common/base/hash.h"
#include "common/base/status_macros.h"
#include "common/rdma/device.h"

namespace gannet {
namespace {

constexpr uint32_t kInlineBytesWanted = 256;

// FailedPrecondition: the server is reached through another device than the user `wanted`.
absl::Status CheckDevice(const Device& device, const std::string& wanted,
                         const std::string& endpoint) {
  const bool soft = device.kind == DeviceKind::kSoftverbs;
  if (wanted == "auto" || wanted == device.name || (wanted == "soft" && soft)) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat("the way to ", endpoint,
                                                    " leads through the device ", device.name,
                                                    ", not through \"", wanted, "\" as asked for"));
}

}  // namespace

void ConnectionMaker::TakeKey() {
  const SessionOptions& options = *given_.options;
  if (options.auth_file == nullptr) return;
  if (options.auth_file->Changed()) {
    const absl::Status status = options.auth_file->Reload();
    if (!status.ok()) {
      options.Log(true, absl::StrCat(options.endpoint, ": ", std::string(status.message())));
    }
  }
  key_ = options.auth_file->keys().front();
}

absl::Status ConnectionMaker::Start(const SocketAddress& to, uint32_t rail, int64_t deadline_ns,
                                    ClientConnection* over) {
  GANNET_ASSIGN_OR_RETURN(auto connector, Connector::Start({.to = to, .deadline_ns = deadline_ns}));
  ClientConnections& all = *given_.connections;
  ClientConnection& connection =
      over != nullptr ? all.Renew(*over, std::move(connector)) : all.Add(std::move(connector));
  connection.to = to;
  connection.rail = rail;
  return absl::OkStatus();
}

absl::Status ConnectionMaker::Configure(ClientConnection& connection) {
  Connector& connector = *connection.connector;
  const bool joins_by_rails = connection.rail != given_.connections->first().rail;
  GANNET_ASSIGN_OR_RETURN(const SessionDevice* const device,
                          DeviceOf(connector.verbs(), joins_by_rails));
  SessionMemory& memory = **given_.memory;
  if (connection.index == 0) memory.BeginWith(*device);
  const DeviceCaps& caps = device->device.caps;
  const uint32_t domain = device->domain;
  connection.device = device;
  connection.domain = domain;
  connection.op_lkey = memory.op_buffers.range->keys().lkeys[domain];
  connection.message_lkey = memory.requests.range->keys().lkeys[domain];
  const SessionBuffers* buffers = &memory.receives;
  uint32_t first_receive = SessionMemory::FirstReceive(connection.index);
  uint32_t receives = SessionMemory::FirstReceive(connection.index + 1) - first_receive;
  if (joins_by_rails) {
    GANNET_ASSIGN_OR_RETURN(buffers, memory.RailReceives(connection.index));
    first_receive = 0;
    receives = SessionMemory::kFirstReceives;
  }
  connection.receives = buffers->data;
  const uint32_t sends = std::min(caps.max_qp_wr, kSendWrs);
  GANNET_RETURN_IF_ERROR(connector.CreateConnection(
      {.queue_pair = {.pd = memory.domains->pd(domain),
                      .send_wrs = sends,
                      .send_sges = memory.pieces_max(),
                      .inline_bytes = std::min(caps.max_inline_data, kInlineBytesWanted)},
       .caps = caps,
       .completions = device->completions.get(),
       .receives = {
           .first = {reinterpret_cast<uint64_t>(connection.receive(first_receive)),
                     kMessageBytesMax, buffers->range->keys().lkeys[domain]},
           .count = receives,
           .id = {static_cast<uint8_t>(ConnectionWork::kReceive), connection.id, first_receive}}}));
  // One entry of the send queue stays free for the work request that BeginDrain posts.
  const uint32_t room = connector.connection()->limits().send_wrs - 1;
  connection.work = InFlightWork(std::bit_floor(std::max(room, 1u)));
  connection.asked_ns = given_.options->clock.get().MonotonicNs();
  ConnectRequest& request = connection.request;
  request = MakeConnectRequest(token_, static_cast<uint16_t>(connection.index),
                               Mix64(static_cast<uint64_t>(connection.asked_ns) + connection.id),
                               given_.options->clock.get().Wall());
  AuthenticateRequest(key_, connection.to.NetworkBytes(), &request);
  return connector.Connect(std::as_bytes(std::span(&request, 1)));
}

// The memory is made with the first connection, and registered with each device that a connection
// needs, before that has a queue pair.
absl::StatusOr<SessionDevice*> ConnectionMaker::DeviceOf(ibv_context* verbs, bool joins_by_rails) {
  const SessionOptions& options = *given_.options;
  std::unique_ptr<SessionMemory>& memory = *given_.memory;
  if (memory != nullptr) {
    if (SessionDevice* const known = memory->Find(verbs, joins_by_rails)) return known;
  }
  GANNET_ASSIGN_OR_RETURN(const Device device, DescribeDevice(verbs));
  GANNET_RETURN_IF_ERROR(CheckDevice(device, options.device, options.endpoint));
  if (memory == nullptr) {
    GANNET_ASSIGN_OR_RETURN(memory, SessionMemory::Create(options.domains, options.ops));
  }
  const uint32_t sends = std::min(device.caps.max_qp_wr, kSendWrs);
  constexpr uint32_t kConnectionsMax = SessionMemory::kConnectionsMax;
  const uint32_t completions =
      64 + (joins_by_rails
                ? kConnectionsMax * (sends + 2 + SessionMemory::kFirstReceives)
                : (options.connections_max + 1) * (sends + 2) + SessionMemory::kReceives);
  return memory->Open(device, joins_by_rails, completions);
}

absl::StatusOr<Grant> ConnectionMaker::TakeGrant(const ClientConnection& connection) const {
  return gannet::TakeGrant(connection.connector->private_data(), given_.options->endpoint, key_,
                           connection.request);
}

}  // namespace gannet
