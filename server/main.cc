// kvserver's main: flags, log, device and NUMA node, the server, its place in a cluster, what it
// shows over HTTP, and its end. The order matters: the process goes to its node before anything
// starts a thread or touches memory.

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/auth/auth_file.h"
#include "common/base/clock.h"
#include "common/base/lost_outputs.h"
#include "common/base/status_macros.h"
#include "common/http/http_server.h"
#include "common/layout/superblock.h"
#include "common/program/command_line.h"
#include "common/program/execute_again.h"
#include "common/program/log_lines.h"
#include "common/program/supervisor.h"
#include "common/protocol/limits.h"
#include "common/rdma/device_choice.h"
#include "glog/logging.h"
#include "server/group/cluster/cluster_place.h"
#include "server/main/control/announcer.h"
#include "server/main/control/check_memory_file.h"
#include "server/main/control/check_tier.h"
#include "server/main/control/file_limit.h"
#include "server/main/control/numa.h"
#include "server/main/control/server_threads.h"
#include "server/main/control/stop_signals.h"
#include "server/main/control/upgrade_check.h"
#include "server/main/flags/server_flags.h"
#include "server/main/http/ask_ready.h"
#include "server/main/http/observer.h"
#include "server/main/http/page.h"
#include "server/main/http/server_view.h"

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
// How often a member is asked whether it is ready, and the time that a supervisor gives it then.
constexpr int64_t kLookNs = 20 * kNsPerMs;
constexpr int64_t kMoreTimeNs = 60 * kNsPerSecond;

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

LogLines* g_log_lines = nullptr;

void OnReloadSignal(int) {
  g_log_lines->RequestReopen();
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

// If it was asked to stop, it does. timeout(1) asks twice, and the exit code is to be 0 all the
// same.
void RestoreSignals() {
  const auto handler = g_stop_asked != 0 ? SIG_IGN : SIG_DFL;
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) std::signal(signal, handler);
}

// A worker publishes its connections a few times within the time of silence.
constexpr int64_t kSilencesUntilHanging = 2;

// Shows the server over HTTP, from now on.
void Show(HttpServer* http, Observer* observer) {
  http->Ready({.metrics = [observer] { return RenderMetrics(observer->Look()); },
               .json = [observer] { return RenderJson(observer->Look(), FLAGS_http_show_keys); },
               .hangs = [observer] { return observer->Healthy() ? "" : "a worker hangs"; },
               .not_ready = [observer] { return observer->WhyNotReady(); },
               .fails = [observer] { return observer->WhatFails(); }});
  LOG(INFO) << "shows itself at http://" << http->address();
  if (!http->local()) LOG(WARNING) << http->Warning("clients' addresses and what they do");
}

// Says it in the log, too, if that is a file, which is all that is left of a service that did not
// start. A log of JSON has nothing else among its lines.
int Fail(const absl::Status& status) {
  const bool in_file = g_log_lines != nullptr && !FLAGS_log_file.empty();
  const bool in_json = g_log_lines != nullptr && FLAGS_log_json && !in_file;
  if (in_file || in_json) LOG(ERROR) << status.message();
  if (!in_json) {
    std::fprintf(stderr, "kvserver: %s\n", std::string(status.message()).c_str());
  }
  return kExitFailed;
}

std::string Version() {
  return absl::StrCat(GANNET_VERSION, ", protocol ", kProtocolVersionMax, ", layout ",
                      kLayoutVersion);
}

// Says who may come in without a key.
void LogWhoMayConnect(const Device& device, const std::vector<SocketAddress>& listen) {
  if (!FLAGS_auth_file.empty()) return;
  const bool soft = device.kind == DeviceKind::kSoftverbs;
  const auto add_text = [](std::string* all, const SocketAddress& address) {
    absl::StrAppend(all, address.ToString());
  };
  if (soft && std::ranges::all_of(listen, &SocketAddress::is_loopback)) {
    LOG(INFO) << "without --auth_file: all programs of this machine may read and write all, and "
                 "no others, as it listens on "
              << absl::StrJoin(listen, " and ", add_text);
    return;
  }
  LOG(WARNING) << "ANYBODY who reaches " << absl::StrJoin(listen, " or ", add_text)
               << (soft ? "" : absl::StrCat(" over ", device.name))
               << " MAY READ AND WRITE ALL, as there is no --auth_file. kvcli genkey makes a key; "
                  "--listen=ADDR:PORT with an address of a trusted network lets others not in";
}

// Says what this run keeps, whom it lets in, and on which device it is.
void LogTerms(const Device& device, const std::vector<SocketAddress>& listen) {
  if (FLAGS_data.empty() && FLAGS_memory_file.empty() && FLAGS_cluster.empty()) {
    LOG(INFO) << "without --data or --memory_file: the items are lost when the server ends";
  }
  LogWhoMayConnect(device, listen);
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
  GANNET_ASSIGN_OR_RETURN(const std::vector<SocketAddress> listen, ListenAddresses(device.kind));
  options->listen = listen.front();
  options->more_rails.assign(listen.begin() + 1, listen.end());
  RaiseFileLimit();
  LogTerms(device, listen);
  LOG(INFO) << numa;
  return absl::OkStatus();
}

// Makes the server a member of its group, if the flags ask for it.
absl::StatusOr<ClusterPlace> FindPlace(Server::Options* options) {
  ClusterFlags flags = FlagsOfCluster();
  flags.version = GANNET_VERSION;
  flags.waits_for_etcd = WasExecutedAgain();
  if (!flags.asks_for_member()) return ClusterPlace{};
  GANNET_ASSIGN_OR_RETURN(ClusterPlace place, FindClusterPlace(flags));
  GANNET_RETURN_IF_ERROR(TakePolicy(*place.store->Policy(), place.group.name, options));
  place.group.policy = PolicyOfFlags();
  place.store->SetOwnPolicy(place.group.policy);
  options->group = place.group;
  options->disk.may_fail = WasExecutedAgain();
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

// All but the first of the rails.
std::string MoreRails(const std::vector<Rail>& rails) {
  std::string more;
  for (size_t i = 1; i < rails.size(); ++i) {
    absl::StrAppend(&more, " rail=", rails[i].address.ToString(), "/", rails[i].device.name);
  }
  return more;
}

void SayReady(const std::string& address, const Device& device, const std::vector<Rail>& rails) {
  std::printf(
      "READY %s device=%s kind=%s%s%s%s\n", address.c_str(), device.name.c_str(),
      std::string(DeviceKindName(device.kind)).c_str(), MoreRails(rails).c_str(),
      FLAGS_data.empty() ? "" : absl::StrCat(" disk=", FLAGS_sync).c_str(),
      FLAGS_memory_file.empty() ? "" : absl::StrCat(" memory_file=", FLAGS_memory_file).c_str());
  std::fflush(stdout);
}

// Waits until a member of a group has the group's items, so that the next one may be stopped. That
// may take hours, if it waits for others. Returns false if it stops before.
bool AwaitReady(const ServerThreads& threads, const Supervisor& supervisor) {
  const Member* const member = threads.server().member();
  if (member == nullptr) return true;
  std::string told;
  int64_t tell_at_ns = 0;
  while (true) {
    const std::string why = WhyMemberIsNotReady(member->Look());
    if (why.empty()) return true;
    if (std::exchange(told, why) != why || MonotonicNs() >= tell_at_ns) {
      supervisor.NeedsTime(why, kMoreTimeNs);
      tell_at_ns = MonotonicNs() + kMoreTimeNs / 4;
    }
    if (threads.AwaitStop(kLookNs)) return false;
  }
}

bool IsTier(const std::string& path, const std::string& tier) {
  std::error_code ignored;  // one of them is not there
  return !tier.empty() && (path == tier || std::filesystem::equivalent(path, tier, ignored));
}

// Looks at what a server keeps, or asks one, if the flags want that instead of a server.
std::optional<absl::Status> CheckIfAsked(const Server::Options& options) {
  if (!FLAGS_ask_ready.empty()) return AskReady(FLAGS_ask_ready);
  if (!FLAGS_upgrade_check.empty()) return UpgradeCheck(FLAGS_upgrade_check, FLAGS_json);
  if (FLAGS_check.empty()) return std::nullopt;
  if (IsTier(FLAGS_check, options.tier.directory)) {
    return CheckTier(options.tier, !options.memory_file.empty(), FLAGS_json);
  }
  return std::filesystem::is_regular_file(FLAGS_check) ? CheckMemoryFile(FLAGS_check, FLAGS_json)
                                                       : CheckDirectory(FLAGS_check, FLAGS_json);
}

// Starts the log, so that it has all that follows. Without a server to
// start there is none.
absl::Status StartLog() {
  const bool serves = FLAGS_ask_ready.empty() && FLAGS_upgrade_check.empty() && FLAGS_check.empty();
  if (!serves) return absl::OkStatus();
  GANNET_ASSIGN_OR_RETURN(std::unique_ptr<LogLines> lines,
                          LogLines::Start({.file = FLAGS_log_file, .json = FLAGS_log_json}));
  g_log_lines = lines.release();  // for as long as the process lives, since a signal may come
  return absl::OkStatus();
}

int Main(char** argv) {
  FLAGS_auth_file = AuthFilePath(FLAGS_auth_file);
  if (absl::Status status = StartLog(); !status.ok()) return Fail(status);
  absl::StatusOr<Server::Options> options = OptionsFromFlags();
  if (!options.ok()) {
    Fail(options.status());
    return absl::IsInvalidArgument(options.status()) ? kExitWrongUsage : kExitFailed;
  }
  if (const std::optional<absl::Status> checked = CheckIfAsked(*options))
    return checked->ok() ? 0 : Fail(*checked);
  absl::StatusOr<Device> device = UseDevice(FLAGS_device, argv);
  if (!device.ok()) return Fail(Named("device", FLAGS_device, device.status()));
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
  auto threads = ServerThreads::Start(*std::move(server),
                                      {.busy_poll_ns = int64_t{FLAGS_busy_poll_us} * kNsPerUs,
                                       .supervisor = &supervisor,
                                       .stop_wait_ns = int64_t{FLAGS_stop_wait_s} * kNsPerSecond});
  if (!threads.ok()) return Fail(threads.status());
  if (http != nullptr) {
    observer.emplace(threads->get(), Observer::Options{.version = GANNET_VERSION,
                                                       .address = address,
                                                       .cluster = FLAGS_cluster,
                                                       .group = place->group.name,
                                                       .hangs_ns = kSilencesUntilHanging *
                                                                   FLAGS_silence_ms * kNsPerMs});
    Show(http.get(), &*observer);
  }
  auto announcer = Announce(*place, &threads->get()->server());
  if (!announcer.ok()) return Fail(announcer.status());
  InstallSignals(threads->get(), supervisor);
  if (AwaitReady(**threads, supervisor)) {
    SayReady(address, *device, threads->get()->server().context().rails);
    supervisor.Ready(absl::StrCat("serves on ", address, ", device ", device->name));
  }
  const absl::Status status = (*threads)->Wait();
  if (!status.ok() && !absl::IsAborted(status)) {
    // At once: on a device that is gone nothing can be torn down in order. A disk has what it has.
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
  gannet::SurviveLostOutputs();
  // If TZ is unset, the C library reads the time zone again for each line of the log.
  setenv("TZ", ":/etc/localtime", /*overwrite=*/0);
  FLAGS_logtostderr = true;
  const gannet::Program program = {
      .name = "kvserver",
      .purpose = "serves Gannet's in-memory key-value store over RDMA",
      .version = gannet::Version(),
      .flags_file = "flags/server_flags.cc",
      .notes =
          "GANNET_AUTH_FILE in the environment is the default of --auth_file. Without either,\n"
          "nobody is authenticated: whoever reaches the address may read and write all. So it is\n"
          "127.0.0.1 on softverbs, unless --listen names another. With a key, nothing is "
          "encrypted\n"
          "all the same: see SECURITY.md.\n"
          "Exit code: 0 stopped, 1 could not start or serve on, 2 wrong usage.\n",
      .groups = gannet::FlagGroups(),
      .examples = {"kvserver --memory=4G",
                   "kvserver --memory=16G --on_full=evict --listen=10.0.0.1:7471 "
                   "--auth_file=/etc/gannet/keys",
                   "kvserver --memory=16G --data=/var/lib/gannet --sync=always "
                   "--http=127.0.0.1:9471"}};
  if (const auto exit_code = gannet::ParseCommandLine(program, argc, argv)) return *exit_code;
  google::InitGoogleLogging(argv[0]);
  return gannet::Main(argv);
}
