// kvload: puts load on a Gannet server, or for comparison on a Redis or memcached server, checks
// every value, and reports the costs.
//
// Exit code: 0 if every operation was answered and every value was right, 2 for wrong usage, 130 if
// interrupted, 1 otherwise.

#include <gflags/gflags.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/clock.h"
#include "common/base/lost_outputs.h"
#include "common/base/server_list.h"
#include "common/base/status_macros.h"
#include "common/program/command_line.h"
#include "common/rdma/device_choice.h"
#include "tools/build_stamp/build_stamp.h"
#include "tools/kvload/gannet_store.h"
#include "tools/kvload/load_runs.h"
#include "tools/kvload/memcached_store.h"
#include "tools/kvload/named_mix.h"
#include "tools/kvload/options.h"
#include "tools/kvload/outputs.h"
#include "tools/kvload/redis_store.h"
#include "tools/kvload/sweep.h"

DEFINE_string(backend, "gannet", "the store to load: gannet, redis or memcached");
DEFINE_string(server, "",
              "HOST:PORT of the server; several Gannet servers are separated by commas; a "
              "group is cluster:HOST:PORT,HOST:PORT; empty: "
              "$GANNET_SERVER, or the backend's usual port on this host");
DEFINE_string(device, "auto", "auto, soft (the user-space device), or an RDMA device's name");
DEFINE_string(auth_file, "",
              "file of keys, the first of which is shown to the server: lines of ID HEXKEY [read]; "
              "empty: $GANNET_AUTH_FILE, or no key");
DEFINE_string(
    workload, "b",
    "YCSB core workload: a (50 % updates), b (5 % updates), c (reads only), d (5 % "
    "inserts, reads of the latest), f (50 % read-modify-write), w (PUTs); or raw_read, bare READs "
    "of --value_size bytes");
DEFINE_string(mix, "",
              "shares of operations, instead of a --workload: get, gets, put, set, rmw, cas, add, "
              "replace, delete, incr, decr, append, prepend, touch, gat; for example "
              "get:0.91,add:0.04,gets:0.02,cas:0.03; counters and growing values have keys of "
              "their own");
DEFINE_uint64(ttl_ms, 0, "time to live of everything that is written; 0: for ever");
DEFINE_uint32(
    cluster, 0,
    "take --mix, --key_size, --value_size and --ttl_ms, as far as they are not given, "
    "from this cluster of Twitter's caches (twitter/cache-trace, stat/2020Mar.md): 2, 11, "
    "14, 16, 18, 22, 23, 29, 31, 37, 50, 52 or 53; 0: none");
DEFINE_string(distribution, "",
              "how keys are chosen: zipfian (0.99, scrambled), uniform or latest; empty: as the "
              "workload says");
DEFINE_string(phase, "both",
              "load the records, run the workload on them, or both: load, run, both");
DEFINE_uint64(records, 100'000, "number of records to load, and to run on");
DEFINE_uint64(operations, 1'000'000, "operations of the run");
DEFINE_double(
    seconds, 0,
    "end the run after this many seconds, or after --operations if that is given and comes first; "
    "0: after --operations");
DEFINE_double(start_at, 0,
              "begin the run at this time, in seconds since 1970, so that several processes begin "
              "together; all threads must be connected by then; 0: at once");
DEFINE_uint32(threads, 1, "number of threads, each with its own connection");
DEFINE_uint32(depth, 16, "operations in flight per thread");
DEFINE_uint32(connections, 1,
              "connections per thread, which share its --depth; only with --backend=redis");
DEFINE_uint32(key_size, 16, "bytes of a key");
DEFINE_uint32(value_size, 100, "bytes of a value; at least 24 with --verify");
DEFINE_string(value_sizes, "",
              "bytes of values and their shares of the records, instead of --value_size: "
              "100:0.5,4K:0.4,1M:0.1; a record keeps its size");
DEFINE_uint64(location_cache, 1 << 20,
              "bytes for remembered locations, for all threads together; 0: remember none");
DEFINE_uint32(rails, 8, "rails of a server that are used at most, 1 to 8");
DEFINE_uint64(near_cache, 0,
              "bytes for copies of items, for all threads together: GETs of items that the server "
              "leases (its --item_lease_ms) are answered from them; 0: off");
DEFINE_uint64(seed, 1, "seed of all random choices");
DEFINE_string(
    rate, "",
    "operations a second of all threads together, in an open loop: latency counts from when an "
    "operation was due. RATE, or steps and ramps one after the other: RATE:TIME, FROM:TO:TIME. For "
    "example 1000, or 5k:10s,5k:100k:30s; the last rate stays. If neither --seconds nor "
    "--operations is given, the run ends with the last TIME. Empty: as fast as possible");
DEFINE_uint64(target_ops, 0, "the same as --rate with one number; 0: as fast as possible");
DEFINE_bool(verify, true, "check every value that is read");
DEFINE_bool(warm_up, false,
            "read every record once before the run, on the same connections, without measuring, so "
            "that the client knows the locations and pages are mapped; raw_read makes --records "
            "READs instead");
DEFINE_double(warmup_seconds, 0,
              "run the workload for so long before the run, on the same connections, with other "
              "random choices and without measuring; 0: do not");
DEFINE_uint64(raw_span, 0, "bytes of the server's region that raw_read reads from; 0: all");
DEFINE_bool(
    raw_items, false,
    "raw_read looks up the items that GETs with the same flags would read, and reads these in the "
    "same order; without this flag it reads random places");
DEFINE_uint64(
    stride, 1,
    "use only every Kth record, so that few records are spread over as much memory as all "
    "records");
DEFINE_bool(allow_misses, false, "do not count it as wrong if a key that was loaded is not found");
DEFINE_uint64(
    deadline_ms, 10'000,
    "deadline of every operation, in milliseconds; it is long, because a slow answer counts as "
    "latency and not as an error");
DEFINE_string(trace, "",
              "replay this trace instead of a workload, without its times: a block trace (CSV: "
              "version,time,op,size,lbn), one of Twitter's caches (CSV: timestamp, key, key size, "
              "value size, client, operation, TTL), or Mooncake's (JSON lines with hash_ids, whose "
              "blocks have --value_size bytes)");
DEFINE_string(json, "", "write the result to this file; -: to stdout, and the table to stderr");
DEFINE_string(csv, "", "write a row for each second of the run to this file");
DEFINE_string(
    percentiles, "",
    "write the latencies of all operations to this file, as HdrHistogram's plotter takes "
    "them, in microseconds; with --sweep a file for each run, with its name behind a dot");
DEFINE_string(sweep, "",
              "run once for each value of a flag, and compare: threads, depth or value_size, as in "
              "threads:1,2,4,8; the records are loaded once, unless their size changes");
DEFINE_string(svg, "", "draw the result of --sweep to this file, by gnuplot");
DEFINE_bool(progress, false,
            "show throughput, p99, errors, READs per GET and the time left on stderr, once a "
            "second; by default, if that is a terminal");
DEFINE_string(wait, "adaptive",
              "how a thread waits for answers: adaptive (polls as long as answers usually take, "
              "then sleeps), or poll (never sleeps, so it needs a core for each thread)");
DEFINE_string(on_server_loss, "exit",
              "what to do if the server is gone for two seconds, or comes back without its data: "
              "exit (and report what was measured until then), or wait (until it is back; the "
              "rate leaves out the time without it)");

namespace gannet::kvload {
namespace {

constexpr char kNotes[] =
    "GANNET_SERVER and GANNET_AUTH_FILE in the environment are the defaults of --server and\n"
    "--auth_file with --backend=gannet.\n"
    "Exit code: 0 if every operation was answered and every value was right, 1 otherwise, 2 wrong\n"
    "usage, 130 interrupted (Ctrl-C). An interrupted run still shows what it measured.\n";

std::vector<FlagGroup> FlagGroups() {
  return {{"The store", "backend server device auth_file"},
          {"What is done",
           "workload mix cluster trace distribution records key_size value_size value_sizes ttl_ms "
           "stride seed raw_span raw_items"},
          {"How much, how fast, for how long",
           "phase operations seconds rate target_ops threads depth connections start_at warm_up "
           "warmup_seconds sweep"},
          {"The client", "location_cache near_cache rails deadline_ms wait on_server_loss"},
          {"What is checked", "verify allow_misses"},
          {"What is shown and written", "progress json csv percentiles svg"}};
}

bool Given(const char* flag) { return !gflags::GetCommandLineFlagInfoOrDie(flag).is_default; }

// Returns InvalidArgument if one of the flags was given. Fail fast: a flag that has no effect is a
// mistake, and ignoring it would hide that.
absl::Status RefuseGiven(std::initializer_list<const char*> flags, std::string_view why) {
  for (const char* flag : flags) {
    if (!Given(flag)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--", flag, " has no effect ", std::string(why)));
  }
  return absl::OkStatus();
}

absl::Status CheckFlagsGiven(BackendKind backend) {
  if (backend != BackendKind::kGannet) {
    GANNET_RETURN_IF_ERROR(
        RefuseGiven({"auth_file", "device", "location_cache", "near_cache", "rails", "wait"},
                    absl::StrCat("with --backend=", FLAGS_backend, ", which uses kernel TCP")));
  }
  if (backend != BackendKind::kRedis) {
    GANNET_RETURN_IF_ERROR(
        RefuseGiven({"connections"}, absl::StrCat("with --backend=", FLAGS_backend)));
  }
  if (FLAGS_sweep.empty()) GANNET_RETURN_IF_ERROR(RefuseGiven({"svg"}, "without --sweep"));
  if (!FLAGS_rate.empty()) GANNET_RETURN_IF_ERROR(RefuseGiven({"target_ops"}, "with --rate"));
  if (FLAGS_workload == kRawReadWorkload) return absl::OkStatus();
  return RefuseGiven({"raw_span", "raw_items"}, "without --workload=raw_read");
}

// Takes from the cluster what the command line does not give.
absl::Status ApplyCluster(LoadOptions& options) {
  if (FLAGS_cluster == 0) return absl::OkStatus();
  GANNET_ASSIGN_OR_RETURN(const Cluster cluster, ClusterOf(FLAGS_cluster));
  if (!Given("mix")) options.mix = cluster.mix;
  if (!Given("key_size")) options.sizes.key_bytes = cluster.sizes.key_bytes;
  if (!Given("value_size")) options.sizes.value_bytes = cluster.sizes.value_bytes;
  if (!Given("ttl_ms")) options.ttl = cluster.ttl;
  return absl::OkStatus();
}

absl::Status ApplyValueSizes(LoadOptions& options) {
  options.value_sizes = FLAGS_value_sizes;
  if (FLAGS_value_sizes.empty()) return absl::OkStatus();
  GANNET_RETURN_IF_ERROR(RefuseGiven({"value_size", "trace"}, "with --value_sizes"));
  if (FLAGS_sweep.starts_with("value_size:")) {
    return absl::InvalidArgumentError("--sweep=value_size and --value_sizes exclude each other");
  }
  const absl::StatusOr<ValueSizes> sizes = ValueSizes::Parse(FLAGS_value_sizes);
  if (!sizes.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--value_sizes=", FLAGS_value_sizes, ": ", sizes.status().message()));
  }
  options.sizes.mixed = *sizes;
  options.sizes.value_bytes = sizes->largest();
  return absl::OkStatus();
}

absl::Status ApplyRate(LoadOptions& options) {
  options.rate_text = FLAGS_rate;
  if (FLAGS_target_ops != 0) options.rate_text = absl::StrCat(FLAGS_target_ops);
  if (options.rate_text.empty()) return absl::OkStatus();
  absl::StatusOr<Rate> rate = Rate::Parse(options.rate_text);
  if (!rate.ok()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--rate=", options.rate_text, ": ", rate.status().message()));
  }
  options.rate = *std::move(rate);
  if (Given("seconds") || Given("operations") || options.rate.LengthNs() == 0) {
    return absl::OkStatus();
  }
  options.seconds = static_cast<double>(options.rate.LengthNs()) / kNsPerSecond;
  return absl::OkStatus();
}

std::string DefaultOf(BackendKind backend) {
  const char* named = std::getenv("GANNET_SERVER");
  const bool given = backend == BackendKind::kGannet && named != nullptr && *named != '\0';
  return given ? named : DefaultServer(backend);
}

absl::StatusOr<LoadOptions> OptionsFromFlags() {
  LoadOptions options;
  GANNET_ASSIGN_OR_RETURN(options.backend, BackendOf(FLAGS_backend));
  GANNET_RETURN_IF_ERROR(CheckFlagsGiven(options.backend));
  const std::string servers = FLAGS_server.empty() ? DefaultOf(options.backend) : FLAGS_server;
  options.servers = SplitServerList(servers);
  options.device = FLAGS_device;
  options.auth_file = FLAGS_auth_file;
  options.workload = FLAGS_workload;
  if (!FLAGS_distribution.empty()) {
    GANNET_ASSIGN_OR_RETURN(options.distribution, DistributionOf(FLAGS_distribution));
  }
  GANNET_ASSIGN_OR_RETURN(options.phase, PhaseOf(FLAGS_phase));
  options.records = FLAGS_records;
  options.operations = FLAGS_operations;
  options.seconds = FLAGS_seconds;
  options.start_at = FLAGS_start_at;
  GANNET_RETURN_IF_ERROR(ApplyRate(options));
  if (options.seconds > 0 && !Given("operations")) options.operations = kOperationsMax;
  options.threads = FLAGS_threads;
  options.depth = FLAGS_depth;
  options.connections = FLAGS_connections;
  options.sizes = {FLAGS_key_size, FLAGS_value_size, std::nullopt};
  options.mix = FLAGS_mix;
  options.ttl = std::chrono::milliseconds(FLAGS_ttl_ms);
  GANNET_RETURN_IF_ERROR(ApplyCluster(options));
  GANNET_RETURN_IF_ERROR(ApplyValueSizes(options));
  options.location_cache_bytes = FLAGS_location_cache;
  options.near_cache_bytes = FLAGS_near_cache;
  options.rails = FLAGS_rails;
  options.seed = FLAGS_seed;
  options.verify = FLAGS_verify;
  options.allow_misses = FLAGS_allow_misses;
  options.warm_up = FLAGS_warm_up;
  options.warmup_seconds = FLAGS_warmup_seconds;
  options.raw_span_bytes = FLAGS_raw_span;
  options.raw_items = FLAGS_raw_items;
  options.stride = FLAGS_stride;
  options.deadline = std::chrono::milliseconds(FLAGS_deadline_ms);
  options.trace_file = FLAGS_trace;
  options.json_file = FLAGS_json;
  options.csv_file = FLAGS_csv;
  options.percentiles_file = FLAGS_percentiles;
  options.svg_file = FLAGS_svg;
  options.sweep = FLAGS_sweep;
  if (FLAGS_on_server_loss != "exit" && FLAGS_on_server_loss != "wait") {
    return absl::InvalidArgumentError(
        absl::StrCat("--on_server_loss=", FLAGS_on_server_loss, ": exit or wait"));
  }
  GANNET_ASSIGN_OR_RETURN(options.wait, WaitOf(FLAGS_wait));
  options.waits_for_server = FLAGS_on_server_loss == "wait";
  GANNET_RETURN_IF_ERROR(Validate(options));
  return options;
}

absl::StatusOr<std::unique_ptr<StoreUnderLoad>> Open(const LoadOptions& options) {
  switch (options.backend) {
    case BackendKind::kRedis:
      return OpenRedis(options);
    case BackendKind::kMemcached:
      return OpenMemcached(options);
    default:
      return OpenGannet(options);
  }
}

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free);

// Handles the first Ctrl-C, which ends the run. The second one ends the process.
// Relaxed: it only matters that the threads see it soon.
void OnInterrupt(int) { interrupted.store(true, std::memory_order_relaxed); }

void HandleInterrupts() {
  struct sigaction action {};
  action.sa_handler = OnInterrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigaction(SIGINT, &action, nullptr);
}

ProgressStyle StyleOfProgress() {
  const bool terminal = isatty(STDERR_FILENO) != 0;
  if (Given("progress") ? !FLAGS_progress : !terminal) return ProgressStyle::kNone;
  return terminal ? ProgressStyle::kOneLine : ProgressStyle::kLines;
}

int Fail(int code, const absl::Status& status) {
  std::fprintf(stderr, "kvload: %s\n", std::string(status.message()).c_str());
  return code;
}

int Main(char** argv) {
  const auto options = OptionsFromFlags();
  if (!options.ok()) return Fail(kExitWrongUsage, options.status());
  absl::StatusOr<Sweep> sweep;
  if (!options->sweep.empty()) {
    sweep = ParseSweep(options->sweep);
    if (!sweep.ok()) return Fail(kExitWrongUsage, sweep.status());
    const absl::Status valid = Validate(*options, *sweep);
    if (!valid.ok()) return Fail(kExitWrongUsage, valid);
  }
  if (options->backend == BackendKind::kGannet) {
    const auto device = UseDevice(options->device, argv);
    if (!device.ok()) return Fail(kExitFailed, device.status());
  }
  HandleInterrupts();
  LoadRuns runs({.open = Open, .interrupted = &interrupted, .progress_style = StyleOfProgress()});
  return options->sweep.empty() ? runs.RunOnce(*options) : runs.RunSweep(*options, *sweep);
}

}  // namespace
}  // namespace gannet::kvload

int main(int argc, char** argv) {
  gannet::SurviveLostOutputs();
  const gannet::Program program = {
      .name = "kvload",
      .purpose = "puts load on a Gannet server, checks every value, and reports the costs",
      .version = absl::StrCat(gannet::BuildVersion(), " (", gannet::BuildCommit(), ", ",
                              gannet::BuildKind(), ")"),
      .flags_file = "kvload/main.cc",
      .notes = gannet::kvload::kNotes,
      .groups = gannet::kvload::FlagGroups(),
      .examples = {"kvload --server=10.0.0.1:7471 --workload=b --records=1000000 --seconds=30",
                   "kvload --mix=get:0.9,put:0.1 --value_sizes=100:0.5,4K:0.4,1M:0.1 --rate=50k "
                   "--seconds=60",
                   "kvload --workload=c --sweep=threads:1,2,4,8 --seconds=10 --json=-"}};
  if (const auto exit_code = gannet::ParseCommandLine(program, argc, argv)) return *exit_code;
  return gannet::kvload::Main(argv);
}
