#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/auth/auth_file.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/http/http_server.h"
#include "common/layout/superblock.h"
#include "common/program/command_line.h"
#include "common/program/execute_again.h"
#include "common/program/log_lines.h"
#include "common/program/supervisor.h"
#include "common/protocol/limits.h"
#include "common/rdma/address.h"
#include "common/rdma/device_choice.h"
#include "gflags/gflags.h"
#include "glog/logging.h"
#include "server/cluster/cluster_place.h"
#include "server/control/announcer.h"
#include "server/control/byte_size.h"
#include "server/control/check_memory_file.h"
#include "server/control/file_limit.h"
#include "server/control/numa.h"
#include "server/control/server_threads.h"
#include "server/control/stop_signals.h"
#include "server/control/upgrade_check.h"
#include "server/http/observer.h"
#include "server/http/page.h"
#include "server/http/server_view.h"

DEFINE_string(listen, "0.0.0.0:7471",
              "ADDR:PORT to accept clients on; a PORT alone means every address, port 0 takes any");
DEFINE_string(name, "",
              "what clients call this server when they choose whose keys are whose; without it its "
              "address. With --cluster: which member this server is");
DEFINE_string(auth_file, "",
              "file of keys, one of which clients must have: lines of ID HEXKEY [read | replica]; "
              "empty: $GANNET_AUTH_FILE, and without that everybody may connect. It is read again "
              "when it changes, and on SIGHUP");
DEFINE_string(memory, "1G", "bytes of the region: index and heap; K, M, G, T are powers of 1024");
DEFINE_string(memory_file, "",
              "file on tmpfs or hugetlbfs that the region is, such as /dev/shm/gannet: the next "
              "start takes its items over, also after kill -9; without it they end with the "
              "process");
DEFINE_uint64(index_slots, 0, "items that the index has room for at first; 0 = by memory");
DEFINE_bool(index_grows, true, "whether the index grows when it fills");
DEFINE_uint64(lock_words, 65536, "lock words; keys whose hashes meet in one share a lock");
DEFINE_uint32(workers, 1, "threads that serve requests");
DEFINE_string(hugepages, "auto", "auto: where the system has reserved some; off");
DEFINE_string(numa, "auto",
              "the NUMA node whose cores and memory the server uses: auto (the device's), a node's "
              "number, or off");
DEFINE_string(device, "auto",
              "auto, soft (the user-space device), or a name as ibv_devices has it");
DEFINE_uint32(busy_poll_us, 100,
              "how long a worker polls after the last request before it sleeps; longer costs CPU, "
              "shorter costs each request a wake-up");
DEFINE_uint32(session_grace_ms, 30000,
              "how long the answers of a client that lost its connection are remembered");
DEFINE_uint32(
    silence_ms, gannet::kSilenceMsDefault,
    "after how long without a word a peer is dead; clients hear of it when they connect, and "
    "send a heartbeat every tenth of it");
DEFINE_string(announce, "",
              "multicast address, such as 239.71.71.71, that hears once a second where this server "
              "is, for kvcli discover; empty: nobody does");
DEFINE_string(http, "",
              "ADDR:PORT to show /metrics and a live page on, 127.0.0.1:9471 for example; empty: "
              "nowhere. Whoever reaches it sees addresses of clients, and no values");
DEFINE_bool(http_show_keys, false, "whether that page shows keys of slow requests");
DEFINE_uint32(
    slowlog_us, 10000,
    "requests that take the server as long are remembered, and shown on the page; 0: none");
DEFINE_string(log_file, "",
              "file that the log's lines are appended to, instead of stderr. SIGHUP opens it anew, "
              "for who renamed it");
DEFINE_bool(log_json, false, "whether the log's lines are JSON: time, level, source and message");
DEFINE_string(on_full, "reject",
              "what a write without room does: reject (it fails) or evict (other items go)");
DEFINE_string(data, "",
              "directory for the items, which the next run finds again; without it they are in "
              "memory only");
DEFINE_string(sync, "interval",
              "when what is written to --data is synced, so that it survives a power cut: always "
              "(before it is acknowledged, and before anybody sees it), interval (every "
              "--sync_interval_ms) or none (when the system likes to)");
DEFINE_uint32(sync_interval_ms, 1000, "for --sync=interval");
DEFINE_string(restore_from, "",
              "directory with a copy of a snapshot, or of a whole --data: what to begin with");
DEFINE_string(check, "",
              "reads this directory of --data, or this --memory_file, says what is in it, and "
              "serves nothing");
DEFINE_string(upgrade_check, "",
              "says whether this version of kvserver takes over this --memory_file or directory of "
              "--data, which another version may be using, and serves nothing");
DEFINE_bool(json, false, "for --check and --upgrade_check: print JSON");
DEFINE_string(cluster, "",
              "the cluster that this server is of; its group is the one that has --name as a "
              "member. kvcli cluster init makes a cluster. Empty: the server is alone");
DEFINE_string(etcd, "",
              "URL[,URL...] of the etcd that has the cluster's configuration, such as "
              "http://10.0.0.1:2379; for --cluster");
DEFINE_string(etcd_ca_file, "",
              "certificates (PEM) that sign etcd's, if its URLs are https; empty: the system's");
DEFINE_string(etcd_cert_file, "",
              "this server's certificate (PEM) for an etcd that asks for one (--client-cert-auth)");
DEFINE_string(etcd_key_file, "", "the key of --etcd_cert_file");
DEFINE_string(etcd_user, "", "the user for an etcd that asks for one (etcdctl auth enable)");
DEFINE_string(etcd_password_file, "",
              "file with the password of --etcd_user in its first line; nobody else may read it");
DEFINE_string(advertise, "",
              "HOST:PORT where clients and the other members of the group reach this server; "
              "without it, where it listens, which must then be one address");

// jemalloc looks for this name: settings for the process's own memory. What serves requests
// allocates nothing, so one arena and small caches do, and the process takes half a megabyte less,
// or more on many cores. Items are in an arena of their own, without caches.
extern "C" {
[[gnu::visibility("default")]] extern const char* malloc_conf;
const char* malloc_conf = "narenas:1,tcache_max:1024,tcache_nslots_small_max:20";
}

namespace gannet {
namespace {

constexpr int kExitFailed = 1;
constexpr uint32_t kWorkersMax = 64;
constexpr uint32_t kBusyPollUsMax = 1'000'000;
constexpr uint32_t kSessionGraceMsMax = 24 * 3600 * 1000;
constexpr uint32_t kSilenceMsLeast = 100;  // below it, a busy machine would seem dead
constexpr uint32_t kSilenceMsMost = 60'000;
constexpr uint32_t kSyncIntervalMsMost = 60'000;

ClusterFlags FlagsOfCluster() {
  return {.cluster = FLAGS_cluster,
          .etcd = FLAGS_etcd,
          .etcd_access = {.ca_file = FLAGS_etcd_ca_file,
                          .cert_file = FLAGS_etcd_cert_file,
                          .key_file = FLAGS_etcd_key_file,
                          .user = FLAGS_etcd_user,
                          .password_file = FLAGS_etcd_password_file},
          .advertise = FLAGS_advertise,
          .name = FLAGS_name,
          .listen = FLAGS_listen,
          .auth_file = FLAGS_auth_file,
          .memory_file = FLAGS_memory_file,
          .restore_from = FLAGS_restore_from,
          .data = FLAGS_data,
          .sync = FLAGS_sync,
          .version = GANNET_VERSION};
}

// Checks everything about the flags that needs nothing else.
absl::Status CheckFlags() {
  if (FLAGS_workers < 1 || FLAGS_workers > kWorkersMax) {
    return absl::InvalidArgumentError(absl::StrCat("--workers must be 1 to ", kWorkersMax));
  }
  if (FLAGS_lock_words < 1 || FLAGS_lock_words > Server::kLockWordsMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("--lock_words must be 1 to ", Server::kLockWordsMax));
  }
  if (FLAGS_hugepages != "auto" && FLAGS_hugepages != "off") {
    return absl::InvalidArgumentError("--hugepages must be auto or off");
  }
  GANNET_RETURN_IF_ERROR(CheckNumaFlag(FLAGS_numa));
  if (!FLAGS_announce.empty()) GANNET_RETURN_IF_ERROR(Announcer::CheckGroup(FLAGS_announce));
  if (FLAGS_on_full != "reject" && FLAGS_on_full != "evict") {
    return absl::InvalidArgumentError("--on_full must be reject or evict");
  }
  if (FLAGS_busy_poll_us > kBusyPollUsMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("--busy_poll_us must be at most ", kBusyPollUsMax));
  }
  if (FLAGS_session_grace_ms > kSessionGraceMsMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("--session_grace_ms must be at most ", kSessionGraceMsMax));
  }
  if (FLAGS_silence_ms < kSilenceMsLeast || FLAGS_silence_ms > kSilenceMsMost) {
    return absl::InvalidArgumentError(
        absl::StrCat("--silence_ms must be ", kSilenceMsLeast, " to ", kSilenceMsMost));
  }
  if (!FLAGS_memory_file.empty() && !(FLAGS_data.empty() && FLAGS_restore_from.empty())) {
    return absl::InvalidArgumentError(
        "--memory_file cannot be used together with --data or --restore_from: choose --data if the "
        "items must outlive the machine's memory");
  }
  if (!SyncNamed(FLAGS_sync)) {
    return absl::InvalidArgumentError("--sync must be always, interval or none");
  }
  if (FLAGS_sync_interval_ms < 1 || FLAGS_sync_interval_ms > kSyncIntervalMsMost) {
    return absl::InvalidArgumentError(
        absl::StrCat("--sync_interval_ms must be 1 to ", kSyncIntervalMsMost));
  }
  return Check(FlagsOfCluster());
}

absl::StatusOr<Server::Options> OptionsFromFlags() {
  GANNET_RETURN_IF_ERROR(CheckFlags());
  Server::Options options;
  GANNET_ASSIGN_OR_RETURN(options.memory_bytes, ParseByteSize(FLAGS_memory));
  GANNET_ASSIGN_OR_RETURN(options.listen, ResolveListen(FLAGS_listen, kDefaultPort));
  options.name = FLAGS_name;
  options.auth_file = FLAGS_auth_file;
  options.answer_while_starting = true;
  options.memory_file = FLAGS_memory_file;
  options.index_slots = FLAGS_index_slots;
  options.evict = FLAGS_on_full == "evict";
  options.index_grows = FLAGS_index_grows;
  options.disk = {.data = FLAGS_data,
                  .sync = *SyncNamed(FLAGS_sync),
                  .sync_interval_ns = int64_t{FLAGS_sync_interval_ms} * kNsPerMs,
                  .restore_from = FLAGS_restore_from};
  options.lock_words = FLAGS_lock_words;
  options.workers = FLAGS_workers;
  options.huge_pages = FLAGS_hugepages == "off" ? HugePages::kOff : HugePages::kAuto;
  options.session_grace_ns = int64_t{FLAGS_session_grace_ms} * kNsPerMs;
  options.silence_ms = FLAGS_silence_ms;
  options.slow_ns = int64_t{FLAGS_slowlog_us} * kNsPerUs;
  return options;
}

ServerThreads* g_running = nullptr;
HttpServer* g_http = nullptr;  // null: there is none
StopSignals g_stop_signals;
volatile std::sig_atomic_t g_stop_asked = 0;

void OnStopSignal(int signal) {
  g_stop_asked = 1;
  switch (g_stop_signals.Judge(MonotonicNs())) {
    case StopSignals::Meaning::kStop:
      if (g_http != nullptr) g_http->BeginStop();
      g_running->RequestStop();
      return;
    case StopSignals::Meaning::kRepeat:
      return;
    case StopSignals::Meaning::kEndAtOnce:
      std::signal(signal, SIG_DFL);
      std::raise(signal);  // delivered when this handler returns
      return;
  }
}

LogLines* g_log_lines = nullptr;  // null: glog writes to stderr

void OnReloadSignal(int) {
  if (g_log_lines != nullptr) g_log_lines->RequestReopen();
  if (!FLAGS_auth_file.empty()) g_running->RequestReload();
}

// A supervisor reloads by SIGHUP, also where there is nothing to open or read again. Without one,
// and without such a file, SIGHUP says that the terminal is gone, and ends the process.
void InstallSignals(ServerThreads* threads, const Supervisor& supervisor) {
  g_running = threads;
  struct sigaction action {};
  action.sa_handler = OnStopSignal;
  sigaction(SIGTERM, &action, nullptr);
  sigaction(SIGINT, &action, nullptr);
  if (!supervisor.supervises() && FLAGS_auth_file.empty() && FLAGS_log_file.empty()) return;
  action.sa_handler = OnReloadSignal;
  sigaction(SIGHUP, &action, nullptr);
}

void RestoreSignals() {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) std::signal(signal, SIG_DFL);
}

// A worker publishes its connections a few times within the time of silence.
constexpr int64_t kSilencesUntilHanging = 2;

// Shows the server over HTTP, from now on.
void Show(HttpServer* http, Observer* observer) {
  http->Ready({.metrics = [observer] { return RenderMetrics(observer->Look()); },
               .json = [observer] { return RenderJson(observer->Look(), FLAGS_http_show_keys); },
               .hangs = [observer] { return observer->Healthy() ? "" : "a worker hangs"; },
               .not_ready = [observer] { return observer->WhyNotReady(); }});
  LOG(INFO) << "shows itself at http://" << http->address();
  if (!http->local()) LOG(WARNING) << http->Warning("clients' addresses and what they do");
}

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "kvserver: %s\n", std::string(status.message()).c_str());
  return kExitFailed;
}

std::string Version() {
  return absl::StrCat(GANNET_VERSION, ", protocol ", kProtocolVersionMax, ", layout ",
                      kLayoutVersion);
}

// Says what this run keeps, whom it lets in, and on which device it is.
void LogTerms(const Device& device) {
  if (FLAGS_data.empty() && FLAGS_memory_file.empty() && FLAGS_cluster.empty()) {
    LOG(INFO) << "without --data or --memory_file: the items are lost when the server ends";
  }
  if (FLAGS_auth_file.empty()) {
    LOG(WARNING) << "without --auth_file: whoever reaches the address may read and write all";
  }
  LOG(INFO) << "device " << device.name << " (" << DeviceKindName(device.kind) << ")";
  if (device.kind == DeviceKind::kSoftverbs && std::getenv("SOFTVERBS_NET") == nullptr) {
    LOG(INFO) << "on softverbs, clients of other hosts are not reached without SOFTVERBS_NET";
  }
}

// Goes to the device's NUMA node, before anything starts a thread or touches memory. Takes the
// device, and says what this run is.
absl::Status SettleOn(const Device& device, Server::Options* options) {
  GANNET_ASSIGN_OR_RETURN(
      const std::string numa,
      ChooseNumaNode(
          {.flag = FLAGS_numa, .device = device.name, .memory_bytes = options->memory_bytes},
          NumaMachine::This()));
  options->device = device;
  RaiseFileLimit();
  LogTerms(device);
  LOG(INFO) << numa;
  return absl::OkStatus();
}

// Makes the server a member of its group, if the flags ask for it.
absl::StatusOr<ClusterPlace> FindPlace(Server::Options* options) {
  const ClusterFlags flags = FlagsOfCluster();
  if (!flags.asks_for_member()) return ClusterPlace{};
  GANNET_ASSIGN_OR_RETURN(ClusterPlace place, FindClusterPlace(flags));
  options->group = place.group;
  // Clients take a group for one server, whichever of its members answers.
  options->name = place.store->group();
  return place;
}

// Has the server announce itself, if the flags ask for it.
absl::StatusOr<std::unique_ptr<Announcer>> Announce(const ClusterPlace& place,
                                                    const Server* server) {
  return Announcer::Start({.group = FLAGS_announce,
                           .cluster = FLAGS_cluster,
                           .group_name = place.store == nullptr ? "" : place.store->group(),
                           .name = FLAGS_name,
                           .address = FLAGS_advertise},
                          server);
}

void SayReady(const std::string& address, const Device& device) {
  std::printf(
      "READY %s device=%s kind=%s%s%s\n", address.c_str(), device.name.c_str(),
      std::string(DeviceKindName(device.kind)).c_str(),
      FLAGS_data.empty() ? "" : absl::StrCat(" disk=", FLAGS_sync).c_str(),
      FLAGS_memory_file.empty() ? "" : absl::StrCat(" memory_file=", FLAGS_memory_file).c_str());
  std::fflush(stdout);
}

// Looks at what a server keeps, if the flags ask for that instead of a server.
std::optional<absl::Status> CheckIfAsked() {
  if (!FLAGS_upgrade_check.empty()) return UpgradeCheck(FLAGS_upgrade_check, FLAGS_json);
  if (FLAGS_check.empty()) return std::nullopt;
  return std::filesystem::is_regular_file(FLAGS_check) ? CheckMemoryFile(FLAGS_check, FLAGS_json)
                                                       : CheckDirectory(FLAGS_check, FLAGS_json);
}

int Main(char** argv) {
  FLAGS_auth_file = AuthFilePath(FLAGS_auth_file);
  absl::StatusOr<Server::Options> options = OptionsFromFlags();
  if (!options.ok()) {
    Fail(options.status());
    return absl::IsInvalidArgument(options.status()) ? kExitWrongUsage : kExitFailed;
  }
  if (const std::optional<absl::Status> checked = CheckIfAsked())
    return checked->ok() ? 0 : Fail(*checked);
  if (FLAGS_log_json || !FLAGS_log_file.empty()) {
    auto lines = LogLines::Start({.file = FLAGS_log_file, .json = FLAGS_log_json});
    if (!lines.ok()) return Fail(lines.status());
    g_log_lines = lines->release();  // for as long as the process lives, since a signal may come
  }
  absl::StatusOr<Device> device = UseDevice(FLAGS_device, argv);
  if (!device.ok()) return Fail(device.status());
  if (absl::Status status = SettleOn(*device, &*options); !status.ok()) return Fail(status);
  auto place = FindPlace(&*options);  // before the server, which uses it
  if (!place.ok()) return Fail(place.status());
  std::optional<Observer> observer;  // before `http`, whose threads use it
  std::unique_ptr<HttpServer> http;
  if (!FLAGS_http.empty()) {
    auto started = HttpServer::Start({.listen = FLAGS_http, .program = "server", .page = kPage});
    if (!started.ok()) return Fail(started.status());
    http = *std::move(started);
    g_http = http.get();
  }
  absl::StatusOr<std::unique_ptr<Server>> server = Server::Create(*options);
  if (!server.ok()) return Fail(server.status());
  const std::string address = (*server)->address().ToString();
  const Supervisor supervisor = Supervisor::FromEnvironment();
  auto threads = ServerThreads::Start(
      *std::move(server),
      {.busy_poll_ns = int64_t{FLAGS_busy_poll_us} * kNsPerUs, .supervisor = &supervisor});
  if (!threads.ok()) return Fail(threads.status());
  if (http != nullptr) {
    observer.emplace(threads->get(), Observer::Options{.version = GANNET_VERSION,
                                                       .address = address,
                                                       .hangs_ns = kSilencesUntilHanging *
                                                                   FLAGS_silence_ms * kNsPerMs});
    Show(http.get(), &*observer);
  }
  auto announcer = Announce(*place, &threads->get()->server());
  if (!announcer.ok()) return Fail(announcer.status());
  InstallSignals(threads->get(), supervisor);
  SayReady(address, *device);
  supervisor.Ready(absl::StrCat("serves on ", address, ", device ", device->name));
  const absl::Status status = (*threads)->Wait();
  if (!status.ok() && !absl::IsAborted(status)) {
    // Exits at once, because nothing can be torn down in order on a device that is gone. What is
    // on a disk that failed is there, in any case.
    std::_Exit(Fail(status));
  }
  RestoreSignals();  // whose handlers use what ends now
  http.reset();      // before the threads, which it and the observer look at
  observer.reset();
  announcer->reset();
  if (status.ok() || g_stop_asked != 0) {
    LOG(INFO) << "stopped";
    return 0;
  }
  threads->reset();
  place->store.reset();
  LOG(WARNING) << "executes itself again, and joins its group empty: " << status.message();
  return Fail(ExecuteAgain(argv));
}

}  // namespace
}  // namespace gannet

int main(int argc, char** argv) {
  // If TZ is unset, the C library reads the time zone again for each line of the log.
  setenv("TZ", ":/etc/localtime", /*overwrite=*/0);
  FLAGS_logtostderr = true;
  const gannet::Program program = {
      .name = "kvserver",
      .purpose = "serves Gannet's in-memory key-value store over RDMA",
      .version = gannet::Version(),
      .flags_file = "server/main.cc",
      .notes =
          "GANNET_AUTH_FILE in the environment is the default of --auth_file. Without either,\n"
          "nobody is authenticated: whoever reaches the address may read and write all. With it,\n"
          "nothing is encrypted all the same: see SECURITY.md.\n"
          "Exit code: 0 stopped, 1 could not start or serve on, 2 wrong usage.\n"};
  if (const auto exit_code = gannet::ParseCommandLine(program, argc, argv)) return *exit_code;
  google::InitGoogleLogging(argv[0]);
  return gannet::Main(argv);
}
