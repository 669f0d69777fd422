#ifndef GANNET_COMMON_ETCD_ETCD_CLIENT_H_
#define GANNET_COMMON_ETCD_ETCD_CLIENT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/etcd/etcd.h"
#include "common/etcd/etcd_messages.h"
#include "common/etcd/etcd_revisions.h"
#include "common/etcd/http_carrier.h"

namespace gannet {

// An asynchronous client of a cluster of etcd, through its JSON gateway. Its thread only carries
// bytes (HttpCarrier). All that is decided, and all handlers, run in Poll.
//
// 1. A range is linearizable. It is asked of each endpoint in turn until one answers.
// 2. A transaction is sent once. It goes to another endpoint only if the one before was not
//    reached, so kRefused never means that an earlier try of the same transaction won.
// 3. A watch tells every change of its prefix in order, or lists all again. So the listener has
//    what etcd has, some time later.
// 4. An endpoint that fails is not asked first next time.
// 5. If there is a user, all waits until etcd has given a token for its password. When etcd does
//    not know the token any more, a new one is asked for, and the request is sent again: etcd has
//    not executed it.
// 6. All revisions that it tells grow, and none is told for two things. If etcd has lost its data,
//    or was restored from a backup, its own begin anew below those that it told before. Then what
//    this client tells is etcd's revision and what it had told by then. A transaction that compares
//    an earlier one is refused, and what was under way meanwhile has an unknown result. Rule 1
//    shows it: the answer to a range or a transaction is not older than what was told before it was
//    asked. Each watch lists, and says that etcd went back, before any other answer of the new etcd
//    is told: its listener would take what lies there for newer than what it knows.
//
// Thread safety: one caller. Handlers may call everything but Poll. No handler is called after
// destruction.
class EtcdClient : public Etcd {
 public:
  struct Options {
    std::vector<std::string> endpoints;  // "http://10.0.0.1:2379", or https
    std::string ca_file;                 // certificates (PEM) that sign etcd's; empty: the system's
    std::string cert_file;               // this client's certificate (PEM), and its key
    std::string key_file;
    std::string user;  // empty: it has none
    std::string password;
    int64_t call_ms = 2000;  // how long one endpoint may take for an answer
    // A watch that heard nothing for so long is begun again, as the connection may be dead.
    int64_t watch_silence_ms = 2000;
    int64_t retry_ms = 100;  // how long a watch waits when all endpoints have failed
  };
  // InvalidArgument: no endpoints, or one that is no URL. FailedPrecondition: no such file.
  static absl::StatusOr<std::unique_ptr<EtcdClient>> Create(Options options);
  ~EtcdClient() override;

  int fd() const override { return carrier_->fd(); }
  int64_t NowNs() const override;
  void Poll() override;

  // An error says for each endpoint why it gave no answer. Unavailable: try again. Others: somebody
  // has to mend something first.
  void Range(std::string_view key, RangeHandler handler) override;
  void RangeOfPrefix(std::string_view prefix, RangeHandler handler);
  void Txn(const EtcdTxn& txn, TxnHandler handler) override;
  // Errors as those of Range. InvalidArgument: it has forgotten that already, or it is not there
  // yet.
  void Compact(int64_t revision, CompactHandler handler) override;
  uint64_t Watch(std::string_view prefix, WatchHandler handler) override;
  void Unwatch(uint64_t watch);

 private:
  struct Call;
  struct WatchState;

  EtcdClient(Options options, std::unique_ptr<HttpCarrier> carrier);
  // Returns true if it must ask for a token, because it has a user and no token.
  bool NeedsToken() const { return !options_.user.empty() && token_.empty(); }
  void LogIn();
  void OnLogIn(absl::StatusOr<std::string> token);
  void Ask(std::unique_ptr<Call> call);
  void OnCallEnd(std::unique_ptr<Call> call, const HttpEvent& event);
  // Returns OK if it was an answer, and has told the handler.
  absl::Status Deliver(const Call& call, const HttpEvent& event);
  absl::Status DeliverRange(const Call& call, std::string_view text);
  absl::Status DeliverTxn(const Call& call, std::string_view text);
  void ListForWatch(uint64_t id);
  void OnList(uint64_t id, absl::StatusOr<EtcdRangeAnswer> answer);
  void Stream(uint64_t id);
  void OnLine(uint64_t id, const HttpEvent& event);
  void OnWatchAnswer(uint64_t id, EtcdWatchAnswer answer);
  void OnStreamEnd(uint64_t id, const HttpEvent& event);
  // The watch's endpoint failed: goes on with another one.
  void StreamAgain(uint64_t id, const absl::Status& why);
  void TellLost(uint64_t id, const absl::Status& why);
  // Returns what is wrong if the call is from before etcd went back, or shows that it has.
  absl::Status CheckRevision(const Call& call, const EtcdHeader& header);
  // etcd has lost its data, or a part of it.
  void GoBack();
  void AvoidEndpoint(size_t endpoint);
  int64_t DelayMs(size_t failures) const;

  const Options options_;
  const std::unique_ptr<HttpCarrier> carrier_;
  size_t first_ = 0;  // of the endpoints, which is asked first
  uint64_t next_id_ = 1;
  EtcdRevisions revisions_;
  std::string token_;
  bool logging_in_ = false;
  bool login_failed_ = false;                                   // the last try
  std::vector<std::unique_ptr<Call>> waiting_calls_;            // for a token
  std::vector<uint64_t> waiting_streams_;                       // the same: watches
  absl::flat_hash_map<uint64_t, std::unique_ptr<Call>> calls_;  // by the request's id
  absl::flat_hash_map<uint64_t, std::unique_ptr<WatchState>> watches_;
  absl::flat_hash_map<uint64_t, uint64_t> streams_;  // the request's id -> the watch's
};

}  // namespace gannet

#endif  // GANNET_COMMON_ETCD_ETCD_CLIENT_H_
