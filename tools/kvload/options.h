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
#include "tools/kvload/sources.h"
#include "tools/kvload/workload.h"

namespace gannet::kvload {

// Who is put under load.
enum class BackendKind : uint8_t { kGannet, kRedis, kMemcached };

// "gannet", "redis" or "memcached".
absl::StatusOr<BackendKind> BackendOf(std::string_view name);
std::string_view NameOf(BackendKind backend);
// Where such a server listens when nobody says otherwise.
std::string DefaultServer(BackendKind backend);

enum class Phase : uint8_t { kLoad, kRun, kBoth };

// "load", "run" or "both".
absl::StatusOr<Phase> PhaseOf(std::string_view name);

// "poll" or "adaptive".
absl::StatusOr<Wait> WaitOf(std::string_view name);

inline constexpr char kRawReadWorkload[] = "raw_read";
inline constexpr char kTraceWorkload[] = "trace";

// What to run; one field per flag of the program, which says more about each.
struct Options {
  BackendKind backend = BackendKind::kGannet;
  std::vector<std::string> servers = {"127.0.0.1:7471"};
  std::string device = "auto";
  std::string workload = "b";
  std::optional<Distribution> distribution;  // none: the workload's own
  Phase phase = Phase::kBoth;
  uint64_t records = 100'000;
  uint64_t operations = 1'000'000;
  double seconds = 0;   // after which the run ends; 0 = after its operations
  double start_at = 0;  // since 1970, when the run begins; 0 = at once
  uint32_t threads = 1;
  uint32_t depth = 16;
  uint32_t connections = 1;  // a thread, with Redis
  Sizes sizes;
  uint64_t location_cache_bytes = 1 << 20;
  uint64_t seed = 1;
  uint64_t target_ops = 0;  // a second, over all threads; 0 = as fast as possible
  bool verify = true;
  bool allow_misses = false;
  bool warm_up = false;
  bool waits_for_server = false;
  Wait wait = Wait::kAdaptive;  // for answers, with Gannet
  uint64_t raw_span_bytes = 0;  // of the region, for bare READs; 0 = all of it
  bool raw_items = false;       // bare READs of the items that GETs would read
  uint64_t stride = 1;          // between the records that operations go to
  std::chrono::milliseconds deadline{10'000};
  std::string trace_file;
  std::string json_file;
};

inline constexpr uint64_t kOperationsMax = uint64_t{1} << 40;
inline constexpr double kSecondsMax = 1e6;
inline constexpr uint32_t kThreadsMax = 1024;
inline constexpr uint32_t kDepthMax = 4096;
inline constexpr uint32_t kConnectionsMax = 64;
inline constexpr uint32_t kKeyBytesMax = 250;
inline constexpr uint32_t kValueBytesMax = 1 << 20;

// InvalidArgument, naming the flag.
absl::Status Validate(const Options& options);

// How many records operations go to.
uint64_t RecordsUsed(const Options& options);

// Bytes of client memory for remembered locations over all threads.
uint64_t LocationCacheBytesOfThread(const Options& options);

}  // namespace gannet::kvload

#endif  // GANNET_TOOLS_KVLOAD_OPTIONS_H_
