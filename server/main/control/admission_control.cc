// From a request to connect to a worker or to the member, or to a refusal with its reason. A
// client that looks for the primary of a group that has lost one waits here for a moment, so it
// neither comes too late nor keeps asking.

#include "server/main/control/admission_control.h"

#include <algorithm>
#include <span>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/protocol/member_standing.h"
#include "glog/logging.h"
#include "server/group/members/replica_request.h"
#include "server/main/control/file_limit.h"

namespace gannet {
namespace {

constexpr int kEventsPerPollMax = 64;
constexpr const char* kNoGroup = "this server is in no group: it was started without --cluster";

}  // namespace

bool AdmissionControl::Poll(const Now& now) {
  now_ = now;
  if (begun_at_ == BootTime()) begun_at_ = now.boot;
  int events = 0;
  for (; events < kEventsPerPollMax; ++events) {
    std::optional<ListenerEvent> event = server_.listener.Poll();
    if (!event) break;
    switch (event->type) {
      case ListenerEvent::Type::kRequest:
        OnRequest(std::move(*event->request));
        break;
      case ListenerEvent::Type::kEstablished:
        Notify(event->connection, Notice::Type::kEstablished);
        break;
      case ListenerEvent::Type::kFailed:
        LOG(WARNING) << "connection " << event->connection << ": " << event->status.message();
        Notify(event->connection, Notice::Type::kGone);
        break;
      case ListenerEvent::Type::kDisconnected:
        Notify(event->connection, Notice::Type::kGone);
        break;
      case ListenerEvent::Type::kDeviceRemoved:
        rails_.OnLost(event->verbs, "was removed");
        break;
    }
  }
  AnswerWaiting();
  return events > 0;
}

void AdmissionControl::LookAtAuthFile() {
  const bool asked = reload_asked_.exchange(false, std::memory_order_relaxed);
  const auto keys = authenticator_.Look(asked);
  if (!keys) return;
  if (keys->ok()) {
    LOG(INFO) << "read " << authenticator_.path() << " again: " << **keys << " keys";
  } else {
    LOG(ERROR) << "the keys stay as they were: " << keys->status().message();
  }
}

void AdmissionControl::Notify(uint64_t connection, Notice::Type type) {
  // Only its worker knows whose connection it is. Such events are rare enough to ask each worker.
  workers_.Notify({type, connection});
  if (member_ != nullptr && type == Notice::Type::kGone) member_->inbox().PutGone(connection);
}

void AdmissionControl::Reject(IncomingRequest request, RejectCode code, std::string_view reason) {
  refused_.Add(1);
  // Clients of a group ask one member after the other who is primary. That is no fault.
  if (code != RejectCode::kNotPrimary) {
    LogRefusal(&server_.log.refused_connections, now_.boot, request.peer().ToString(), reason);
  }
  const struct Reject reject = NewReject(code, reason);
  server_.listener.Reject(std::move(request), std::as_bytes(std::span(&reject, 1)));
}

std::optional<uint64_t> AdmissionControl::Name(IncomingRequest* request) {
  const std::optional<uint32_t> connection = server_.connection_ids.Take();
  if (!connection) {
    Reject(std::move(*request), RejectCode::kTooManyConnections,
           "all connection ids of this run of the server are used up; restart it");
    return std::nullopt;
  }
  const uint64_t name = NameOf(*connection, ++requests_);
  request->Name(name);
  return name;
}

void AdmissionControl::OnRequest(IncomingRequest request) {
  const absl::StatusOr<ConnectRequest> decoded = DecodeConnectRequest(request.private_data());
  if (!decoded.ok()) {
    const bool version = decoded.status().code() == absl::StatusCode::kUnimplemented;
    const std::string reason(decoded.status().message());
    return Reject(std::move(request), version ? RejectCode::kVersion : RejectCode::kMalformed,
                  reason);
  }
  if (stopping_) {
    return Reject(std::move(request), RejectCode::kShuttingDown, "the server is shutting down");
  }
  Authenticator::Answer answer =
      authenticator_.Judge(*decoded, request.local().NetworkBytes(), wall_.Now());
  if (answer.refused != RejectCode{}) {
    return Reject(std::move(request), answer.refused, answer.reason);
  }
  if (!server_.RailOf(request)) {
    const auto add_name = [](std::string* all, const Rail& rail) {
      absl::StrAppend(all, rail.device.name);
    };
    return Reject(
        std::move(request), RejectCode::kMalformed,
        absl::StrCat("the server serves device ", absl::StrJoin(server_.rails, " and ", add_name),
                     " only; connect to an address of that"));
  }
  if (request.wants_endless_retries()) {
    return Reject(std::move(request), RejectCode::kMalformed,
                  "replies would be sent for ever to a client that takes none: connect with an "
                  "rnr_retry_count of at most 6");
  }
  if ((decoded->features & kConnectStanding) != 0) return TellStanding(std::move(request));
  if (IsReplicaRequest(*decoded)) {
    return OnReplicaRequest(*decoded, std::move(request), std::move(answer.key));
  }
  Admit(*decoded, std::move(request), std::move(answer.key), true);
}

// A client that looks for the primary of a group that has lost one asks member after member. Here
// it waits for a moment, so it neither comes too late nor keeps asking.
void AdmissionControl::Admit(const ConnectRequest& decoded, IncomingRequest request,
                             std::shared_ptr<const SessionKey> key, bool may_wait) {
  if (AwaitsFormerLeases()) {
    if (waiting_.size() >= kWaitForPrimaryMax) {
      return Reject(std::move(request), RejectCode::kStarting,
                    "the server waits for the end of leases that a former process may have given");
    }
    waiting_.push_back({.decoded = decoded,
                        .request = std::move(request),
                        .key = std::move(key),
                        .until = begun_at_ + former_leases_ns_});
    return;
  }
  if (!serves()) {
    if (may_wait && waiting_.size() < kWaitForPrimaryMax && AwaitsPrimary()) {
      waiting_.push_back({.decoded = decoded,
                          .request = std::move(request),
                          .key = std::move(key),
                          .until = now_.boot + wait_ns_});
      return;
    }
    return Reject(std::move(request), RejectCode::kNotPrimary, server_.standing->elsewhere());
  }
  if (!HasDescriptorsForClients()) {
    return Reject(std::move(request), RejectCode::kTooManyConnections,
                  "the server has no file descriptors left for clients: raise its limit "
                  "(LimitNOFILE= of a service, ulimit -Hn)");
  }
  const std::optional<uint64_t> name = Name(&request);
  if (!name) return;
  const uint8_t rail = *server_.RailOf(request);
  Arrival arrival{ConnectionOfName(*name), *name,         decoded, rail,
                  std::move(request),      std::move(key)};
  if (!workers_.For(decoded).inbox().Put(arrival)) {
    server_.connection_ids.GiveBack(arrival.connection);
    Reject(std::move(arrival.incoming), RejectCode::kTooManyConnections,
           "too many connection requests at once");
  }
}

bool AdmissionControl::AwaitsPrimary() const {
  return server_.standing->AwaitsPrimary(server_.boot.Now());
}

void AdmissionControl::AnswerWaiting() {
  while (!waiting_.empty()) {
    const bool waits = now_.boot < waiting_.front().until &&
                       (AwaitsFormerLeases() || (!serves() && AwaitsPrimary()));
    if (waits && !stopping_) return;
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    if (stopping_) {
      Reject(std::move(next.request), RejectCode::kShuttingDown, "the server is shutting down");
    } else {
      Admit(next.decoded, std::move(next.request), std::move(next.key), false);
    }
  }
}

// It is no connection, so neither the log nor the counter of refusals tells of it.
void AdmissionControl::TellStanding(IncomingRequest request) {
  if (member_ == nullptr) {
    return Reject(std::move(request), RejectCode::kMalformed, kNoGroup);
  }
  const Member::Seen seen = member_->Look();
  const bool primary = seen.role == MemberRole::kPrimary;
  const int64_t up_s = (now_.boot - begun_at_) / kNsPerSecond;
  const std::string reason =
      ReasonOf({.role = seen.role,
                .epoch = seen.epoch,
                .incarnation = seen.incarnation,
                .applied = primary ? seen.as_primary.committed : seen.applied,
                .uptime_s = static_cast<uint32_t>(std::clamp<int64_t>(up_s, 0, UINT32_MAX)),
                .joined_percent = seen.joined_percent,
                .lease_left_ms =
                    serves() ? server_.standing->LeaseLeftMs(server_.boot.Now()) : uint16_t{0}});
  const struct Reject reject = NewReject(RejectCode::kStanding, reason);
  server_.listener.Reject(std::move(request), std::as_bytes(std::span(&reject, 1)));
}

void AdmissionControl::OnReplicaRequest(const ConnectRequest& decoded, IncomingRequest request,
                                        std::shared_ptr<const SessionKey> key) {
  if (key != nullptr && !key->key.replica) {
    return Reject(std::move(request), RejectCode::kAuthentication,
                  absl::StrCat("key ", key->key.id, " lacks the right \"replica\""));
  }
  if (member_ == nullptr) {
    return Reject(std::move(request), RejectCode::kMalformed, kNoGroup);
  }
  const std::optional<uint64_t> name = Name(&request);
  if (!name) return;
  const uint8_t rail = *server_.RailOf(request);
  member_->inbox().Put({.name = *name,
                        .rail = rail,
                        .request = decoded,
                        .incoming = std::move(request),
                        .key = std::move(key)});
}

}  // namespace gannet
