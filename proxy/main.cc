// gannet-proxy: lets programs in any language use a Gannet store. It speaks memcached's and Redis'
// protocols to applications of its host, and is a client of the store.

#include <gannet/async_client.h>
#include <gflags/gflags.h>
#include <glog/logging.h>
#include <signal.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/clock.h"
#include "common/base/lost_outputs.h"
#include "common/base/server_list.h"
#include "common/base/status_macros.h"
#include "common/http/http_server.h"
#include "common/program/command_line.h"
#include "common/program/log_lines.h"
#include "common/program/supervisor.h"
#include "common/rdma/device_choice.h"
#include "proxy/http/proxy_view.h"
#include "proxy/jobs/client_list.h"
#include "proxy/jobs/database.h"
#include "proxy/jobs/passwords.h"
#include "proxy/jobs/scripts.h"
#include "proxy/net/event_loop.h"
#include "proxy/walk/walk_thread.h"

DEFINE_string(
    listen, "127.0.0.1:11211",
    "where applications connect: HOST:PORT or unix:PATH; several are separated by commas, "
    "port 0 takes any");
DEFINE_bool(allow_remote, false,
            "allow --listen with addresses that other hosts can reach; nobody is authenticated "
            "there, and nothing is encrypted");
DEFINE_string(socket_mode, "0700", "permissions of a UNIX socket, octal");
DEFINE_string(protocol, "auto",
              "what applications speak: auto (by the first byte of each connection), memcached or "
              "redis");
DEFINE_string(server, "",
              "HOST:PORT of the server, or several separated by commas; a group is "
              "cluster:HOST:PORT,HOST:PORT; empty: $GANNET_SERVER, or "
              "127.0.0.1:7471");
DEFINE_string(device, "auto", "auto, soft (the user-space device), or an RDMA device's name");
DEFINE_string(auth_file, "",
              "file of keys, the first of which is shown to the server: lines of ID HEXKEY [read]; "
              "empty: $GANNET_AUTH_FILE, or no key");
DEFINE_string(password_file, "",
              "file of passwords that applications give with AUTH: lines of PASSWORD or USER "
              "PASSWORD; empty: none is wanted");
DEFINE_uint32(
    databases, 1,
    "databases that SELECT of Redis' protocol knows; see docs/proxy.md before you change it");
DEFINE_uint32(threads, 1, "threads, each with its own connection to the servers");
DEFINE_uint64(connections_max, 10'000, "connections of applications at most");
DEFINE_uint64(buffers, 512 << 20,
              "bytes that all connections of applications together may hold for commands and "
              "replies; see docs/proxy.md");
DEFINE_string(log_file, "",
              "file that the log's lines are appended to, instead of stderr. SIGHUP opens it anew, "
              "for who renamed it");
DEFINE_bool(log_json, false, "whether the log's lines are JSON: time, level, source and message");
DEFINE_string(
    http, "",
    "ADDR:PORT to show /metrics, /healthz and /readyz on, 127.0.0.1:9472 for example; "
    "empty: nowhere. Whoever reaches it sees addresses of servers, and no keys or values");
DEFINE_uint64(location_cache, 16 << 20,
              "bytes for remembered locations of items, 16 for each, of all threads together");
DEFINE_uint64(near_cache, 0,
              "bytes for copies of items, of all threads together: items that the server leases "
              "(its --item_lease_ms) are read from them; 0: off");

namespace gannet::proxy {
namespace {

constexpr int kExitFailed = 1;
constexpr uint32_t kThreadsMax = 64;
constexpr uint32_t kDepth = 512;
constexpr uint64_t kConnectionsMaxMost = 1'000'000;
constexpr uint64_t kBuffersMin = 8 << 20;

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "gannet-proxy: %s\n", std::string(status.message()).c_str());
  return absl::IsInvalidArgument(status) ? kExitWrongUsage : kExitFailed;
}

absl::StatusOr<Protocol> ProtocolFromFlag() {
  if (FLAGS_protocol == "auto") return Protocol::kAuto;
  if (FLAGS_protocol == "memcached") return Protocol::kMemcached;
  if (FLAGS_protocol == "redis") return Protocol::kRedis;
  return absl::InvalidArgumentError("--protocol must be auto, memcached or redis");
}

absl::Status CheckFlags() {
  if (FLAGS_threads < 1 || FLAGS_threads > kThreadsMax) {
    return absl::InvalidArgumentError(absl::StrCat("--threads must be 1 to ", kThreadsMax));
  }
  if (FLAGS_databases < 1 || FLAGS_databases > Database::kCountMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("--databases must be 1 to ", Database::kCountMax));
  }
  if (FLAGS_connections_max < 1 || FLAGS_connections_max > kConnectionsMaxMost) {
    return absl::InvalidArgumentError(
        absl::StrCat("--connections_max must be 1 to ", kConnectionsMaxMost));
  }
  if (FLAGS_buffers < kBuffersMin) {
    return absl::InvalidArgumentError(absl::StrCat("--buffers must be at least ", kBuffersMin));
  }
  return ProtocolFromFlag().status();
}

absl::StatusOr<mode_t> SocketMode() {
  char* end = nullptr;
  const unsigned long mode = std::strtoul(FLAGS_socket_mode.c_str(), &end, 8);
  if (FLAGS_socket_mode.empty() || *end != '\0' || mode > 0777) {
    return absl::InvalidArgumentError("--socket_mode must be octal, 0 to 0777");
  }
  return static_cast<mode_t>(mode);
}

std::vector<std::string> Servers() {
  const char* named = std::getenv("GANNET_SERVER");
  std::string servers = FLAGS_server;
  if (servers.empty()) servers = named != nullptr && *named != '\0' ? named : "127.0.0.1:7471";
  return SplitServerList(servers);
}

using Listeners = std::vector<std::unique_ptr<ApplicationListener>>;

absl::StatusOr<Listeners> Listen() {
  Listeners listeners;
  GANNET_ASSIGN_OR_RETURN(const mode_t mode, SocketMode());
  for (const std::string& address :
       std::vector<std::string>(absl::StrSplit(FLAGS_listen, ',', absl::SkipEmpty()))) {
    GANNET_ASSIGN_OR_RETURN(
        auto listener,
        ApplicationListener::Create(
            {.address = address, .allow_remote = FLAGS_allow_remote, .socket_mode = mode}));
    listeners.push_back(std::move(listener));
  }
  if (listeners.empty()) return absl::InvalidArgumentError("--listen needs HOST:PORT or unix:PATH");
  if (FLAGS_allow_remote && FLAGS_password_file.empty()) {
    LOG(WARNING) << "--allow_remote: whoever reaches the address may read and write all";
  }
  return listeners;
}

gannet::Options ClientOptions() {
  gannet::Options options;
  options.device = FLAGS_device;
  options.auth_file = FLAGS_auth_file;
  options.depth = kDepth;
  options.location_cache_bytes = FLAGS_location_cache / FLAGS_threads;
  options.near_cache_bytes = FLAGS_near_cache / FLAGS_threads;
  options.log = [](LogLevel level, std::string_view line) {
    if (level == LogLevel::kInfo) return;
    level == LogLevel::kError ? LOG(ERROR) << line : LOG(WARNING) << line;
  };
  return options;
}

// The threads of the proxy, and what they share.
struct Proxy {
  LogLines* log_lines = nullptr;  // lives until the process ends, as threads write lines
  Service service;
  Listeners listeners;
  std::atomic<uint64_t> next_id{1};
  MemoryLimit memory{FLAGS_buffers};
  ClientList clients;
  LoadedScripts scripts;
  Passwords passwords;
  std::unique_ptr<WalkThread> walks;
  std::vector<std::unique_ptr<EventLoop>> loops;
  std::vector<std::thread> threads;
  ProxyView view;
  std::unique_ptr<HttpServer> http;  // its thread reads all of the above; nullptr without --http
};

absl::Status Build(Proxy& proxy) {
  proxy.service.version = absl::StrCat("1.6.18-gannet-", GANNET_VERSION);
  proxy.service.servers = Servers();
  proxy.service.connections_max = FLAGS_connections_max;
  proxy.service.databases = FLAGS_databases;
  proxy.service.started = std::time(nullptr);
  proxy.service.memory = &proxy.memory;
  proxy.service.clients = &proxy.clients;
  proxy.service.scripts = &proxy.scripts;
  if (!FLAGS_password_file.empty()) {
    GANNET_ASSIGN_OR_RETURN(proxy.passwords, Passwords::Read(FLAGS_password_file));
    proxy.service.passwords = &proxy.passwords;
  }
  proxy.walks = std::make_unique<WalkThread>(proxy.service.servers, ClientOptions());
  GANNET_ASSIGN_OR_RETURN(const Protocol protocol, ProtocolFromFlag());
  GANNET_ASSIGN_OR_RETURN(proxy.listeners, Listen());
  if (!FLAGS_http.empty()) {
    GANNET_ASSIGN_OR_RETURN(proxy.http,
                            HttpServer::Start({.listen = FLAGS_http, .program = "proxy"}));
  }
  EventLoop::Options options{.listeners = {},
                             .protocol = protocol,
                             .connections_max = FLAGS_connections_max,
                             .service = &proxy.service,
                             .next_id = &proxy.next_id,
                             .walks = proxy.walks.get(),
                             .memory = &proxy.memory,
                             .is_watched = proxy.http != nullptr};
  for (const auto& listener : proxy.listeners) options.listeners.push_back(listener.get());
  for (uint32_t i = 0; i < FLAGS_threads; ++i) {
    GANNET_ASSIGN_OR_RETURN(auto client,
                            AsyncClient::Connect(proxy.service.servers, ClientOptions()));
    options.counters = &proxy.service.threads.emplace_back();
    GANNET_ASSIGN_OR_RETURN(auto loop, EventLoop::Create(std::move(client), options));
    proxy.loops.push_back(std::move(loop));
  }
  return absl::OkStatus();
}

// Shows the proxy over HTTP, from now on.
void Show(Proxy& proxy) {
  ProxyView& view = proxy.view;
  view = {.version = GANNET_VERSION, .service = &proxy.service};
  for (const auto& loop : proxy.loops) view.loops.push_back(&loop->status());
  proxy.http->Ready({.metrics = [&view] { return view.Metrics(); },
                     .hangs = [&view] { return view.WhatHangs(MonotonicNs() / kNsPerMs); },
                     .not_ready = [&view] { return view.WhyNotReady(); }});
  LOG(INFO) << "shows itself at http://" << proxy.http->address();
  if (proxy.http->local()) return;
  LOG(WARNING) << proxy.http->Warning("addresses of servers, and how much the proxy is used");
}

// Tells the supervisor that all threads have gone around since the last call.
void Beat(const Proxy& proxy, const Supervisor& supervisor, std::vector<uint64_t>* rounds) {
  bool all = true;
  for (size_t i = 0; i < proxy.loops.size(); ++i) {
    const uint64_t now = proxy.loops[i]->rounds();
    all = all && now != std::exchange((*rounds)[i], now);
  }
  if (all) supervisor.Alive();
}

// Waits for SIGTERM or SIGINT, which all threads block. SIGHUP opens the log anew.
void AwaitEnd(const Proxy& proxy, const Supervisor& supervisor, const sigset_t& signals) {
  std::vector<uint64_t> rounds(proxy.loops.size());
  const int64_t beat_ns = supervisor.beat_ns();
  for (;;) {
    const timespec pause = {beat_ns / 1'000'000'000, beat_ns % 1'000'000'000};
    const int got = sigtimedwait(&signals, nullptr, beat_ns == 0 ? nullptr : &pause);
    if (got == SIGHUP) proxy.log_lines->RequestReopen();
    if (got >= 0 && got != SIGHUP) return;
    if (errno == EAGAIN) Beat(proxy, supervisor, &rounds);
  }
}

void RaiseFileLimit() {
  constexpr rlim_t kOthers = 64;  // beside those of applications
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_max >= FLAGS_connections_max + kOthers) return;
  LOG(WARNING) << "the limit of open files is " << limit.rlim_max
               << ", which --connections_max=" << FLAGS_connections_max
               << " may exceed. Raise it (ulimit -n, LimitNOFILE=)";
}

int Serve(Proxy& proxy, const sigset_t& signals) {
  if (const absl::Status status = Build(proxy); !status.ok()) return Fail(status);
  const Supervisor supervisor = Supervisor::FromEnvironment();
  for (const auto& loop : proxy.loops) {
    proxy.threads.emplace_back([&loop] { loop->Run(); });
  }
  if (proxy.http != nullptr) Show(proxy);
  std::vector<std::string> addresses;
  for (const auto& listener : proxy.listeners) addresses.push_back(listener->address());
  const std::string all = absl::StrJoin(addresses, ",");
  const std::string servers = absl::StrJoin(proxy.service.servers, ",");
  std::printf("READY %s server=%s\n", all.c_str(), servers.c_str());
  std::fflush(stdout);
  supervisor.Ready(absl::StrCat("serves on ", all, ", server ", servers));
  AwaitEnd(proxy, supervisor, signals);
  supervisor.Stopping();
  if (proxy.http != nullptr) proxy.http->BeginStop();
  for (const auto& loop : proxy.loops) loop->Stop();
  for (std::thread& thread : proxy.threads) thread.join();
  return 0;
}

int Main(char** argv) {
  FLAGS_logtostderr = true;
  google::InitGoogleLogging(argv[0]);
  if (const absl::Status status = CheckFlags(); !status.ok()) return Fail(status);
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  auto lines = LogLines::Start({.file = FLAGS_log_file, .json = FLAGS_log_json});
  if (!lines.ok()) return Fail(lines.status());
  if (const auto device = UseDevice(FLAGS_device, argv); !device.ok()) return Fail(device.status());
  Proxy proxy;
  proxy.log_lines = lines->release();
  RaiseFileLimit();
  return Serve(proxy, signals);
}

}  // namespace
}  // namespace gannet::proxy

int main(int argc, char** argv) {
  gannet::SurviveLostOutputs();
  const gannet::Program program = {
      .name = "gannet-proxy",
      .purpose =
          "speaks memcached's and Redis' protocols to applications of this host, and reads "
          "a Gannet store for them",
      .version = GANNET_VERSION,
      .flags_file = "proxy/main.cc",
      .notes =
          "GANNET_SERVER and GANNET_AUTH_FILE in the environment are the defaults of --server and\n"
          "--auth_file.\n"
          "Without --password_file applications are not authenticated: whoever can connect may "
          "read\n"
          "and write all.\n"
          "Exit code: 0 stopped, 1 could not start, 2 wrong usage.\n",
      .groups = {{"Applications",
                  "listen allow_remote socket_mode password_file protocol databases "
                  "connections_max buffers"},
                 {"The store", "server device auth_file threads location_cache near_cache"},
                 {"What operators see", "http log_file log_json"}},
      .examples = {"gannet-proxy --server=10.0.0.1:7471",
                   "gannet-proxy --listen=127.0.0.1:6379,unix:/run/gannet/proxy.sock --threads=4",
                   "gannet-proxy --server=cluster:10.0.0.1:7471,10.0.0.2:7471 "
                   "--http=127.0.0.1:9472"}};
  if (const auto exit_code = gannet::ParseCommandLine(program, argc, argv)) return *exit_code;
  return gannet::proxy::Main(argv);
}
