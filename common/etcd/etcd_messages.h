#ifndef GANNET_COMMON_ETCD_ETCD_MESSAGES_H_
#define GANNET_COMMON_ETCD_ETCD_MESSAGES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace gannet {

// The requests to etcd's JSON gateway (API v3, etcd 3.4 and later), and its answers. In that JSON,
// keys and values are Base64, 64-bit numbers are strings, and a field with its default value is
// left out. https://etcd.io/docs/v3.4/dev-guide/api_grpc_gateway/
//
// The decoders take whatever bytes came. Fields that they do not know are skipped, because later
// versions of etcd have more. InvalidArgument says what is wrong.

struct EtcdKeyValue {
  std::string key;
  std::string value;
  int64_t mod_revision = 0;  // etcd's revision when the key was last changed

  bool operator==(const EtcdKeyValue&) const = default;
};

// Changes keys, if all compares hold. etcd executes it as one step.
struct EtcdTxn {
  struct Compare {
    std::string key;
    int64_t mod_revision = 0;  // 0: there is no such key
    bool prefix = false;       // all keys that begin with `key` have that revision
    // Not empty: instead, the key is there, and its value begins with that and is longer.
    std::string value_begins = {};
  };
  struct Put {
    std::string key;
    std::string value;
  };
  std::vector<Compare> compares;
  std::vector<Put> puts;
  std::vector<std::string> deletes = {};  // keys; it is no matter if there are none
  std::vector<std::string> reads = {};  // keys that the answer has in either case, as they are then
};

// Which cluster of etcd answered, and at which revision.
struct EtcdHeader {
  uint64_t cluster_id = 0;
  int64_t revision = 0;

  bool operator==(const EtcdHeader&) const = default;
};
struct EtcdRangeAnswer {
  EtcdHeader header;
  std::vector<EtcdKeyValue> items;  // by key, ascending
};
struct EtcdTxnAnswer {
  EtcdHeader header;
  bool succeeded = false;
  // If it did not succeed: what is below the compared keys. Then what is below `reads`.
  std::vector<EtcdKeyValue> current;
};
struct EtcdChange {
  EtcdKeyValue item;  // of a deletion: no value
  bool deleted = false;

  bool operator==(const EtcdChange&) const = default;
};
// One line of the answer to a watch.
struct EtcdWatchAnswer {
  EtcdHeader header;
  bool created = false;
  bool canceled = false;
  int64_t compact_revision = 0;  // not 0: older revisions are gone, so list again
  std::string cancel_reason;
  std::vector<EtcdChange> changes;  // by revision, ascending
};

// Returns the first key behind all that begin with `prefix`. REQUIRES: a byte of it is not 0xff.
std::string EndOfPrefix(std::string_view prefix);

std::string EncodeRange(std::string_view key);
std::string EncodeRangeOfPrefix(std::string_view prefix);
std::string EncodeTxn(const EtcdTxn& txn);
// All changes of `start_revision` and later.
std::string EncodeWatchOfPrefix(std::string_view prefix, int64_t start_revision);

// What keys were before this revision is forgotten.
std::string EncodeCompaction(int64_t revision);
std::string EncodeAuthenticate(std::string_view user, std::string_view password);

// Returns a token, which is fit for a header.
absl::StatusOr<std::string> DecodeAuthenticateAnswer(std::string_view text);
absl::StatusOr<EtcdRangeAnswer> DecodeRangeAnswer(std::string_view text);
absl::StatusOr<EtcdTxnAnswer> DecodeTxnAnswer(std::string_view text);
absl::StatusOr<EtcdWatchAnswer> DecodeWatchAnswer(std::string_view line);

}  // namespace gannet

#endif  // GANNET_COMMON_ETCD_ETCD_MESSAGES_H_
