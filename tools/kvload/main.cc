// kvload: puts load on a Gannet server, or for comparison on a Redis or memcached server, checks
// every value, and reports the costs.
//
// Exit code: 0 if every operation was answered and every value was right, 2 for wrong usage, 130 if
// interrupted, 1 otherwise.

#include <gflags/gflags.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"
#include "common/command_line/command_line.h"
#include "common/rdma/device_choice.h"
#include "tools/build_stamp/build_stamp.h"
#include "tools/kvload/gannet_store.h"
#include "tools/kvload/memcached_store.h"
#include "tools/kvload/named_mix.h"
#include "tools/kvload/options.h"
#include "tools/kvload/redis_store.h"
#include "tools/kvload/report.h"
#include "tools/kvload/run.h"

DEFINE_string(backend, "gannet", "the store to load: gannet, redis or memcached");
DEFINE_string(server, "",
              "HOST:PORT of the server; several Gannet servers are separated by commas; empty: "
              "$GANNET_SERVER, or the backend's usual port on this host");
DEFINE_string(device, "auto", "auto, soft (the user-space device), or an RDMA device's name");
DEFINE_string(auth_file, "",
              "file of keys, the first of which is shown to the server: lines of ID HEXKEY [read]; "
              "empty: no key");
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
DEFINE_uint64(location_cache, 1 << 20,
              "bytes for remembered locations, for all threads together; 0: remember none");
DEFINE_uint64(seed, 1, "seed of all random choices");
DEFINE_uint64(target_ops, 0,
              "operations a second of all threads together, in an open loop: latency counts from "
              "when an operation was due; 0: closed loop, as fast as possible");
DEFINE_bool(verify, true, "check every value that is read");
DEFINE_bool(warm_up, false,
            "read every record once before the run, on the same connections, without measuring, so "
            "that the client knows the locations and pages are mapped; raw_read makes --records "
            "READs instead");
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
DEFINE_string(trace, "", "replay this trace (CSV: version,time,op,size,lbn) instead of a workload");
DEFINE_string(json, "", "write the result to this file");
DEFINE_string(wait, "adaptive",
              "how a thread waits for answers: adaptive (polls as long as answers usually take, "
              "then sleeps), or poll (never sleeps, so it needs a core for each thread)");
DEFINE_string(on_server_loss, "exit",
              "what to do if the server is gone for two seconds, or comes back without its data: "
              "exit (and report what was measured until then), or wait (until it is back; the "
              "rate leaves out the time without it)");

namespace gannet::kvload {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitInterrupted = 130;

constexpr char kNotes[] =
    "GANNET_SERVER in the environment is the default of --server with --backend=gannet.\n"
    "Exit code: 0 if every operation was answered and every value was right, 1 otherwise, 2 wrong\n"
    "usage, 130 interrupted (Ctrl-C). An interrupted run still shows what it measured.\n";

// Returns InvalidArgument if one of the flags was given. Fail fast: a flag that has no effect is a
// mistake, and ignoring it would hide that.
absl::Status RefuseGiven(std::initializer_list<const char*> flags, std::string_view why) {
  for (const char* flag : flags) {
    if (gflags::GetCommandLineFlagInfoOrDie(flag).is_default) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--", flag, " has no effect ", std::string(why)));
  }
  return absl::OkStatus();
}

absl::Status CheckFlagsGiven(BackendKind backend) {
  if (backend != BackendKind::kGannet) {
    GANNET_RETURN_IF_ERROR(
        RefuseGiven({"auth_file", "device", "location_cache", "wait"},
                    absl::StrCat("with --backend=", FLAGS_backend, ", which uses kernel TCP")));
  }
  if (backend != BackendKind::kRedis) {
    GANNET_RETURN_IF_ERROR(
        RefuseGiven({"connections"}, absl::StrCat("with --backend=", FLAGS_backend)));
  }
  if (FLAGS_workload == kRawReadWorkload) return absl::OkStatus();
  return RefuseGiven({"raw_span", "raw_items"}, "without --workload=raw_read");
}

// Takes from the cluster what the command line does not give.
absl::Status ApplyCluster(Options& options) {
  if (FLAGS_cluster == 0) return absl::OkStatus();
  GANNET_ASSIGN_OR_RETURN(const Cluster cluster, ClusterOf(FLAGS_cluster));
  const auto given = [](const char* flag) {
    return !gflags::GetCommandLineFlagInfoOrDie(flag).is_default;
  };
  if (!given("mix")) options.mix = cluster.mix;
  if (!given("key_size")) options.sizes.key_bytes = cluster.sizes.key_bytes;
  if (!given("value_size")) options.sizes.value_bytes = cluster.sizes.value_bytes;
  if (!given("ttl_ms")) options.ttl = cluster.ttl;
  return absl::OkStatus();
}

std::string DefaultOf(BackendKind backend) {
  const char* named = std::getenv("GANNET_SERVER");
  const bool given = backend == BackendKind::kGannet && named != nullptr && *named != '\0';
  return given ? named : DefaultServer(backend);
}

absl::StatusOr<Options> OptionsFromFlags() {
  Options options;
  GANNET_ASSIGN_OR_RETURN(options.backend, BackendOf(FLAGS_backend));
  GANNET_RETURN_IF_ERROR(CheckFlagsGiven(options.backend));
  const std::string servers = FLAGS_server.empty() ? DefaultOf(options.backend) : FLAGS_server;
  options.servers = absl::StrSplit(servers, ',', absl::SkipEmpty());
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
  const bool counted = !gflags::GetCommandLineFlagInfoOrDie("operations").is_default;
  if (options.seconds > 0 && !counted) options.operations = kOperationsMax;
  options.threads = FLAGS_threads;
  options.depth = FLAGS_depth;
  options.connections = FLAGS_connections;
  options.sizes = {FLAGS_key_size, FLAGS_value_size};
  options.mix = FLAGS_mix;
  options.ttl = std::chrono::milliseconds(FLAGS_ttl_ms);
  GANNET_RETURN_IF_ERROR(ApplyCluster(options));
  options.location_cache_bytes = FLAGS_location_cache;
  options.seed = FLAGS_seed;
  options.target_ops = FLAGS_target_ops;
  options.verify = FLAGS_verify;
  options.allow_misses = FLAGS_allow_misses;
  options.warm_up = FLAGS_warm_up;
  options.raw_span_bytes = FLAGS_raw_span;
  options.raw_items = FLAGS_raw_items;
  options.stride = FLAGS_stride;
  options.deadline = std::chrono::milliseconds(FLAGS_deadline_ms);
  options.trace_file = FLAGS_trace;
  options.json_file = FLAGS_json;
  if (FLAGS_on_server_loss != "exit" && FLAGS_on_server_loss != "wait") {
    return absl::InvalidArgumentError(
        absl::StrCat("--on_server_loss=", FLAGS_on_server_loss, ": exit or wait"));
  }
  GANNET_ASSIGN_OR_RETURN(options.wait, WaitOf(FLAGS_wait));
  options.waits_for_server = FLAGS_on_server_loss == "wait";
  GANNET_RETURN_IF_ERROR(Validate(options));
  return options;
}

absl::StatusOr<std::unique_ptr<Store>> Open(const Options& options) {
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

void ShowProgress(std::string_view line) {
  std::fprintf(stderr, "\r\033[K%.*s", static_cast<int>(line.size()), line.data());
}

Environment EnvironmentOf(Store& store) {
  Environment environment;
  environment.connect = [&store](uint32_t thread) { return store.Connect(thread); };
  environment.totals = [&store] { return store.Totals(); };
  environment.interrupted = &interrupted;
  if (isatty(STDERR_FILENO) != 0) environment.progress = ShowProgress;
  return environment;
}

// Checks before the run that the path can be written. Leaves an empty file.
absl::Status CheckWritable(const std::string& path) {
  if (path.empty()) return absl::OkStatus();
  const std::ofstream file(path, std::ios::app);
  if (file) return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("--json=", path, ": cannot be written: ", std::strerror(errno)));
}

absl::Status WriteFile(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  if (file) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("cannot write ", path));
}

absl::StatusOr<Report> Measure(const Options& options) {
  GANNET_ASSIGN_OR_RETURN(const std::unique_ptr<Store> store, Open(options));
  const Store::Transport transport = store->transport();
  std::fprintf(stderr, "kvload: backend=%s device=%s kind=%s\n",
               std::string(NameOf(options.backend)).c_str(), transport.device.c_str(),
               transport.kind.c_str());
  GANNET_ASSIGN_OR_RETURN(Report report, Run(options, EnvironmentOf(*store)));
  report.device = transport.device;
  report.kind = transport.kind;
  return report;
}

int Fail(int code, const absl::Status& status) {
  std::fprintf(stderr, "kvload: %s\n", std::string(status.message()).c_str());
  return code;
}

int Main(char** argv) {
  const auto options = OptionsFromFlags();
  if (!options.ok()) return Fail(kExitWrongUsage, options.status());
  if (options->backend == BackendKind::kGannet) {
    const auto device = UseDevice(options->device, argv);
    if (!device.ok()) return Fail(kExitFailed, device.status());
  }
  if (const absl::Status status = CheckWritable(options->json_file); !status.ok()) {
    return Fail(kExitFailed, status);
  }
  HandleInterrupts();
  const auto report = Measure(*options);
  if (!report.ok()) {
    return Fail(interrupted.load() ? kExitInterrupted : kExitFailed, report.status());
  }
  std::fputs(ToTable(*report).c_str(), stdout);
  if (!options->json_file.empty()) {
    const absl::Status written = WriteFile(options->json_file, ToJson(*report));
    if (!written.ok()) return Fail(kExitFailed, written);
  }
  if (!report->measured.cut_short.empty()) {
    std::fprintf(stderr, "kvload: %s\n", report->measured.cut_short.c_str());
    return report->measured.cut_short == kInterrupted ? kExitInterrupted : kExitFailed;
  }
  return WrongValues(*report) == 0 && Errors(*report) == 0 ? 0 : kExitFailed;
}

}  // namespace
}  // namespace gannet::kvload

int main(int argc, char** argv) {
  const gannet::Program program = {
      .name = "kvload",
      .purpose = "puts load on a Gannet server, checks every value, and reports the costs",
      .version = absl::StrCat(gannet::BuildVersion(), " (", gannet::BuildCommit(), ", ",
                              gannet::BuildKind(), ")"),
      .flags_file = "kvload/main.cc",
      .notes = gannet::kvload::kNotes};
  if (const auto exit_code = gannet::ParseCommandLine(program, argc, argv)) return *exit_code;
  return gannet::kvload::Main(argv);
}
