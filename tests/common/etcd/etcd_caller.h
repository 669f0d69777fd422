#ifndef GANNET_TESTS_COMMON_ETCD_ETCD_CALLER_H_
#define GANNET_TESTS_COMMON_ETCD_ETCD_CALLER_H_

#include <gtest/gtest.h>
#include <poll.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/etcd/etcd_client.h"
#include "softverbs/tests/support/child_process.h"

namespace gannet {

// An EtcdClient whose calls wait for their answers.
class EtcdCaller {
 public:
  explicit EtcdCaller(EtcdClient::Options options) {
    auto client = EtcdClient::Create(std::move(options));
    EXPECT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
  }
  // Of one endpoint only a hang ends a call. Of several, one may be away.
  explicit EtcdCaller(std::vector<std::string> endpoints)
      : EtcdCaller(EtcdClient::Options{.endpoints = endpoints,
                                       .call_ms = endpoints.size() == 1 ? 20'000 : 2'000}) {}

  EtcdClient& client() { return *client_; }

  // Polls until `done`. Returns false if that takes so long that something hangs.
  bool PollUntil(const std::function<bool()>& done) {
    using Clock = std::chrono::steady_clock;
    const auto end = Clock::now() + test_support::kStepTimeout;
    while (!done()) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
      if (left.count() <= 0) return false;
      pollfd waiting = {.fd = client_->fd(), .events = POLLIN};
      poll(&waiting, 1, static_cast<int>(left.count()));
      client_->Poll();
    }
    return true;
  }

  absl::StatusOr<EtcdRangeAnswer> Range(std::string_view key) {
    return Ask([&](auto handler) { client_->Range(key, std::move(handler)); });
  }
  absl::StatusOr<EtcdRangeAnswer> RangeOfPrefix(std::string_view prefix) {
    return Ask([&](auto handler) { client_->RangeOfPrefix(prefix, std::move(handler)); });
  }
  EtcdTxnResult Txn(const EtcdTxn& txn) {
    std::optional<EtcdTxnResult> result;
    client_->Txn(txn, [&](EtcdTxnResult it) { result = std::move(it); });
    EXPECT_TRUE(PollUntil([&] { return result.has_value(); }));
    return result.value_or(EtcdTxnResult{.status = absl::InternalError("hangs")});
  }
  // Puts a key if its revision is this one.
  EtcdTxnResult Put(const std::string& key, const std::string& value, int64_t mod_revision) {
    return Txn({.compares = {{.key = key, .mod_revision = mod_revision}}, .puts = {{key, value}}});
  }
  // Puts a key whatever is there.
  EtcdTxnResult Put(const std::string& key, const std::string& value) {
    return Txn({.puts = {{key, value}}});
  }

 private:
  absl::StatusOr<EtcdRangeAnswer> Ask(const std::function<void(EtcdClient::RangeHandler)>& ask) {
    std::optional<absl::StatusOr<EtcdRangeAnswer>> result;
    ask([&](absl::StatusOr<EtcdRangeAnswer> it) { result = std::move(it); });
    EXPECT_TRUE(PollUntil([&] { return result.has_value(); }));
    return result ? *std::move(result) : absl::InternalError("hangs");
  }

  std::unique_ptr<EtcdClient> client_;
};

}  // namespace gannet

#endif  // GANNET_TESTS_COMMON_ETCD_ETCD_CALLER_H_
