#ifndef GANNET_COMMON_HTTP_HTTP_SERVER_H_
#define GANNET_COMMON_HTTP_HTTP_SERVER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "common/http/http_connections.h"

struct MHD_Daemon;

namespace gannet {

// Serves a few pages over HTTP, in a thread of its own: /metrics, /healthz, /readyz, and, where a
// program has them, a page for people at / and the JSON that it reads. It only answers GETs, and
// changes nothing. Connections that are slow, or send half a request, keep no other waiting.
//
// Thread safety: Ready and BeginStop may be called from any thread, a signal handler included.
class HttpServer {
 public:
  struct Options {
    std::string listen;     // ADDR:PORT, port 0: any
    std::string program;    // what its answers call this program: "server"
    std::string_view page;  // HTML for /; empty: there is no page, and no /status.json
  };
  // What the pages show. Called by the HttpServer's thread.
  struct Sources {
    std::function<std::string()> metrics;
    std::function<std::string()> json;   // only with a page
    std::function<std::string()> hangs;  // what hangs, so that a restart would help; empty: nothing
    std::function<std::string()> not_ready;  // why nobody should come now; empty: all may
    // What does not work although all may come, for /readyz; empty: everything does.
    std::function<std::string()> fails = [] { return ""; };
  };

  // Begins to answer. Until Ready, only /healthz says OK.
  // InvalidArgument: no address. FailedPrecondition: cannot listen there.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(Options options);
  // Stops, and waits until no source is being called.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // The program is ready. REQUIRES: called once; what `sources` call outlives the HttpServer.
  void Ready(Sources sources);
  // From now on /readyz says that the program is stopping.
  void BeginStop() { stopping_.store(true, std::memory_order_relaxed); }

  // With the port that was chosen.
  const std::string& address() const { return address_; }
  // Returns whether only this machine reaches that address.
  bool local() const { return local_; }
  // Returns what to warn of where others reach the address, too. `seen` is what they would see.
  std::string Warning(std::string_view seen) const;

 private:
  struct Answer {
    int status = 200;
    const char* type = "text/plain; charset=utf-8";
    std::string body;
  };

  struct Handler;

  explicit HttpServer(Options options) : options_(std::move(options)) {}
  Answer AnswerTo(std::string_view path) const;
  Answer NotFound() const;
  // Returns "the PROGRAM is WHAT", as an answer that says to come later.
  Answer NotNow(std::string_view what) const;
  Answer Readiness() const;

  const Options options_;
  std::string address_;
  bool local_ = false;
  HttpConnections connections_;  // the thread's
  Sources sources_;
  // Release after sources_ was set, acquire before it is used.
  std::atomic<bool> ready_{false};
  // Relaxed: it tells nothing but itself.
  std::atomic<bool> stopping_{false};
  MHD_Daemon* daemon_ = nullptr;
};

}  // namespace gannet

#endif  // GANNET_COMMON_HTTP_HTTP_SERVER_H_
