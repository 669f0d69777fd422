#include "tools/kvcli/etcd_session.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"

namespace gannet::kvcli {
namespace {

constexpr int64_t kForEver = std::numeric_limits<int64_t>::max();
constexpr int64_t kPollMsMax = 1000;

}  // namespace

uint64_t NewHistory() {
  uint64_t number = 0;
  GANNET_CHECK(getentropy(&number, sizeof(number)) == 0, "the kernel has no random numbers");
  return number | 1;  // never 0
}

absl::StatusOr<EtcdSession> EtcdSession::Open(EtcdClient::Options options) {
  GANNET_ASSIGN_OR_RETURN(auto client, EtcdClient::Create(std::move(options)));
  return EtcdSession(std::move(client));
}

void EtcdSession::PollUntil(const std::function<bool()>& done, int64_t end_ns) {
  for (client_->Poll(); !done(); client_->Poll()) {
    const int64_t left_ms = (end_ns - MonotonicNs()) / kNsPerMs;
    if (left_ms <= 0) return;
    pollfd waiting = {.fd = client_->fd(), .events = POLLIN, .revents = 0};
    poll(&waiting, 1, static_cast<int>(std::min(left_ms, kPollMsMax)));
  }
}

absl::StatusOr<EtcdRangeAnswer> EtcdSession::RangeOfPrefix(std::string_view prefix) {
  std::optional<absl::StatusOr<EtcdRangeAnswer>> answer;
  client_->RangeOfPrefix(prefix, [&](auto it) { answer = std::move(it); });
  PollUntil([&] { return answer.has_value(); }, kForEver);
  return *std::move(answer);
}

EtcdTxnResult EtcdSession::Txn(const EtcdTxn& txn) {
  std::optional<EtcdTxnResult> result;
  client_->Txn(txn, [&](EtcdTxnResult it) { result = std::move(it); });
  PollUntil([&] { return result.has_value(); }, kForEver);
  return *std::move(result);
}

void EtcdSession::AwaitChange(std::string_view prefix, std::chrono::milliseconds time) {
  bool changed = false;
  const uint64_t watch = client_->Watch(
      prefix, [&](const EtcdNews& news) { changed |= news.kind == EtcdNews::Kind::kChanged; });
  PollUntil([&] { return changed; }, MonotonicNs() + time.count() * kNsPerMs);
  client_->Unwatch(watch);
}

}  // namespace gannet::kvcli
