#include "common/etcd/etcd_client.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/etcd/etcd_error.h"

namespace gannet {
namespace {

constexpr size_t kEndpointsMax = 16;

absl::Status CheckEndpoint(std::string_view url) {
  std::string_view host;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (url.starts_with(scheme)) host = url.substr(scheme.size());
  }
  const bool odd = std::ranges::any_of(
      host, [](char c) { return c <= ' ' || c > '~' || c == '@' || c == '?' || c == '#'; });
  if (!host.empty() && !odd) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(Printable(url), " is no URL of etcd, for example http://10.0.0.1:2379"));
}

// Returns the status with the endpoint that it is about.
absl::Status At(const std::string& endpoint, const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(endpoint, ": ", status.message()));
}

// Returns the error for an answer that did not come, or not as a whole.
absl::Status NoAnswer(const std::string& endpoint, const HttpEvent& event) {
  // This is how etcd ends a connection whose client does not begin with TLS.
  const bool tls_missing =
      event.error.find("Empty reply") != std::string::npos && endpoint.starts_with("http://");
  return absl::UnavailableError(absl::StrCat(
      Printable(event.error), tls_missing ? ". If etcd wants TLS, write https:// in the URL" : ""));
}

}  // namespace

struct EtcdClient::Call {
  std::string path;
  std::string body;
  RangeHandler on_range;  // this or the other
  TxnHandler on_txn;
  CompactHandler on_compact;
  std::function<void(absl::StatusOr<std::string>)> on_token;
  bool lists = false;  // for a watch
  bool logged_in_again = false;
  uint64_t era = 0;   // if its body has revisions: which ones. Else: when it was sent
  int64_t least = 0;  // the lowest revision that etcd can have when it answers
  int64_t delay_ms = 0;
  size_t tries = 0;
  size_t endpoint = 0;
  std::string problems = {};

  // There is no answer. `outcome`: of a transaction.
  void Refuse(const absl::Status& status,
              EtcdTxnResult::Outcome outcome = EtcdTxnResult::Outcome::kFailed) const {
    if (on_range != nullptr) return on_range(status);
    if (on_token != nullptr) return on_token(status);
    if (on_compact != nullptr) return on_compact(status);
    on_txn({.outcome = outcome, .status = status});
  }
};

struct EtcdClient::WatchState {
  std::string prefix;
  WatchHandler handler;
  int64_t next_revision = 0;
  uint64_t request = 0;  // of the stream; 0: none
  size_t endpoint = 0;
  bool created = false;  // etcd has confirmed this stream
  bool lost = false;     // the listener knows that nothing is heard
  size_t failures = 0;   // in a row
  uint64_t era = 0;      // of the last list
};

absl::StatusOr<std::unique_ptr<EtcdClient>> EtcdClient::Create(Options options) {
  if (options.endpoints.empty() || options.endpoints.size() > kEndpointsMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("there must be 1 to ", kEndpointsMax, " URLs of etcd"));
  }
  for (std::string& endpoint : options.endpoints) {
    GANNET_RETURN_IF_ERROR(CheckEndpoint(endpoint));
    while (endpoint.ends_with('/')) endpoint.pop_back();
  }
  GANNET_ASSIGN_OR_RETURN(auto carrier, HttpCarrier::Create({.ca_file = options.ca_file,
                                                             .cert_file = options.cert_file,
                                                             .key_file = options.key_file}));
  return std::unique_ptr<EtcdClient>(new EtcdClient(std::move(options), std::move(carrier)));
}

EtcdClient::EtcdClient(Options options, std::unique_ptr<HttpCarrier> carrier)
    : options_(std::move(options)), carrier_(std::move(carrier)) {}

EtcdClient::~EtcdClient() = default;

int64_t EtcdClient::NowNs() const { return MonotonicNs(); }

void EtcdClient::Poll() {
  for (const HttpEvent& event : carrier_->Take()) {
    // A handler may have ended what a later event is about.
    if (const auto call = calls_.find(event.id); call != calls_.end()) {
      std::unique_ptr<Call> ended = std::move(call->second);
      calls_.erase(call);
      OnCallEnd(std::move(ended), event);
    } else if (const auto stream = streams_.find(event.id); stream != streams_.end()) {
      const uint64_t watch = stream->second;
      if (event.kind == HttpEvent::Kind::kLine) {
        OnLine(watch, event);
      } else {
        OnStreamEnd(watch, event);
      }
    }
  }
}

// --- ranges and transactions ---

void EtcdClient::Range(std::string_view key, RangeHandler handler) {
  Ask(std::unique_ptr<Call>(
      new Call{.path = "/v3/kv/range", .body = EncodeRange(key), .on_range = std::move(handler)}));
}

void EtcdClient::RangeOfPrefix(std::string_view prefix, RangeHandler handler) {
  Ask(std::unique_ptr<Call>(new Call{.path = "/v3/kv/range",
                                     .body = EncodeRangeOfPrefix(prefix),
                                     .on_range = std::move(handler)}));
}

void EtcdClient::Txn(const EtcdTxn& txn, TxnHandler handler) {
  EtcdTxn sent = txn;
  for (EtcdTxn::Compare& compare : sent.compares) {
    // One of before etcd went back: nothing has it.
    if (compare.mod_revision != 0) {
      const int64_t revision = revisions_.Etcds(compare.mod_revision);
      compare.mod_revision = revision > 0 ? revision : -1;
    }
  }
  Ask(std::unique_ptr<Call>(new Call{.path = "/v3/kv/txn",
                                     .body = EncodeTxn(sent),
                                     .on_txn = std::move(handler),
                                     .era = revisions_.era()}));
}

void EtcdClient::Compact(int64_t revision, CompactHandler handler) {
  // etcd has lost what is older than that.
  if (revisions_.Etcds(revision) <= 0) return handler(absl::OkStatus());
  Ask(std::unique_ptr<Call>(new Call{.path = "/v3/kv/compaction",
                                     .body = EncodeCompaction(revisions_.Etcds(revision)),
                                     .on_compact = std::move(handler),
                                     .era = revisions_.era()}));
}

void EtcdClient::LogIn() {
  if (std::exchange(logging_in_, true)) return;
  Ask(std::unique_ptr<Call>(new Call{.path = "/v3/auth/authenticate",
                                     .body = EncodeAuthenticate(options_.user, options_.password),
                                     .on_token = [this](auto token) { OnLogIn(std::move(token)); },
                                     .delay_ms = login_failed_ ? options_.retry_ms : 0}));
}

void EtcdClient::OnLogIn(absl::StatusOr<std::string> token) {
  logging_in_ = false;
  login_failed_ = !token.ok();
  if (token.ok()) token_ = *token;
  for (std::unique_ptr<Call>& call : std::exchange(waiting_calls_, {})) {
    if (token.ok()) {
      Ask(std::move(call));
    } else {
      call->Refuse(token.status());
    }
  }
  for (const uint64_t watch : std::exchange(waiting_streams_, {})) {
    if (!watches_.contains(watch)) continue;
    if (token.ok()) {
      Stream(watch);
    } else {
      StreamAgain(watch, token.status());
    }
  }
}

void EtcdClient::Ask(std::unique_ptr<Call> call) {
  if (NeedsToken() && call->on_token == nullptr) {
    waiting_calls_.push_back(std::move(call));
    return LogIn();
  }
  const bool has_revisions = call->on_txn != nullptr || call->on_compact != nullptr;
  if (!has_revisions) call->era = revisions_.era();
  if (call->era != revisions_.era()) {
    return call->Refuse(absl::UnavailableError("etcd has lost its data meanwhile"));
  }
  call->least = revisions_.highest();
  const size_t count = options_.endpoints.size();
  call->endpoint = call->tries == 0 ? first_ : (call->endpoint + 1) % count;
  ++call->tries;
  const uint64_t id = next_id_++;
  carrier_->Send({.id = id,
                  .url = options_.endpoints[call->endpoint] + call->path,
                  .body = call->body,
                  .authorization = call->on_token == nullptr ? token_ : "",
                  .once = call->on_txn != nullptr,
                  .delay_ms = std::exchange(call->delay_ms, 0),
                  .answer_ms = options_.call_ms});
  calls_[id] = std::move(call);
}

void EtcdClient::OnCallEnd(std::unique_ptr<Call> call, const HttpEvent& event) {
  const absl::Status problem = Deliver(*call, event);
  if (problem.ok()) return;
  const bool token_is_old = absl::IsUnauthenticated(problem) && !options_.user.empty();
  if (token_is_old && call->on_token == nullptr && !call->logged_in_again) {
    token_.clear();
    call->logged_in_again = true;
    call->tries = 0;
    return Ask(std::move(call));
  }
  AvoidEndpoint(call->endpoint);
  const absl::Status here = At(options_.endpoints[call->endpoint], problem);
  absl::StrAppend(&call->problems, call->problems.empty() ? "" : "; ", here.message());
  const bool not_executed = !event.sent || WasNotExecuted(problem);
  // Another endpoint would refuse it, too, if etcd itself did.
  const bool last = call->tries == options_.endpoints.size() || absl::IsInvalidArgument(problem);
  if (!last && (call->on_txn == nullptr || not_executed)) return Ask(std::move(call));

  const absl::Status all(problem.code(), absl::StrCat("etcd gives no answer: ", call->problems));
  using enum EtcdTxnResult::Outcome;
  call->Refuse(all, not_executed ? kFailed : kUnknown);
}

absl::Status EtcdClient::Deliver(const Call& call, const HttpEvent& event) {
  if (!event.error.empty()) return NoAnswer(options_.endpoints[call.endpoint], event);
  GANNET_RETURN_IF_ERROR(EtcdError(event.status, event.text));
  if (call.on_token != nullptr) {
    auto token = DecodeAuthenticateAnswer(event.text);
    if (!token.ok()) return absl::UnavailableError(token.status().message());
    call.on_token(std::move(token));
    return absl::OkStatus();
  }
  if (call.on_compact != nullptr) {
    call.on_compact(absl::OkStatus());
    return absl::OkStatus();
  }
  const absl::Status decoded =
      call.on_range != nullptr ? DeliverRange(call, event.text) : DeliverTxn(call, event.text);
  // Not "invalid argument", by which etcd itself refuses a request.
  return decoded.ok() ? decoded : absl::UnavailableError(decoded.message());
}

absl::Status EtcdClient::DeliverRange(const Call& call, std::string_view text) {
  GANNET_ASSIGN_OR_RETURN(EtcdRangeAnswer answer, DecodeRangeAnswer(text));
  GANNET_RETURN_IF_ERROR(revisions_.CheckCluster(answer.header));
  GANNET_RETURN_IF_ERROR(CheckRevision(call, answer.header));
  revisions_.Tell(&answer.header, &answer.items);
  call.on_range(std::move(answer));
  return absl::OkStatus();
}

absl::Status EtcdClient::DeliverTxn(const Call& call, std::string_view text) {
  GANNET_ASSIGN_OR_RETURN(EtcdTxnAnswer answer, DecodeTxnAnswer(text));
  GANNET_RETURN_IF_ERROR(revisions_.CheckCluster(answer.header));
  GANNET_RETURN_IF_ERROR(CheckRevision(call, answer.header));
  revisions_.Tell(&answer.header, &answer.current);
  using enum EtcdTxnResult::Outcome;
  call.on_txn({.outcome = answer.succeeded ? kWon : kRefused,
               .revision = answer.header.revision,
               .current = std::move(answer.current)});
  return absl::OkStatus();
}

// --- watches ---

uint64_t EtcdClient::Watch(std::string_view prefix, WatchHandler handler) {
  const uint64_t id = next_id_++;
  watches_[id] = std::unique_ptr<WatchState>(new WatchState{
      .prefix = std::string(prefix), .handler = std::move(handler), .era = revisions_.era()});
  ListForWatch(id);
  return id;
}

void EtcdClient::Unwatch(uint64_t id) {
  const auto watch = watches_.find(id);
  if (watch == watches_.end()) return;
  if (const uint64_t request = watch->second->request; request != 0) {
    carrier_->Cancel(request);
    streams_.erase(request);
  }
  watches_.erase(watch);  // an answer to its list finds nobody
}

void EtcdClient::ListForWatch(uint64_t id) {
  const WatchState& watch = *watches_.at(id);
  Ask(std::unique_ptr<Call>(
      new Call{.path = "/v3/kv/range",
               .body = EncodeRangeOfPrefix(watch.prefix),
               .on_range = [this, id](auto answer) { OnList(id, std::move(answer)); },
               .lists = true,
               .delay_ms = watch.failures > 0 ? options_.retry_ms : 0}));
}

void EtcdClient::OnList(uint64_t id, absl::StatusOr<EtcdRangeAnswer> answer) {
  const auto found = watches_.find(id);
  if (found == watches_.end()) return;
  WatchState& watch = *found->second;
  if (!answer.ok()) {
    ++watch.failures;
    ListForWatch(id);
    return TellLost(id, answer.status());
  }
  watch.lost = false;
  watch.failures = 0;
  const bool went_back = std::exchange(watch.era, revisions_.era()) != revisions_.era();
  watch.next_revision = answer->header.revision + 1;
  Stream(id);
  const WatchHandler handler = watch.handler;  // it may end the watch
  handler({.kind = EtcdNews::Kind::kListed,
           .revision = answer->header.revision,
           .items = std::move(answer->items),
           .went_back = went_back});
}

void EtcdClient::Stream(uint64_t id) {
  WatchState& watch = *watches_.at(id);
  if (NeedsToken()) {
    waiting_streams_.push_back(id);
    return LogIn();
  }
  watch.request = next_id_++;
  watch.endpoint = first_;
  watch.created = false;
  streams_[watch.request] = id;
  carrier_->Send({.id = watch.request,
                  .url = options_.endpoints[watch.endpoint] + "/v3/watch",
                  .body = EncodeWatchOfPrefix(watch.prefix, revisions_.Etcds(watch.next_revision)),
                  .authorization = token_,
                  .stream = true,
                  // Tries each endpoint at once.
                  .delay_ms = DelayMs(watch.failures),
                  .answer_ms = options_.call_ms,
                  .silence_ms = options_.watch_silence_ms});
}

void EtcdClient::OnLine(uint64_t id, const HttpEvent& event) {
  if (const absl::Status error = EtcdError(event.status, event.text); !error.ok()) {
    return StreamAgain(id, error);
  }
  auto answer = DecodeWatchAnswer(event.text);
  if (!answer.ok()) return StreamAgain(id, absl::UnavailableError(answer.status().message()));
  if (const absl::Status other = revisions_.CheckCluster(answer->header); !other.ok()) {
    return StreamAgain(id, other);
  }
  OnWatchAnswer(id, *std::move(answer));
}

void EtcdClient::OnWatchAnswer(uint64_t id, EtcdWatchAnswer answer) {
  WatchState& watch = *watches_.at(id);
  if (answer.canceled) {
    // Gone are revisions that it has not told of.
    if (answer.compact_revision > 0) {
      carrier_->Cancel(watch.request);
      streams_.erase(std::exchange(watch.request, 0));
      return ListForWatch(id);
    }
    // What etcd refuses in a watch, it says here. A token that it does not know is one reason.
    token_.clear();
    return StreamAgain(id, absl::UnavailableError(absl::StrCat("etcd ended the watch: ",
                                                               Printable(answer.cancel_reason))));
  }
  // A member of etcd that is behind, or an etcd that has lost its data. The list tells which.
  if (revisions_.Told(answer.header.revision) + 1 < watch.next_revision) {
    carrier_->Cancel(watch.request);
    streams_.erase(std::exchange(watch.request, 0));
    AvoidEndpoint(watch.endpoint);
    ++watch.failures;
    return ListForWatch(id);
  }
  watch.created = true;
  watch.failures = 0;
  watch.lost = false;
  for (EtcdChange& change : answer.changes)
    change.item.mod_revision = revisions_.Told(change.item.mod_revision);
  std::erase_if(answer.changes, [&](const EtcdChange& change) {
    return change.item.mod_revision < watch.next_revision;
  });
  if (answer.changes.empty()) return;
  const int64_t revision = answer.changes.back().item.mod_revision;
  watch.next_revision = revision + 1;
  revisions_.NoteTold(revision);
  const WatchHandler handler = watch.handler;  // it may end the watch
  handler({.kind = EtcdNews::Kind::kChanged,
           .revision = revision,
           .changes = std::move(answer.changes)});
}

void EtcdClient::OnStreamEnd(uint64_t id, const HttpEvent& event) {
  WatchState& watch = *watches_.at(id);
  if (event.silent && watch.created) {  // nothing is wrong, as far as one knows
    streams_.erase(std::exchange(watch.request, 0));
    return Stream(id);
  }
  absl::Status why = event.error.empty() ? EtcdError(event.status, event.text)
                                         : NoAnswer(options_.endpoints[watch.endpoint], event);
  if (why.ok()) why = absl::UnavailableError("the watch ended");
  StreamAgain(id, why);
}

void EtcdClient::StreamAgain(uint64_t id, const absl::Status& why) {
  WatchState& watch = *watches_.at(id);
  const absl::Status here = At(options_.endpoints[watch.endpoint], why);
  if (absl::IsUnauthenticated(why)) token_.clear();
  if (watch.request != 0) carrier_->Cancel(watch.request);
  streams_.erase(std::exchange(watch.request, 0));
  AvoidEndpoint(watch.endpoint);
  ++watch.failures;
  const bool all_failed = watch.failures >= options_.endpoints.size();
  Stream(id);
  if (all_failed) TellLost(id, here);
}

void EtcdClient::TellLost(uint64_t id, const absl::Status& why) {
  WatchState& watch = *watches_.at(id);
  if (std::exchange(watch.lost, true)) return;
  const WatchHandler handler = watch.handler;  // it may end the watch
  handler({.kind = EtcdNews::Kind::kLost, .status = why});
}

// --- endpoints ---

absl::Status EtcdClient::CheckRevision(const Call& call, const EtcdHeader& header) {
  const bool goes_on = call.era == revisions_.era() && header.revision >= call.least;
  const bool listed = std::ranges::all_of(
      watches_, [this](const auto& watch) { return watch.second->era == revisions_.era(); });
  if (goes_on && (listed || call.lists)) return absl::OkStatus();
  if (!goes_on && call.era == revisions_.era()) GoBack();
  return absl::UnavailableError("etcd has lost its data, or was restored from a backup");
}

// What comes on a stream that began before has revisions of before, and is not heard any more.
void EtcdClient::GoBack() {
  revisions_.GoBack();
  for (const auto& [id, watch] : watches_) {
    if (watch->request == 0) continue;  // it lists, or is going to
    carrier_->Cancel(watch->request);
    streams_.erase(std::exchange(watch->request, 0));
    ListForWatch(id);
  }
}

void EtcdClient::AvoidEndpoint(size_t endpoint) {
  if (first_ == endpoint) first_ = (first_ + 1) % options_.endpoints.size();
}

int64_t EtcdClient::DelayMs(size_t failures) const {
  return failures >= options_.endpoints.size() ? options_.retry_ms : 0;
}

}  // namespace gannet
