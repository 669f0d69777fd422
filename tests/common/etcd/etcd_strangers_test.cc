// The client with what is not etcd, or does not answer.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/etcd/etcd_client.h"
#include "softverbs/tests/support/free_port.h"
#include "tests/common/etcd/etcd_caller.h"
#include "tests/common/etcd/fake_server.h"

namespace gannet {
namespace {

using testing::HasSubstr;
using enum EtcdTxnResult::Outcome;

constexpr char kAnswer[] = R"({"header":{"cluster_id":"7","revision":"2"}})";

FakeServer::Script Always(const FakeServer::Answer& answer) {
  return [answer](const std::string&) { return answer; };
}

TEST(EtcdStrangersTest, RefusesWhatIsNoUrl) {
  for (const char* url :
       {"", "10.0.0.1:2379", "http://", "ftp://host", "http://a b", "http://me@host"}) {
    const auto client = EtcdClient::Create({.endpoints = {url}});
    EXPECT_EQ(client.status().code(), absl::StatusCode::kInvalidArgument) << url;
  }
  EXPECT_FALSE(EtcdClient::Create({}).ok());
  const auto no_file = EtcdClient::Create({.endpoints = {"https://host"}, .ca_file = "/nowhere"});
  EXPECT_THAT(no_file.status().message(), HasSubstr("/nowhere"));
}

TEST(EtcdStrangersTest, ATransactionThatReachedNobodyHasFailed) {
  const std::string url = absl::StrCat("http://127.0.0.1:", test_support::FreePort());
  EtcdCaller caller(EtcdClient::Options{.endpoints = {url, url}});
  const EtcdTxnResult result = caller.Put("key", "value");
  EXPECT_EQ(result.outcome, kFailed) << result.status;
  EXPECT_TRUE(absl::IsUnavailable(result.status));
  EXPECT_THAT(result.status.message(), HasSubstr("Failed to connect"));
  EXPECT_THAT(result.status.message(), HasSubstr(url));
  EXPECT_TRUE(absl::IsUnavailable(caller.Range("key").status()));
}

TEST(EtcdStrangersTest, SaysWhatAnsweredInsteadOfEtcd) {
  const std::vector<std::pair<std::string, std::string>> answers = {
      {FakeServer::Http("<html>hello</html>"), "no answer of etcd: no JSON"},
      {FakeServer::Http("{}"), "no answer of etcd: no header"},
      {FakeServer::Http("404 page not found", "404 Not Found"), "no etcd 3.4 or later"},
      {FakeServer::Http("", "502 Bad Gateway"), "HTTP status 502"},
      {FakeServer::Http("", "302 Found\r\nLocation: http://127.0.0.1:1/"), "HTTP status 302"},
      {"SSH-2.0-OpenSSH_9.2\r\n", "HTTP/0.9"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{", "transfer closed"},
      {"", "Empty reply"},
  };
  for (const auto& [bytes, what] : answers) {
    FakeServer server(Always({.bytes = bytes}));
    EtcdCaller caller({server.Url()});
    const auto answer = caller.Range("key");
    EXPECT_THAT(answer.status().message(), HasSubstr(what));
    EXPECT_THAT(answer.status().message(), HasSubstr(server.Url()));
  }
}

TEST(EtcdStrangersTest, ATransactionThatWasSentIsUnknownUnlessItWasRefused) {
  for (const std::string& bytes :
       {std::string(), FakeServer::Http("<html>"), FakeServer::Http("", "502 Bad Gateway"),
        std::string("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{")}) {
    FakeServer server(Always({.bytes = bytes}));
    FakeServer other(Always({.bytes = FakeServer::Http(kAnswer)}));
    EtcdCaller caller({server.Url(), other.Url()});
    const EtcdTxnResult result = caller.Put("key", "value");
    EXPECT_EQ(result.outcome, kUnknown) << bytes << result.status;
    EXPECT_EQ(server.requests(), 1);
    EXPECT_EQ(other.requests(), 0);
  }
  FakeServer no_etcd(Always({.bytes = FakeServer::Http("", "404 Not Found")}));
  FakeServer other(Always({.bytes = FakeServer::Http(kAnswer)}));
  EtcdCaller caller({no_etcd.Url(), other.Url()});
  EXPECT_EQ(caller.Put("key", "value").outcome, kRefused);  // as kAnswer says
  EXPECT_EQ(other.requests(), 1);
}

// If a connection that was kept open ends without an answer, libcurl sends the request again.
TEST(EtcdStrangersTest, ATransactionIsSentOnce) {
  FakeServer server([](const std::string& request) -> FakeServer::Answer {
    const bool range = request.find("/v3/kv/range") != std::string::npos;
    return {.bytes = range ? FakeServer::Http(kAnswer) : "", .close = !range};
  });
  EtcdCaller caller({server.Url()});
  ASSERT_TRUE(caller.Range("key").ok());
  EXPECT_EQ(caller.Put("key", "value").outcome, kUnknown);
  EXPECT_EQ(server.requests(), 2);
}

TEST(EtcdStrangersTest, ALongAnswerIsCutOff) {
  // 100 MB of one line.
  FakeServer body(Always({.bytes = std::string(1 << 20, 'a'), .times = 100}));
  FakeServer endless([](const std::string&) -> FakeServer::Answer {
    return {.bytes = "HTTP/1.1 200 OK\r\n\r\n" + std::string(100 << 20, 'a')};
  });
  FakeServer headers([](const std::string&) -> FakeServer::Answer {
    std::string bytes = "HTTP/1.1 200 OK\r\n";
    for (int i = 0; i < 100'000; ++i) bytes += "X-Header: value\r\n";
    return {.bytes = bytes};
  });
  EtcdCaller caller(EtcdClient::Options{.endpoints = {endless.Url()}, .call_ms = 60'000});
  EXPECT_THAT(caller.Range("key").status().message(), HasSubstr("longer than 4194304 bytes"));
  EtcdCaller of_headers(EtcdClient::Options{.endpoints = {headers.Url()}, .call_ms = 60'000});
  EXPECT_THAT(of_headers.Range("key").status().message(), HasSubstr("longer than 65536 bytes"));
  EtcdCaller of_body(EtcdClient::Options{.endpoints = {body.Url()}, .call_ms = 60'000});
  EXPECT_FALSE(of_body.Range("key").ok());

  bool lost = false;
  caller.client().Watch("key", [&](EtcdNews news) { lost = news.kind == EtcdNews::Kind::kLost; });
  EXPECT_TRUE(caller.PollUntil([&] { return lost; }));
}

TEST(EtcdStrangersTest, ASlowEndpointIsGivenUpForAnother) {
  FakeServer silent(Always({.bytes = "HTTP/1.1 200 OK\r\nContent-Le", .close = false}));
  FakeServer other(Always({.bytes = FakeServer::Http(kAnswer)}));
  EtcdCaller caller(EtcdClient::Options{.endpoints = {silent.Url(), other.Url()}, .call_ms = 300});
  const auto answer = caller.Range("key");
  EXPECT_EQ(silent.requests(), 1);
  // On a machine that is very slow, the other one is given up, too.
  if (answer.ok()) {
    // And is not asked first any more.
    EXPECT_TRUE(caller.Range("key").ok() || silent.requests() > 1);
  } else {
    EXPECT_THAT(answer.status().message(), HasSubstr("no answer within 300 ms"));
  }
}

TEST(EtcdStrangersTest, AnotherClusterIsNotBelieved) {
  bool ours = true;
  FakeServer changing([&](const std::string&) -> FakeServer::Answer {
    const bool now = std::exchange(ours, false);
    return {.bytes = FakeServer::Http(now ? kAnswer
                                          : R"({"header":{"cluster_id":"8","revision":"2"}})")};
  });
  EtcdCaller caller({changing.Url()});
  EXPECT_TRUE(caller.Range("key").ok());
  EXPECT_THAT(caller.Range("key").status().message(), HasSubstr("another cluster"));
}

// A watch whose answers are garbage goes on trying, and tells once that it is lost.
TEST(EtcdStrangersTest, AWatchThatIsLostTellsItOnceAndGoesOn) {
  std::atomic<bool> mended{false};
  FakeServer server([&](const std::string& request) -> FakeServer::Answer {
    if (request.find("/v3/kv/range") != std::string::npos)
      return {.bytes = FakeServer::Http(kAnswer)};
    if (!mended) return {.bytes = FakeServer::Http("garbage\n")};
    const std::string line = absl::StrCat(R"({"result":)", kAnswer);
    const std::string event = R"(,"events":[{"kv":{"key":"a2V5","mod_revision":"3"}}]}})";
    const std::string answer = line.substr(0, line.size() - 1) + event + "\n";
    return {.bytes = "HTTP/1.1 200 OK\r\n\r\n" + answer, .close = false};
  });
  EtcdCaller caller(EtcdClient::Options{.endpoints = {server.Url()}, .retry_ms = 1});
  std::vector<EtcdNews::Kind> told;
  caller.client().Watch("key", [&](EtcdNews news) { told.push_back(news.kind); });
  ASSERT_TRUE(caller.PollUntil([&] { return server.requests() > 5; }));
  mended = true;
  ASSERT_TRUE(caller.PollUntil([&] { return told.size() >= 3; }));
  using enum EtcdNews::Kind;
  EXPECT_THAT(told, testing::ElementsAre(kListed, kLost, kChanged));
}

}  // namespace
}  // namespace gannet
