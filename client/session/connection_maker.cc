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

absl::Status ConnectionMaker::Start(const SocketAddress& to, int64_t deadline_ns) {
  GANNET_ASSIGN_OR_RETURN(auto connector, Connector::Start({.to = to, .deadline_ns = deadline_ns}));
  given_.connections->Add(std::move(connector)).to = to;
  return absl::OkStatus();
}

absl::Status ConnectionMaker::Configure(ClientConnection& connection) {
  Connector& connector = *connection.connector;
  GANNET_RETURN_IF_ERROR(MakeMemory(connector.verbs()));
  const SessionMemory& memory = **given_.memory;
  const DeviceCaps& caps = memory.device.caps;
  const uint32_t first_receive = SessionMemory::FirstReceive(connection.index);
  const uint32_t receives = SessionMemory::FirstReceive(connection.index + 1) - first_receive;
  const uint32_t sends = std::min(caps.max_qp_wr, kSendWrs);
  GANNET_RETURN_IF_ERROR(connector.CreateConnection(
      {.queue_pair = {.pd = memory.domains->pd(memory.domain),
                      .send_wrs = sends,
                      .send_sges = memory.pieces_max(),
                      .inline_bytes = std::min(caps.max_inline_data, kInlineBytesWanted)},
       .caps = caps,
       .completions = memory.completions.get(),
       .receives = {
           .first =
               memory.receives.Sge(uint64_t{first_receive} * kMessageBytesMax, kMessageBytesMax),
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

absl::Status ConnectionMaker::MakeMemory(ibv_context* verbs) {
  const SessionOptions& options = *given_.options;
  std::unique_ptr<SessionMemory>& memory = *given_.memory;
  if (memory != nullptr) {
    if (memory->device.verbs == verbs) return absl::OkStatus();
    return absl::UnavailableError(
        absl::StrCat("the way to ", options.endpoint,
                     " leads through another device than before; connect anew"));
  }
  GANNET_ASSIGN_OR_RETURN(const Device device, DescribeDevice(verbs));
  GANNET_RETURN_IF_ERROR(CheckDevice(device, options.device, options.endpoint));
  const uint32_t sends = std::min(device.caps.max_qp_wr, kSendWrs);
  const uint32_t completions =
      (options.connections_max + 1) * (sends + 2) + SessionMemory::kReceives + 64;
  GANNET_ASSIGN_OR_RETURN(memory,
                          SessionMemory::Create(device, options.domains, options.ops, completions));
  return absl::OkStatus();
}

absl::StatusOr<Grant> ConnectionMaker::TakeGrant(const ClientConnection& connection) const {
  return gannet::TakeGrant(connection.connector->private_data(), given_.options->endpoint, key_,
                           connection.request);
}

}  // namespace gannet
