#ifndef GANNET_SERVER_HTTP_HTTP_SERVER_H_
#define GANNET_SERVER_HTTP_HTTP_SERVER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

struct mg_context;
struct mg_connection;

namespace gannet {

// Serves a few pages over HTTP, in threads of its own: /metrics, /healthz, /readyz, / and the JSON
// that the page reads. It only answers GETs, and changes nothing.
//
// Thread safety: Ready and BeginStop may be called from any thread, a signal handler included.
class HttpServer {
 public:
  // What the pages show. Called by several threads at once.
  struct Sources {
    std::function<std::string()> metrics;
    std::function<std::string()> json;
    std::function<bool()> healthy;
  };

  // Begins to answer at ADDR:PORT (port 0: any). Until Ready, only /healthz says OK.
  // InvalidArgument: no address. FailedPrecondition: cannot listen there.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(std::string_view listen);
  // Stops, and waits for requests that are being answered.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // The store is ready. REQUIRES: called once; what `sources` call outlives the HttpServer.
  void Ready(Sources sources);
  // From now on /readyz says that the store is stopping.
  void BeginStop() { stopping_.store(true, std::memory_order_relaxed); }

  // With the port that was chosen.
  const std::string& address() const { return address_; }

 private:
  struct Answer {
    int status = 200;
    const char* type = "text/plain; charset=utf-8";
    std::string body;
  };

  HttpServer() = default;
  static int OnRequest(mg_connection* connection, void* self);
  Answer AnswerTo(std::string_view path) const;
  Answer Readiness() const;

  std::string address_;
  Sources sources_;
  // Release after sources_ was set, acquire before it is used.
  std::atomic<bool> ready_{false};
  // Relaxed: it tells nothing but itself.
  std::atomic<bool> stopping_{false};
  mg_context* context_ = nullptr;
};

}  // namespace gannet

#endif  // GANNET_SERVER_HTTP_HTTP_SERVER_H_
