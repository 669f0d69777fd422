#ifndef GANNET_TOOLS_KVLOAD_BACKEND_H_
#define GANNET_TOOLS_KVLOAD_BACKEND_H_

#include <gannet/async_client.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "tools/kvload/operation.h"

namespace gannet::kvload {

// How far apart the READs of a run are in memory.
struct Spread {
  uint64_t span_bytes = 0;  // from the first address to the last; 0: not known
  uint64_t pages = 0;       // number of different 4 KiB pages in which a READ begins
};

// One thread's connection to the store under load. Many operations may be in flight. Polling
// returns the finished ones. One owner thread. A key, buffer or value must stay unchanged until its
// operation is finished.
class Backend {
 public:
  virtual ~Backend() = default;
  // Each call starts one operation, which is sent by the next Poll at the latest. After an error
  // the operation was not started.
  virtual absl::Status Get(std::string_view key, std::span<std::byte> out, uint64_t user_data) = 0;
  // `ttl`: 0 is for ever.
  virtual absl::Status Put(std::string_view key, std::string_view value,
                           std::chrono::milliseconds ttl, uint64_t user_data) = 0;
  // An operation of another kind than those above. Its completion says AlreadyExists, NotFound,
  // FailedPrecondition or OutOfRange if the store refused it, and `found` if the key was there.
  struct Change {
    OpKind kind;
    std::string_view key;
    std::string_view value;  // to be put, or to be added
    std::chrono::milliseconds ttl{0};
    uint64_t version = 0;      // cas
    std::span<std::byte> out;  // gat
  };
  virtual absl::Status StartChange(const Change& change, uint64_t /*user_data*/) {
    return absl::UnimplementedError(absl::StrCat(
        "this store has no ", std::string(kOpNames[static_cast<size_t>(change.kind)])));
  }
  virtual absl::Status RawRead(std::span<std::byte> /*out*/, uint64_t /*user_data*/) {
    return absl::UnimplementedError("no bare READs");
  }
  // Returns memory for the buffers of all operations that may be in flight, if the backend reads
  // and writes values there without a copy. Empty: it has none, and any memory will do. It lives as
  // long as the backend.
  virtual std::span<std::byte> Memory(uint64_t /*bytes*/) { return {}; }
  // Makes progress, fills in finished operations and returns their number. Never blocks, except for
  // memcached, whose library waits for an answer.
  virtual size_t Poll(std::span<Completion> out) = 0;
  // Like Poll. But if no operation is finished, it waits for one, at most `deadline_ns`
  // nanoseconds, in the way that real users of the store would wait.
  virtual size_t Wait(std::span<Completion> out, int64_t /*deadline_ns*/) { return Poll(out); }
  virtual Spread spread() const { return {}; }
  // Returns why the server is lost: it does not answer any more, or it was restarted and does not
  // have the loaded data. Empty if it is not lost. Poll sets and clears it.
  virtual std::string_view lost() const { return {}; }
  // Returns true while new operations would fail at once, because a server cannot be reached.
  virtual bool away() const { return false; }
  // Returns how often the store failed over to another server that has all data.
  virtual uint64_t fail_overs() const { return 0; }
  // Returns how many READs told whether copies may be used (ServerInfo::near_cache_reads).
  virtual uint64_t near_cache_reads() const { return 0; }
  // Returns how many works were posted by each rail, by its address; empty: there is one.
  virtual std::map<std::string, uint64_t> rail_works() const { return {}; }
};

// The servers' costs that are charged to the run, summed over all servers.
struct ServerTotals {
  uint64_t rpcs = 0;
  uint64_t cpu_us = 0;
  // Doorbells for replies and for receives, and completions of sends. 0 for stores without verbs.
  uint64_t reply_posts = 0;
  uint64_t receive_posts = 0;
  uint64_t send_completions = 0;
  uint64_t disk_answers = 0;  // GETs whose values came from the server's tier
  uint64_t slots_used = 0;
  uint64_t slots_total = 0;  // 0: the store has no such index
};

// A store under load. A run gets its backends and the servers' totals from it.
class StoreUnderLoad {
 public:
  // The device that carries the requests, for the report.
  struct Transport {
    std::string device;
    std::string kind;
  };

  virtual ~StoreUnderLoad() = default;
  // Returns a backend for one thread, which calls this itself. Blocks until connected. Thread safe.
  virtual absl::StatusOr<std::unique_ptr<Backend>> Connect(uint32_t thread) = 0;
  virtual absl::StatusOr<ServerTotals> Totals() = 0;
  virtual Transport transport() const = 0;
};

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_BACKEND_H_
