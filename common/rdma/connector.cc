#include "common/rdma/connector.h"

#include <algorithm>
#include <cerrno>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/protocol/limits.h"
#include "common/rdma/status.h"

namespace gannet {
namespace {

// Returns the name of the local device. It is for errors where the address may be right and only
// the device is wrong.
std::string LocalDevice(const ibv_context* verbs) {
  if (verbs == nullptr) return "";
  const std::string_view name = verbs->device->name;
  if (name == kSoftverbsDeviceName) {
    return " (the local device is softverbs0: it reaches only servers that run on softverbs too, "
           "on "
           "this same host, or with SOFTVERBS_NET set on both sides)";
  }
  return absl::StrCat(" (the local device is ", std::string(name),
                      "; a server that runs on softverbs is reached with --device=soft)");
}

bool SoftverbsOnly() {
  const std::vector<ibv_context*> devices = ListDevices();
  return devices.size() == 1 && devices[0]->device->name == kSoftverbsDeviceName;
}

absl::Status CannotReach(const SocketAddress& to, std::string_view why) {
  return absl::UnavailableError(
      absl::StrCat("cannot reach ", to.ToString(), ": ", std::string(why)));
}

absl::Status NobodyListens(const SocketAddress& to, const ibv_context* local) {
  return CannotReach(to,
                     absl::StrCat("nobody listens there; check that kvserver runs, and its port",
                                  LocalDevice(local)));
}

// Returns the error of rdma_connect. iWARP devices connect by TCP within that call.
absl::Status ConnectStatus(int error, const SocketAddress& to, const ibv_context* local) {
  if (error == ECONNREFUSED) return NobodyListens(to, local);
  if (error == ETIMEDOUT) {
    return CannotReach(to, FailureText(RDMA_CM_EVENT_UNREACHABLE, -error, SoftverbsOnly()));
  }
  errno = error;
  return LastErrnoStatus(absl::StrCat("cannot connect to ", to.ToString()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Connector>> Connector::Start(const Options& options) {
  GANNET_ASSIGN_OR_RETURN(CmChannel channel, CmChannel::Create());
  rdma_cm_id* raw = nullptr;
  if (rdma_create_id(channel.get(), &raw, nullptr, RDMA_PS_TCP) != 0) {
    return LastErrnoStatus("cannot create an RDMA id");
  }
  std::unique_ptr<Connector> connector(
      new Connector(options, std::move(channel), Handle<rdma_cm_id>(raw)));
  Options& own = connector->options_;
  sockaddr* from = own.from.has_value() ? own.from->get() : nullptr;
  if (rdma_resolve_addr(raw, from, own.to.get(), own.resolve_timeout_ms) != 0) {
    const absl::Status status =
        LastErrnoStatus(absl::StrCat("cannot reach ", options.to.ToString()));
    if (!SoftverbsOnly()) return status;
    return absl::Status(status.code(),
                        absl::StrCat(std::string(status.message()),
                                     "; softverbs reaches servers on this host only, unless both "
                                     "sides have SOFTVERBS_NET set"));
  }
  return connector;
}

Connector::Step Connector::Poll(int64_t now_ns) {
  while (step_ != Step::kFailed && step_ != Step::kClosed) {
    const std::optional<CmEvent> event = channel_.Next();
    if (!event.has_value()) break;
    HandleEvent(*event);
  }
  const bool pending = step_ <= Step::kConnecting;
  if (pending && now_ns >= options_.deadline_ns) {
    Fail(absl::DeadlineExceededError(
        absl::StrCat("cannot reach ", options_.to.ToString(), ": no answer in time",
                     LocalDevice(connection_.qp() != nullptr ? verbs() : nullptr))));
  }
  return step_;
}

void Connector::HandleEvent(const CmEvent& event) {
  switch (event.type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
      SetAckTimeout(connection_.id());
      if (rdma_resolve_route(connection_.id(), options_.resolve_timeout_ms) != 0) {
        Fail(LastErrnoStatus(
            absl::StrCat("cannot reach ", options_.to.ToString(), ": no path was found")));
      }
      return;
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
      if (options_.device != nullptr && options_.device != verbs()) {
        return Fail(absl::FailedPreconditionError(
            absl::StrCat("the way to ", options_.to.ToString(),
                         " does not lead through the device ", options_.device->device->name)));
      }
      step_ = Step::kResolved;
      return;
    case RDMA_CM_EVENT_ESTABLISHED:
      connection_.set_depth({.served = std::min(event.responder_resources, caps_.max_qp_rd_atom),
                             .issued = std::min(event.initiator_depth, caps_.max_qp_init_rd_atom)});
      SetRnrTimer(connection_.qp());
      private_data_ = event.private_data;
      step_ = Step::kEstablished;
      return;
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
      Fail(CannotReach(options_.to, FailureText(event.type, event.status, SoftverbsOnly())));
      return;
    case RDMA_CM_EVENT_REJECTED:
      HandleReject(event);
      return;
    case RDMA_CM_EVENT_DISCONNECTED:
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
      if (step_ == Step::kEstablished) {
        step_ = Step::kClosed;
        return;
      }
      [[fallthrough]];
    case RDMA_CM_EVENT_CONNECT_ERROR:
      Fail(CannotReach(options_.to, FailureText(event.type, event.status, SoftverbsOnly())));
      return;
    default:  // TIMEWAIT_EXIT, ADDR_CHANGE: nothing to do
      return;
  }
}

void Connector::HandleReject(const CmEvent& event) {
  // InfiniBand has a separate reason code for a server's refusal. iWARP has a negative errno that
  // is the same when nobody listens; there only a server's refusal has private data (unpadded).
  constexpr int kConsumerReject = 28;
  private_data_ = event.private_data;
  refused_ =
      event.status == kConsumerReject || (event.status < 0 && !event.private_data.bytes().empty());
  if (refused_) {
    Fail(absl::UnavailableError(
        absl::StrCat(options_.to.ToString(), " refused the connection", LocalDevice(verbs()))));
  } else {
    Fail(NobodyListens(options_.to, verbs()));
  }
}

void Connector::Fail(absl::Status status) {
  status_ = std::move(status);
  step_ = Step::kFailed;
}

absl::Status Connector::CreateConnection(const ConnectionOptions& options) {
  GANNET_CHECK(step_ == Step::kResolved, "not resolved");
  caps_ = options.caps;
  absl::Status status = connection_.MakeQueuePair(options);
  if (!status.ok()) Fail(status);
  return status;
}

absl::Status Connector::Connect(std::span<const std::byte> private_data) {
  GANNET_CHECK(step_ == Step::kResolved && connection_.qp() != nullptr, "no connection made");
  GANNET_CHECK(private_data.size() <= kRequestPrivateBytesMax, "too much private data");
  rdma_conn_param param{};
  param.private_data = private_data.data();
  param.private_data_len = static_cast<uint8_t>(private_data.size());
  param.responder_resources = caps_.max_qp_rd_atom;
  param.initiator_depth = caps_.max_qp_init_rd_atom;
  param.retry_count = kRetryCount;
  param.rnr_retry_count = options_.rnr_retry_count;
  if (rdma_connect(connection_.id(), &param) != 0) {
    Fail(ConnectStatus(errno, options_.to, verbs()));
    return status_;
  }
  step_ = Step::kConnecting;
  return absl::OkStatus();
}

}  // namespace gannet
