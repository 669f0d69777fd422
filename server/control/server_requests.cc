// Server: requests to connect, and who gets them.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/control/server.h"
#include "server/group/replica_request.h"

namespace gannet {

void Server::Notify(uint64_t connection, Notice::Type type) {
  // Only its worker knows whose connection it is. Such events are rare enough to ask each worker.
  for (const auto& worker : workers_) {
    worker->inbox().Put(Notice{type, connection});
  }
  if (member_ != nullptr && type == Notice::Type::kGone) member_->PutGone(connection);
}

void Server::Reject(IncomingRequest request, RejectCode code, std::string_view reason) {
  refused_connections_.Add(1);
  // Clients of a group ask one member after the other who is primary. That is no fault.
  if (code != RejectCode::kNotPrimary) {
    LogRefusal(&log_.refused_connections, now_.monotonic_ns, request.peer().ToString(), reason);
  }
  const struct Reject reject = NewReject(code, reason);
  listener_->Reject(std::move(request), std::as_bytes(std::span(&reject, 1)));
}

std::optional<uint64_t> Server::Name(IncomingRequest* request) {
  const std::optional<uint32_t> connection = connection_ids_.Take();
  if (!connection) {
    Reject(std::move(*request), RejectCode::kTooManyConnections,
           "all connection ids of this run of the server are used up; restart it");
    return std::nullopt;
  }
  const uint64_t name = NameOf(*connection, ++requests_);
  request->Name(name);
  return name;
}

void Server::OnRequest(IncomingRequest request) {
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
      authenticator_->Judge(*decoded, request.local().NetworkBytes(), options_.wall_ms());
  if (answer.refused != RejectCode{}) {
    return Reject(std::move(request), answer.refused, answer.reason);
  }
  if (request.verbs() != options_.device.verbs) {
    return Reject(std::move(request), RejectCode::kMalformed,
                  absl::StrCat("the server serves device ", options_.device.name,
                               " only; connect to an address of that"));
  }
  if (request.wants_endless_retries()) {
    return Reject(std::move(request), RejectCode::kMalformed,
                  "replies would be sent for ever to a client that takes none: connect with an "
                  "rnr_retry_count of at most 6");
  }
  if (IsReplicaRequest(*decoded)) {
    return OnReplicaRequest(*decoded, std::move(request), std::move(answer.key));
  }
  Admit(*decoded, std::move(request), std::move(answer.key), true);
}

// A client that looks for the primary of a group that has lost one asks member after member. Here
// it waits for a moment, so it neither comes too late nor keeps asking.
void Server::Admit(const ConnectRequest& decoded, IncomingRequest request,
                   std::shared_ptr<const SessionKey> key, bool may_wait) {
  if (!serves()) {
    if (may_wait && waiting_.size() < kWaitForPrimaryMax &&
        options_.standing->AwaitsPrimary(options_.lease_now_ns())) {
      waiting_.push_back({.decoded = decoded,
                          .request = std::move(request),
                          .key = std::move(key),
                          .until_ns = now_.monotonic_ns + WaitForPrimaryNs()});
      return;
    }
    return Reject(std::move(request), RejectCode::kNotPrimary, options_.standing->elsewhere());
  }
  const std::optional<uint64_t> name = Name(&request);
  if (!name) return;
  Arrival arrival{ConnectionOfName(*name), *name, decoded, std::move(request), std::move(key)};
  if (!WorkerFor(decoded).inbox().Put(arrival)) {
    connection_ids_.GiveBack(arrival.connection);
    Reject(std::move(arrival.incoming), RejectCode::kTooManyConnections,
           "too many connection requests at once");
  }
}

int64_t Server::WaitForPrimaryNs() const {
  const GroupTerms usual;
  const uint32_t lease_ms = options_.group ? options_.group->terms.lease_ms : usual.lease_ms;
  return lease_ms * kNsPerMs / kWaitForPrimaryShare;
}

void Server::AnswerWaiting() {
  while (!waiting_.empty()) {
    const bool waits = !stopping_ && !serves() && now_.monotonic_ns < waiting_.front().until_ns &&
                       options_.standing->AwaitsPrimary(options_.lease_now_ns());
    if (waits) return;
    Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    if (stopping_) {
      Reject(std::move(next.request), RejectCode::kShuttingDown, "the server is shutting down");
    } else {
      Admit(next.decoded, std::move(next.request), std::move(next.key), false);
    }
  }
}

void Server::OnReplicaRequest(const ConnectRequest& decoded, IncomingRequest request,
                              std::shared_ptr<const SessionKey> key) {
  if (key != nullptr && !key->key.replica) {
    return Reject(std::move(request), RejectCode::kAuthentication,
                  absl::StrCat("key ", key->key.id, " lacks the right \"replica\""));
  }
  if (member_ == nullptr) {
    return Reject(std::move(request), RejectCode::kMalformed,
                  "this server is in no group: it was started without --cluster");
  }
  const std::optional<uint64_t> name = Name(&request);
  if (!name) return;
  member_->Put(
      {.name = *name, .request = decoded, .incoming = std::move(request), .key = std::move(key)});
}

Worker& Server::WorkerFor(const ConnectRequest& request) {
  if (request.session_token != 0) {
    return *workers_[SessionTable::WorkerOf(request.session_token, options_.workers)];
  }
  return **std::min_element(workers_.begin(), workers_.end(), [](const auto& a, const auto& b) {
    return a->counters().connections.value() < b->counters().connections.value();
  });
}

}  // namespace gannet
