#include "common/http/http_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

namespace gannet {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// A connection to the server. Gives up what takes a minute, which no machine needs.
class Connection {
 public:
  Connection(const std::string& address, const std::string& request)
      : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval minute{.tv_sec = 60, .tv_usec = 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &minute, sizeof(minute));
    sent_ = connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0 &&
            send(fd_, request.data(), request.size(), MSG_NOSIGNAL) > 0;
  }
  ~Connection() { close(fd_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Returns all that comes until the server closes the connection.
  std::string ReadAll() const {
    std::string answer;
    char piece[4096];
    for (ssize_t n; sent_ && (n = recv(fd_, piece, sizeof(piece), 0)) > 0;) answer.append(piece, n);
    return answer;
  }
  // Waits until the server closes the connection. Returns false if it does not.
  bool AwaitEnd() const {
    char byte = 0;
    return recv(fd_, &byte, 1, 0) == 0 || errno == ECONNRESET;
  }

 private:
  const int fd_;
  bool sent_ = false;
};

// Sends a request as it is, and returns all of the answer.
std::string Ask(const std::string& address, const std::string& request) {
  return Connection(address, request).ReadAll();
}

class HttpServerTest : public testing::Test {
 protected:
  void SetUp() override {
    auto http = HttpServer::Start({.listen = "127.0.0.1:0", .program = "server", .page = kPage});
    ASSERT_TRUE(http.ok()) << http.status();
    http_ = *std::move(http);
  }
  std::string Get(const std::string& path) {
    return Ask(http_->address(), "GET " + path + " HTTP/1.1\r\nHost: gannet\r\n\r\n");
  }
  void Ready() {
    http_->Ready({.metrics = [] { return "the_metrics 1\n"; },
                  .json = [] { return "{}"; },
                  .hangs = [this] { return hangs_; },
                  .not_ready = [this] { return not_ready_; },
                  .fails = [this] { return fails_; }});
  }

  static constexpr std::string_view kPage = "<html>a page</html>";
  std::string hangs_;
  std::string not_ready_;
  std::string fails_;
  std::unique_ptr<HttpServer> http_;
};

TEST_F(HttpServerTest, WhileTheServerStartsItIsAliveAndNotReady) {
  EXPECT_THAT(Get("/healthz"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(Get("/readyz"), StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(Get("/metrics"), StartsWith("HTTP/1.1 503 "));
}

TEST_F(HttpServerTest, ShowsWhatItsSourcesSay) {
  Ready();
  EXPECT_THAT(Get("/readyz"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(Get("/metrics"), HasSubstr("\r\n\r\nthe_metrics 1\n"));
  EXPECT_THAT(Get("/metrics"), HasSubstr("Content-Type: text/plain; version=0.0.4"));
  EXPECT_THAT(Get("/status.json"), HasSubstr("\r\n\r\n{}"));
}

TEST_F(HttpServerTest, AServerThatHangsIsNotHealthyAndOneThatStopsNotReady) {
  Ready();
  hangs_ = "a worker hangs";
  EXPECT_THAT(Get("/healthz"), StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(Get("/healthz"), HasSubstr("\r\n\r\na worker hangs\n"));
  http_->BeginStop();
  EXPECT_THAT(Get("/readyz"), StartsWith("HTTP/1.1 503 "));
}

TEST_F(HttpServerTest, WhoIsNotReadySaysWhyAndIsHealthy) {
  Ready();
  not_ready_ = "writes are refused: no space left on device";
  EXPECT_THAT(Get("/readyz"), StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(Get("/readyz"), HasSubstr("writes are refused: no space left on device\n"));
  EXPECT_THAT(Get("/healthz"), StartsWith("HTTP/1.1 200 ")) << "a restart would not help";
  not_ready_.clear();
  EXPECT_THAT(Get("/readyz"), StartsWith("HTTP/1.1 200 "));
}

// An orchestrator takes away who is not ready. What serves, if less well, stays.
TEST_F(HttpServerTest, WhoServesThoughSomethingFailsIsReadyAndSaysSo) {
  Ready();
  EXPECT_THAT(Get("/readyz"), HasSubstr("\r\n\r\nready\n"));
  fails_ = "the disk has failed";
  EXPECT_THAT(Get("/readyz"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(Get("/readyz"), HasSubstr("\r\n\r\nready, but the disk has failed\n"));
}

// Each of them once held a thread for five seconds: these for minutes.
TEST_F(HttpServerTest, HalfOpenRequestsKeepNobodyWaiting) {
  Ready();
  std::vector<std::unique_ptr<Connection>> half_open;
  for (int i = 0; i < 225; ++i) {
    const char* begun = i % 2 == 0 ? "GET /metrics HTTP/1.1\r\nHost: " : "G";
    half_open.push_back(std::make_unique<Connection>(http_->address(), begun));
    if (i % 75 == 0) {
      EXPECT_THAT(Get("/healthz"), StartsWith("HTTP/1.1 200 "));
    }
  }
  EXPECT_THAT(Get("/healthz"), StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(Get("/metrics"), HasSubstr("the_metrics"));
  EXPECT_TRUE(half_open.front()->AwaitEnd()) << "the oldest goes when there are too many";
}

TEST_F(HttpServerTest, ThePageMayLoadNothingFromElsewhere) {
  const std::string page = Get("/");
  EXPECT_THAT(page, HasSubstr("text/html"));
  EXPECT_THAT(page, HasSubstr("Content-Security-Policy: default-src 'none'"));
  EXPECT_THAT(page, testing::EndsWith(kPage));
}

TEST_F(HttpServerTest, RefusesEverythingElse) {
  Ready();
  EXPECT_THAT(Get("/../etc/passwd"), testing::Not(HasSubstr("root:")));
  EXPECT_THAT(Get("/flags"), StartsWith("HTTP/1.1 404 "));
  const std::string& address = http_->address();
  EXPECT_THAT(Ask(address, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n"),
              StartsWith("HTTP/1.1 405 "));
  Ask(address, std::string(100'000, 'x'));
  EXPECT_THAT(Get("/healthz"), StartsWith("HTTP/1.1 200 ")) << "still there";
}

TEST(HttpServerStartTest, SaysWhyItCannotListen) {
  EXPECT_EQ(HttpServer::Start({.listen = "9471"}).status().code(),
            absl::StatusCode::kInvalidArgument);
  for (const char* port : {"127.0.0.1:99999", "127.0.0.1:-1", "127.0.0.1:http"}) {
    EXPECT_EQ(HttpServer::Start({.listen = port}).status().code(),
              absl::StatusCode::kInvalidArgument)
        << port;
  }
  auto first = HttpServer::Start({.listen = "127.0.0.1:0"});
  ASSERT_TRUE(first.ok());
  const auto second = HttpServer::Start({.listen = (*first)->address()});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("in use"));
  EXPECT_EQ(HttpServer::Start({.listen = "no_such_host.invalid:1"}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(HttpServerStartTest, AProgramWithoutAPageHasOnlyTheOtherAnswers) {
  const auto http = *HttpServer::Start({.listen = "127.0.0.1:0", .program = "proxy"});
  const auto get = [&](const std::string& path) {
    return Ask(http->address(), "GET " + path + " HTTP/1.1\r\nHost: gannet\r\n\r\n");
  };
  EXPECT_THAT(get("/"), StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(get("/status.json"), HasSubstr("there are /metrics, /healthz and /readyz\n"));
  EXPECT_THAT(get("/readyz"), HasSubstr("the proxy is starting\n"));
}

TEST(HttpServerStartTest, KnowsWhetherOthersReachIt) {
  EXPECT_TRUE((*HttpServer::Start({.listen = "127.0.0.1:0"}))->local());
  EXPECT_FALSE((*HttpServer::Start({.listen = "0.0.0.0:0"}))->local());
}

}  // namespace
}  // namespace gannet
