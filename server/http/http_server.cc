#include "server/http/http_server.h"

#include <civetweb.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "server/http/page.h"

namespace gannet {
namespace {

constexpr char kThreads[] = "3";
constexpr char kTimeoutMs[] = "5000";

// Nothing of another origin: the page has all that it needs.
constexpr char kHeaders[] =
    "Cache-Control: no-store\r\n"
    "Content-Security-Policy: default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline'; frame-ancestors 'none'\r\n"
    "X-Content-Type-Options: nosniff\r\n"
    "Connection: close\r\n";

// CivetWeb says on its log why it could not start.
int KeepLog(const mg_connection*, const char* message) {
  return message == nullptr;  // not 0: it is not logged elsewhere
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(std::string_view listen) {
  const size_t colon = listen.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == listen.size()) {
    return absl::InvalidArgumentError(absl::StrCat("--http=", std::string(listen),
                                                   " is no ADDR:PORT, for example 127.0.0.1:9471"));
  }
  std::unique_ptr<HttpServer> server(new HttpServer());
  const std::string ports(listen);
  const char* options[] = {"listening_ports",
                           ports.c_str(),
                           "num_threads",
                           kThreads,
                           "request_timeout_ms",
                           kTimeoutMs,
                           "enable_keep_alive",
                           "no",
                           "enable_directory_listing",
                           "no",
                           nullptr};
  mg_callbacks callbacks{};
  callbacks.log_message = KeepLog;
  mg_init_library(0);
  server->context_ = mg_start(&callbacks, server.get(), options);
  if (server->context_ == nullptr) {
    mg_exit_library();
    return absl::FailedPreconditionError(
        absl::StrCat("cannot listen for HTTP on ", ports,
                     ": the port is in use, or the address is not this machine's"));
  }
  mg_server_port port{};
  mg_get_server_ports(server->context_, 1, &port);
  server->address_ = absl::StrCat(std::string(listen.substr(0, colon)), ":", port.port);
  mg_set_request_handler(server->context_, "/", OnRequest, server.get());
  return server;
}

// CivetWeb looks only every two seconds whether it is to stop, or when somebody connects. So this
// connects.
HttpServer::~HttpServer() {
  if (context_ == nullptr) return;
  std::atomic<bool> stopped{false};
  std::thread nudger([this, &stopped] {
    const size_t colon = address_.rfind(':');
    const std::string host(
        absl::StripSuffix(absl::StripPrefix(address_.substr(0, colon), "["), "]"));
    const int port = std::stoi(address_.substr(colon + 1));
    // Relaxed: it tells nothing but itself.
    while (!stopped.load(std::memory_order_relaxed)) {
      char why_not[64];
      mg_connection* nudge = mg_connect_client(host.c_str(), port, 0, why_not, sizeof(why_not));
      if (nudge != nullptr) mg_close_connection(nudge);
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  });
  mg_stop(context_);
  stopped.store(true, std::memory_order_relaxed);
  nudger.join();
  mg_exit_library();
}

void HttpServer::Ready(Sources sources) {
  sources_ = std::move(sources);
  ready_.store(true, std::memory_order_release);
}

int HttpServer::OnRequest(mg_connection* connection, void* self) {
  const mg_request_info* request = mg_get_request_info(connection);
  const std::string_view method = request->request_method;
  Answer answer;
  if (method == "GET" || method == "HEAD") {
    answer = static_cast<const HttpServer*>(self)->AnswerTo(request->local_uri);
  } else {
    answer = {.status = 405, .body = "only GET\n"};
  }
  mg_printf(connection, "HTTP/1.1 %d %s\r\n%sContent-Type: %s\r\nContent-Length: %zu\r\n\r\n",
            answer.status, mg_get_response_code_text(connection, answer.status), kHeaders,
            answer.type, answer.body.size());
  if (method == "GET") mg_write(connection, answer.body.data(), answer.body.size());
  return answer.status;
}

HttpServer::Answer HttpServer::AnswerTo(std::string_view path) const {
  const bool ready = ready_.load(std::memory_order_acquire);
  if (path == "/healthz") {
    if (ready && !sources_.healthy()) return {.status = 503, .body = "a worker hangs\n"};
    return {.body = "ok\n"};
  }
  if (path == "/readyz") return Readiness();
  if (path == "/") return {.type = "text/html; charset=utf-8", .body = std::string(kPage)};
  if (path != "/metrics" && path != "/status.json") {
    return {.status = 404, .body = "there are /, /metrics, /healthz, /readyz and /status.json\n"};
  }
  if (!ready) return {.status = 503, .body = "the server is starting\n"};
  if (path == "/metrics") {
    return {.type = "text/plain; version=0.0.4; charset=utf-8", .body = sources_.metrics()};
  }
  return {.type = "application/json", .body = sources_.json()};
}

HttpServer::Answer HttpServer::Readiness() const {
  if (stopping_.load(std::memory_order_relaxed)) {
    return {.status = 503, .body = "the server is stopping\n"};
  }
  if (!ready_.load(std::memory_order_acquire)) {
    return {.status = 503, .body = "the server is starting\n"};
  }
  return {.body = "ready\n"};
}

}  // namespace gannet
