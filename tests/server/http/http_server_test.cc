#include "server/http/http_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>

namespace gannet {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// Sends a request as it is, and returns all of the answer.
std::string Ask(const std::string& address, const std::string& request) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0 &&
      send(fd, request.data(), request.size(), MSG_NOSIGNAL) > 0) {
    char piece[4096];
    for (ssize_t n; (n = recv(fd, piece, sizeof(piece), 0)) > 0;) answer.append(piece, n);
  }
  close(fd);
  return answer;
}

class HttpServerTest : public testing::Test {
 protected:
  void SetUp() override {
    auto http = HttpServer::Start("127.0.0.1:0");
    ASSERT_TRUE(http.ok()) << http.status();
    http_ = *std::move(http);
  }
  std::string Get(const std::string& path) {
    return Ask(http_->address(), "GET " + path + " HTTP/1.1\r\nHost: gannet\r\n\r\n");
  }
  void Ready() {
    http_->Ready({.metrics = [] { return "the_metrics 1\n"; },
                  .json = [] { return "{}"; },
                  .healthy = [this] { return healthy_; }});
  }

  bool healthy_ = true;
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
  healthy_ = false;
  EXPECT_THAT(Get("/healthz"), StartsWith("HTTP/1.1 503 "));
  http_->BeginStop();
  EXPECT_THAT(Get("/readyz"), StartsWith("HTTP/1.1 503 "));
}

TEST_F(HttpServerTest, ThePageNeedsNothingFromElsewhere) {
  const std::string page = Get("/");
  EXPECT_THAT(page, HasSubstr("text/html"));
  EXPECT_THAT(page, HasSubstr("Content-Security-Policy: default-src 'none'"));
  EXPECT_THAT(page, HasSubstr("width=device-width"));
  EXPECT_THAT(page, testing::Not(HasSubstr("http://")));
  EXPECT_THAT(page, testing::Not(HasSubstr("https://")));
  EXPECT_THAT(page, testing::EndsWith("</html>\n"));
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
  EXPECT_EQ(HttpServer::Start("9471").status().code(), absl::StatusCode::kInvalidArgument);
  auto first = HttpServer::Start("127.0.0.1:0");
  ASSERT_TRUE(first.ok());
  const auto second = HttpServer::Start((*first)->address());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("in use"));
}

}  // namespace
}  // namespace gannet
