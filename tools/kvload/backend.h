#ifndef GANNET_TOOLS_KVLOAD_BACKEND_H_
#define GANNET_TOOLS_KVLOAD_BACKEND_H_

#include <gannet/async_client.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace gannet::kvload {

// How far what is READ lies apart.
struct Spread {
  uint64_t span_bytes = 0;  // from the first place to the last; 0: not known
  uint64_t pages = 0;       // different ones of 4 KiB in which a READ begins
};

// What one thread of a load run drives: many operations in flight, finished ones by polling. One
// owner thread. A key, buffer or value must stay as it is until its operation is finished.
class Backend {
 public:
  virtual ~Backend() = default;
  // Each starts one operation, sent at the latest by the next Poll; an error means that it was not
  // started.
  virtual absl::Status Get(std::string_view key, std::span<std::byte> out, uint64_t user_data) = 0;
  virtual absl::Status Put(std::string_view key, std::string_view value, uint64_t user_data) = 0;
  virtual absl::Status RawRead(std::span<std::byte> /*out*/, uint64_t /*user_data*/) {
    return absl::UnimplementedError("no bare READs");
  }
  // Makes progress and fills in finished operations. memcached's waits for an answer, since its
  // library does; the others never block.
  virtual size_t Poll(std::span<Completion> out) = 0;
  // As Poll; but where nothing is finished it waits until something is, at most for so long, as the
  // backend's users would.
  virtual size_t Wait(std::span<Completion> out, int64_t /*deadline_ns*/) { return Poll(out); }
  virtual Spread spread() const { return {}; }
  // Why no server answers any more, or the one that does is not the one that was loaded. Empty as
  // long as there is hope. Set and cleared by Poll.
  virtual std::string_view lost() const { return {}; }
  // True while whatever is begun would fail at once, because a server cannot be reached.
  virtual bool away() const { return false; }
};

// Sums over all servers of what the run is charged for.
struct ServerTotals {
  uint64_t rpcs = 0;
  uint64_t cpu_us = 0;
  // Doorbells for replies and for receives, and completions of sends; 0 where there are no verbs.
  uint64_t reply_posts = 0;
  uint64_t receive_posts = 0;
  uint64_t send_completions = 0;
  uint64_t slots_used = 0;
  uint64_t slots_total = 0;  // 0: the server has no such thing
};

// A store under load: where a run gets its backends and the server's side of the figures.
class Store {
 public:
  // What carries the requests, for the report.
  struct Transport {
    std::string device;
    std::string kind;
  };

  virtual ~Store() = default;
  // A backend for one thread, called on that thread; thread safe. Blocks until connected.
  virtual absl::StatusOr<std::unique_ptr<Backend>> Connect(uint32_t thread) = 0;
  virtual absl::StatusOr<ServerTotals> Totals() = 0;
  virtual Transport transport() const = 0;
};

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_BACKEND_H_
