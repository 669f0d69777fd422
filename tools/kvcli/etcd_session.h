#ifndef GANNET_TOOLS_KVCLI_ETCD_SESSION_H_
#define GANNET_TOOLS_KVCLI_ETCD_SESSION_H_

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/etcd/etcd_client.h"

namespace gannet::kvcli {

// Returns a random name for the items of a group (GroupConfig::history), which is not 0.
uint64_t NewHistory();

// An EtcdClient whose calls wait for their answers. One thread.
class EtcdSession {
 public:
  // Errors as EtcdClient::Create.
  static absl::StatusOr<EtcdSession> Open(EtcdClient::Options options);

  absl::StatusOr<EtcdRangeAnswer> RangeOfPrefix(std::string_view prefix);
  EtcdTxnResult Txn(const EtcdTxn& txn);
  // Waits until one of a prefix's keys has changed, or for so long.
  void AwaitChange(std::string_view prefix, std::chrono::milliseconds time);

 private:
  explicit EtcdSession(std::unique_ptr<EtcdClient> client) : client_(std::move(client)) {}
  // Waits until `done`, or until then. Each call of the client ends by itself.
  void PollUntil(const std::function<bool()>& done, int64_t end_ns);

  std::unique_ptr<EtcdClient> client_;
};

}  // namespace gannet::kvcli

#endif  // GANNET_TOOLS_KVCLI_ETCD_SESSION_H_
