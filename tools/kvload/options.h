#ifndef GANNET_TOOLS_KVLOAD_OPTIONS_H_
#define GANNET_TOOLS_KVLOAD_OPTIONS_H_

#include <gannet/types.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/kvload/rate.h"
#include "tools/kvload/sources.h"
#include "tools/kvload/workload.h"

namespace gannet::kvload {

// The kind of store under load.
enum class BackendKind : uint8_t { kGannet, kRedis, kMemcached };

// Parses "gannet", "redis" or "memcached". Returns InvalidArgument for anything else.
absl::StatusOr<BackendKind> BackendOf(std::string_view name);
std::string_view NameOf(BackendKind backend);
// Returns HOST:PORT where such a server listens by default.
std::string DefaultServer(BackendKind backend);

enum class Phase : uint8_t { kLoad, kRun, kBoth };

// Parses "load", "run" or "both". Returns InvalidArgument for anything else.
absl::StatusOr<Phase> PhaseOf(std::string_view name);

// Parses "poll" or "adaptive". Returns InvalidArgument for anything else.
absl::StatusOr<Wait> WaitOf(std::string_view name);

inline constexpr char kRawReadWorkload[] = "raw_read";
inline constexpr char kTraceWorkload[] = "trace";
inline constexpr char kMixWorkload[] = "mix";  // in the report

// What to run. Has one field for each flag of the program. The flags' help says more about each.
struct LoadOptions {
  BackendKind backend = BackendKind::kGannet;
  std::vector<std::string> servers = {"127.0.0.1:7471"};
  std::string device = "auto";
  std::string auth_file;  // of gannet::Options; empty: no key
  std::string workload = "b";
  std::optional<Distribution> distribution;  // if not given, the workload's own
  Phase phase = Phase::kBoth;
  uint64_t records = 100'000;
  uint64_t operations = 1'000'000;
  double seconds = 0;   // time limit of the run; 0: it ends after its operations
  double start_at = 0;  // when the run begins, in seconds since 1970; 0: at once
  uint32_t threads = 1;
  uint32_t depth = 16;
  uint32_t connections = 1;  // per thread; only for Redis
  Sizes sizes;
  std::string value_sizes;           // as the flag gave them; empty: all have the same size
  std::string mix;                   // named operations, instead of a workload's
  std::chrono::milliseconds ttl{0};  // of everything that is written; 0: for ever
  uint64_t location_cache_bytes = 1 << 20;
  uint64_t near_cache_bytes = 0;
  uint32_t rails = 8;  // of a server, that are used at most
  uint64_t seed = 1;
  Rate rate;              // operations a second, of all threads together
  std::string rate_text;  // as the flag gave it; empty: as many as possible
  bool verify = true;
  bool allow_misses = false;
  bool warm_up = false;
  double warmup_seconds = 0;  // of the run's operations, before it is measured
  bool waits_for_server = false;
  Wait wait = Wait::kAdaptive;  // how to wait for answers; only for Gannet
  uint64_t raw_span_bytes = 0;  // bytes of the region that bare READs use; 0: all of it
  bool raw_items = false;       // bare READs read the items that GETs would read
  uint64_t stride = 1;          // operations use every stride-th record
  std::chrono::milliseconds deadline{10'000};
  std::string trace_file;
  std::string json_file;
  std::string csv_file;
  std::string percentiles_file;
  std::string svg_file;
  std::string sweep;  // FLAG:VALUE,... for several runs; empty: one run
};

inline constexpr uint64_t kOperationsMax = uint64_t{1} << 40;
inline constexpr double kSecondsMax = 1e6;
inline constexpr uint32_t kThreadsMax = 1024;
inline constexpr uint32_t kDepthMax = 4096;
inline constexpr uint32_t kConnectionsMax = 64;
inline constexpr uint32_t kKeyBytesMax = 250;
inline constexpr uint32_t kValueBytesMax = 64 << 20;

// Returns InvalidArgument, with the flag's name, if a value is wrong or two do not fit together.
absl::Status Validate(const LoadOptions& options);

// InvalidArgument: the store of this backend has no such operation here. `where` is the flag that
// asks for it.
absl::Status CheckOperation(BackendKind backend, OpKind kind, std::string_view where);

// Returns how many different records the operations use.
uint64_t RecordsUsed(const LoadOptions& options);

// Returns one thread's share of the client memory for remembered locations.
uint64_t LocationCacheBytesOfThread(const LoadOptions& options);

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_OPTIONS_H_
