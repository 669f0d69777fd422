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
#include "tools/kvload/options.h"
#include "tools/kvload/redis_store.h"
#include "tools/kvload/report.h"
#include "tools/kvload/run.h"

DEFINE_string(backend, "gannet", "the store to load: gannet, redis or memcached");
DEFINE_string(server, "",
              "HOST:PORT of the server, or of several Gannet servers with commas; empty: "
              "$GANNET_SERVER, or the backend's usual port on this host");
DEFINE_string(device, "auto", "auto, soft (the user-space device), or an RDMA device's name");
DEFINE_string(workload, "b",
              "YCSB core workload: a (50 % updates), b (5 % updates), c (reads only), d (5 % "
              "inserts, reads of the latest), f (50 % read-modify-write); or raw_read, bare READs "
              "of --value_size bytes");
DEFINE_string(distribution, "",
              "zipfian (0.99, scrambled), uniform or latest; empty: the workload's");
DEFINE_string(phase, "both", "load, run or both");
DEFINE_uint64(records, 100'000, "records to load, and to run on");
DEFINE_uint64(operations, 1'000'000, "operations of the run");
DEFINE_double(
    seconds, 0,
    "end the run after so many seconds, or after --operations if given and reached earlier; 0 = "
    "after --operations");
DEFINE_double(start_at, 0,
              "begin the run at this time, in seconds since 1970, so that several processes begin "
              "together; all threads must be connected by then; 0 = at once");
DEFINE_uint32(threads, 1, "threads, each with a connection of its own");
DEFINE_uint32(depth, 16, "operations in flight per thread");
DEFINE_uint32(connections, 1,
              "connections of a thread, which share its --depth; with --backend=redis");
DEFINE_uint32(key_size, 16, "bytes of a key");
DEFINE_uint32(value_size, 100, "bytes of a value; at least 24 when verifying");
DEFINE_uint64(location_cache, 1 << 20, "bytes for remembered locations, over all threads; 0 = off");
DEFINE_uint64(seed, 1, "seed of all random choices");
DEFINE_uint64(target_ops, 0,
              "operations a second in an open loop: latency counts from when an operation was due; "
              "0 = closed loop, as fast as possible");
DEFINE_bool(verify, true, "check every value that is read");
DEFINE_bool(warm_up, false,
            "before the run, on its connections and unmeasured, read every record once, so that "
            "locations are known and pages mapped; with raw_read, --records READs");
DEFINE_uint64(raw_span, 0, "bytes of the server's region that raw_read reads from; 0 = all");
DEFINE_bool(
    raw_items, false,
    "raw_read reads the items that a run of GETs with the same flags would read, in the same "
    "order; it looks them up before; otherwise it reads random places");
DEFINE_uint64(stride, 1,
              "use only every Kth record, so that few records are scattered over as much memory as "
              "all of them");
DEFINE_bool(allow_misses, false, "do not fail when a key that this run loaded is not found");
DEFINE_uint64(
    deadline_ms, 10'000,
    "deadline of every operation; long, because a slow answer is a latency and not an error");
DEFINE_string(trace, "", "replay this trace (CSV: version,time,op,size,lbn) instead of a workload");
DEFINE_string(json, "", "write the result to this file");
DEFINE_string(wait, "adaptive",
              "how a thread waits for answers: adaptive (polls as long as answers usually take, "
              "then sleeps), or poll (never sleeps: needs a core for each thread)");
DEFINE_string(on_server_loss, "exit",
              "what to do when the server is gone for two seconds, or came back without its data: "
              "exit, with what was measured until then, or wait for it, with the time without it "
              "left out of the rate");

namespace gannet::kvload {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitInterrupted = 130;

constexpr char kNotes[] =
    "GANNET_SERVER in the environment is the default of --server with --backend=gannet.\n"
    "Exit code: 0 every operation was answered and every value right, 1 otherwise, 2 wrong usage,\n"
    "130 interrupted (Ctrl-C); what was measured until then is shown all the same.\n";

// Fail fast: a flag without a meaning here is a mistake, and ignoring it would hide that.
absl::Status RefuseGiven(std::initializer_list<const char*> flags, std::string_view why) {
  for (const char* flag : flags) {
    if (gflags::GetCommandLineFlagInfoOrDie(flag).is_default) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--", flag, " means nothing ", std::string(why)));
  }
  return absl::OkStatus();
}

absl::Status CheckFlagsGiven(BackendKind backend) {
  if (backend != BackendKind::kGannet) {
    GANNET_RETURN_IF_ERROR(
        RefuseGiven({"device", "location_cache", "wait"},
                    absl::StrCat("with --backend=", FLAGS_backend, ", which speaks kernel TCP")));
  }
  if (backend != BackendKind::kRedis) {
    GANNET_RETURN_IF_ERROR(
        RefuseGiven({"connections"}, absl::StrCat("with --backend=", FLAGS_backend)));
  }
  if (FLAGS_workload == kRawReadWorkload) return absl::OkStatus();
  return RefuseGiven({"raw_span", "raw_items"}, "without --workload=raw_read");
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

// The first Ctrl-C ends the run, the second one ends the process.
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
      .purpose = "puts a Gannet server under load, checks every value, and says what it cost",
      .version = absl::StrCat(gannet::BuildCommit(), ", ", gannet::BuildKind()),
      .flags_file = "kvload/main.cc",
      .notes = gannet::kvload::kNotes};
  if (const auto exit_code = gannet::ParseCommandLine(program, argc, argv)) return *exit_code;
  return gannet::kvload::Main(argv);
}
