#ifndef GANNET_COMMON_ETCD_ETCD_H_
#define GANNET_COMMON_ETCD_ETCD_H_

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/etcd/etcd_messages.h"

namespace gannet {

// What became of a transaction.
struct EtcdTxnResult {
  enum class Outcome : uint8_t {
    kWon,      // executed. The keys that it put have mod_revision `revision`
    kRefused,  // a compared key had changed, so it changed nothing
    kFailed,   // not executed, and never will be. `status` says why
    // Executed, or not, or still to be executed. Reading the keys settles it only if they have
    // changed. `status` says why nobody knows.
    kUnknown,
  };
  Outcome outcome = Outcome::kUnknown;
  absl::Status status;
  int64_t revision = 0;
  // kRefused: what is below the compared keys. In both cases, then what is below EtcdTxn::reads.
  std::vector<EtcdKeyValue> current;
};

// What a watch tells.
struct EtcdNews {
  enum class Kind : uint8_t {
    kListed,   // `items` is all that is there as of `revision`: forget what you had
    kChanged,  // `changes` came since, by revision
    kLost,     // nothing of etcd can be heard. `status` says why. The watch goes on trying
  };
  Kind kind = Kind::kLost;
  int64_t revision = 0;
  std::vector<EtcdKeyValue> items;
  std::vector<EtcdChange> changes;
  absl::Status status;
  // kListed: since the list before, etcd has lost its data, or was restored from a backup.
  bool went_back = false;
};

// A way to etcd. EtcdClient is the real one, and says what holds; a simulation has another.
//
// Thread safety: one caller. Handlers run in Poll, and may call everything but Poll. None is called
// after destruction.
class Etcd {
 public:
  using RangeHandler = std::function<void(absl::StatusOr<EtcdRangeAnswer>)>;
  using TxnHandler = std::function<void(EtcdTxnResult)>;
  using CompactHandler = std::function<void(absl::Status)>;
  using WatchHandler = std::function<void(EtcdNews)>;

  virtual ~Etcd() = default;

  // Readable when Poll has something to do. -1: call it from time to time.
  virtual int fd() const = 0;
  // CLOCK_MONOTONIC of whoever calls.
  virtual int64_t NowNs() const = 0;
  // Calls the handlers of what came.
  virtual void Poll() = 0;

  virtual void Range(std::string_view key, RangeHandler handler) = 0;
  virtual void Txn(const EtcdTxn& txn, TxnHandler handler) = 0;
  // Makes etcd forget what all its keys were before this revision.
  virtual void Compact(int64_t revision, CompactHandler handler) = 0;
  // Lists all keys that begin with the prefix, and tells what changes. Returns the watch's number.
  virtual uint64_t Watch(std::string_view prefix, WatchHandler handler) = 0;
};

}  // namespace gannet

#endif  // GANNET_COMMON_ETCD_ETCD_H_
