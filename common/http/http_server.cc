#include "common/http/http_server.h"

#include <microhttpd.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace gannet {
namespace {

// After so long a connection that sends and takes nothing is closed.
constexpr unsigned kIdleSeconds = 5;
// For a request's line and headers.
constexpr size_t kRequestBytesMax = 16 << 10;
// Those that were shut down are still there until the thread gets to them.
constexpr unsigned kConnectionsMax = 4 * HttpConnections::kMax;

// Nothing of another origin: the page has all that it needs.
constexpr std::pair<const char*, const char*> kHeaders[] = {
    {"Cache-Control", "no-store"},
    {"Content-Security-Policy",
     "default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; "
     "script-src 'unsafe-inline'; frame-ancestors 'none'"},
    {"X-Content-Type-Options", "nosniff"},
    {"Connection", "close"}};

absl::Status NoAddress(std::string_view listen) {
  return absl::InvalidArgumentError(
      absl::StrCat("--http=", std::string(listen), " is no ADDR:PORT, for example 127.0.0.1:9471"));
}

// What listens, and where.
struct HttpSocket {
  int fd = -1;
  uint16_t port = 0;
  bool local = false;  // reached from this machine only
};

bool IsLoopback(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    const auto& ip4 = reinterpret_cast<const sockaddr_in&>(address);
    return ntohl(ip4.sin_addr.s_addr) >> 24 == 127;
  }
  return IN6_IS_ADDR_LOOPBACK(&reinterpret_cast<const sockaddr_in6&>(address).sin6_addr);
}

uint16_t HttpPortOf(const sockaddr_storage& address) {
  return ntohs(address.ss_family == AF_INET
                   ? reinterpret_cast<const sockaddr_in&>(address).sin_port
                   : reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
}

absl::StatusOr<HttpSocket> Bind(const addrinfo& where, std::string_view listen) {
  HttpSocket listener;
  listener.fd = socket(where.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int on = 1;
  setsockopt(listener.fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_storage bound{};
  socklen_t bytes = sizeof(bound);
  if (bind(listener.fd, where.ai_addr, where.ai_addrlen) != 0 ||
      ::listen(listener.fd, SOMAXCONN) != 0 ||
      getsockname(listener.fd, reinterpret_cast<sockaddr*>(&bound), &bytes) != 0) {
    const std::string why = std::strerror(errno);
    close(listener.fd);
    return absl::FailedPreconditionError(
        absl::StrCat("cannot listen for HTTP on ", std::string(listen), ": ", why,
                     ". The port must be free, and the address one of this machine's"));
  }
  listener.port = HttpPortOf(bound);
  listener.local = IsLoopback(bound);
  return listener;
}

absl::StatusOr<HttpSocket> Listen(std::string_view listen) {
  const size_t colon = listen.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == listen.size()) {
    return NoAddress(listen);
  }
  const std::string in_brackets(listen.substr(0, colon));
  const std::string host(absl::StripSuffix(absl::StripPrefix(in_brackets, "["), "]"));
  const std::string port(listen.substr(colon + 1));
  // getaddrinfo takes a number that is too large modulo 65536.
  uint32_t number = 0;
  if (!absl::SimpleAtoi(port, &number) || number > UINT16_MAX) return NoAddress(listen);
  const addrinfo hints{.ai_flags = AI_PASSIVE | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) return NoAddress(listen);
  auto listener = Bind(*found, listen);
  freeaddrinfo(found);
  return listener;
}

void KeepLog(void*, const char*, va_list) {}

void OnConnection(void* connections, MHD_Connection* connection, void**,
                  MHD_ConnectionNotificationCode what) {
  const MHD_ConnectionInfo* info =
      MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
  if (info == nullptr) return;
  auto* all = static_cast<HttpConnections*>(connections);
  if (what == MHD_CONNECTION_NOTIFY_STARTED) {
    all->Opened(info->connect_fd);
  } else {
    all->Closed(info->connect_fd);
  }
}

}  // namespace

// What libmicrohttpd calls.
struct HttpServer::Handler {
  static MHD_Result OnRequest(void* self, MHD_Connection* connection, const char* path,
                              const char* method, const char* /*version*/, const char* /*upload*/,
                              size_t* /*upload_bytes*/, void** /*context*/) {
    Answer answer = {.status = 405, .body = "only GET\n"};
    if (std::strcmp(method, "GET") == 0 || std::strcmp(method, "HEAD") == 0) {
      answer = static_cast<const HttpServer*>(self)->AnswerTo(path);
    }
    MHD_Response* response = MHD_create_response_from_buffer(answer.body.size(), answer.body.data(),
                                                             MHD_RESPMEM_MUST_COPY);
    if (response == nullptr) return MHD_NO;
    for (const auto& [name, value] : kHeaders) MHD_add_response_header(response, name, value);
    MHD_add_response_header(response, "Content-Type", answer.type);
    const MHD_Result queued =
        MHD_queue_response(connection, static_cast<unsigned>(answer.status), response);
    MHD_destroy_response(response);
    return queued;
  }
};

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(Options options) {
  auto listener = Listen(options.listen);
  if (!listener.ok()) return listener.status();
  const std::string host = options.listen.substr(0, options.listen.rfind(':'));
  std::unique_ptr<HttpServer> server(new HttpServer(std::move(options)));
  server->address_ = absl::StrCat(host, ":", listener->port);
  server->local_ = listener->local;
  // One thread for all connections, so that none that is slow keeps another waiting.
  server->daemon_ = MHD_start_daemon(
      MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ERROR_LOG, 0, nullptr, nullptr, Handler::OnRequest,
      server.get(), MHD_OPTION_EXTERNAL_LOGGER, KeepLog, nullptr, MHD_OPTION_LISTEN_SOCKET,
      listener->fd, MHD_OPTION_CONNECTION_TIMEOUT, kIdleSeconds, MHD_OPTION_CONNECTION_LIMIT,
      kConnectionsMax, MHD_OPTION_CONNECTION_MEMORY_LIMIT, kRequestBytesMax,
      MHD_OPTION_NOTIFY_CONNECTION, OnConnection, &server->connections_, MHD_OPTION_END);
  if (server->daemon_ != nullptr) return server;
  close(listener->fd);
  return absl::FailedPreconditionError("cannot start the thread that answers HTTP");
}

HttpServer::~HttpServer() {
  if (daemon_ != nullptr) MHD_stop_daemon(daemon_);
}

void HttpServer::Ready(Sources sources) {
  sources_ = std::move(sources);
  ready_.store(true, std::memory_order_release);
}

std::string HttpServer::Warning(std::string_view seen) const {
  return absl::StrCat("--http=", options_.listen,
                      " has no password: whoever reaches that address sees ", std::string(seen),
                      ". --http=127.0.0.1:PORT shows it to this machine only");
}

HttpServer::Answer HttpServer::AnswerTo(std::string_view path) const {
  const bool ready = ready_.load(std::memory_order_acquire);
  const bool has_page = !options_.page.empty();
  if (path == "/healthz") {
    const std::string hangs = ready ? sources_.hangs() : "";
    if (!hangs.empty()) return {.status = 503, .body = hangs + "\n"};
    return {.body = "ok\n"};
  }
  if (path == "/readyz") return Readiness();
  if (path == "/" && has_page) {
    return {.type = "text/html; charset=utf-8", .body = std::string(options_.page)};
  }
  if (path != "/metrics" && (path != "/status.json" || !has_page)) return NotFound();
  if (!ready) return NotNow("starting");
  if (path == "/metrics") {
    return {.type = "text/plain; version=0.0.4; charset=utf-8", .body = sources_.metrics()};
  }
  return {.type = "application/json", .body = sources_.json()};
}

HttpServer::Answer HttpServer::NotFound() const {
  return {.status = 404,
          .body = options_.page.empty()
                      ? "there are /metrics, /healthz and /readyz\n"
                      : "there are /, /metrics, /healthz, /readyz and /status.json\n"};
}

HttpServer::Answer HttpServer::NotNow(std::string_view what) const {
  return {.status = 503,
          .body = absl::StrCat("the ", options_.program, " is ", std::string(what), "\n")};
}

HttpServer::Answer HttpServer::Readiness() const {
  if (stopping_.load(std::memory_order_relaxed)) return NotNow("stopping");
  if (!ready_.load(std::memory_order_acquire)) return NotNow("starting");
  const std::string why = sources_.not_ready();
  if (!why.empty()) return {.status = 503, .body = why + "\n"};
  const std::string fails = sources_.fails();
  return {.body = fails.empty() ? "ready\n" : "ready, but " + fails + "\n"};
}

}  // namespace gannet
