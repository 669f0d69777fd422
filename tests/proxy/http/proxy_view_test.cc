#include "proxy/http/proxy_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "proxy/jobs/memory_limit.h"

namespace gannet::proxy {
namespace {

using testing::HasSubstr;

class ProxyViewTest : public testing::Test {
 protected:
  void SetUp() override {
    service_.threads.resize(2);
    service_.servers = {"a:1", "b:1"};
    service_.memory = &memory_;
    Connect(first_, true, true);
    Connect(second_, true, true);
  }
  static void Connect(LoopStatus& loop, bool a, bool b) {
    loop.SetServers({{.endpoint = "a:1", .connected = a, .why_not = a ? "" : "nobody listens"},
                     {.endpoint = "b:1", .connected = b, .why_not = b ? "" : "no answer"}});
  }

  MemoryLimit memory_{1000};
  Service service_;
  LoopStatus first_;
  LoopStatus second_;
  ProxyView view_{.version = "1.2.3", .service = &service_, .loops = {&first_, &second_}};
};

TEST_F(ProxyViewTest, AThreadThatDoesNotGoAroundHangs) {
  first_.round_ms.Set(100'000);
  second_.round_ms.Set(90'000);
  EXPECT_EQ(view_.WhatHangs(100'000), "") << "it may wait for a core";
  EXPECT_EQ(view_.WhatHangs(102'000), "thread 2 of 2 has hung for 12 s");
  second_.round_ms.Set(102'000);
  EXPECT_EQ(view_.WhatHangs(102'000), "");
}

TEST_F(ProxyViewTest, AThreadThatReachesNoServerIsNotReady) {
  EXPECT_EQ(view_.WhyNotReady(), "");
  Connect(second_, false, true);
  EXPECT_EQ(view_.WhyNotReady(), "") << "keys of the other server are served";
  Connect(second_, false, false);
  EXPECT_EQ(view_.WhyNotReady(), "no server can be reached: a:1: nobody listens; b:1: no answer");
}

TEST_F(ProxyViewTest, MetricsAreSumsOfTheThreads) {
  service_.threads[0].gets.Add(5);
  service_.threads[0].hits.Add(3);
  service_.threads[1].gets.Add(1);
  service_.threads[1].store_late.Add();
  first_.queued.Set(7);
  second_.queued.Set(1);
  memory_.Take(600);
  Connect(second_, true, false);
  const std::string text = view_.Metrics();
  EXPECT_THAT(text, HasSubstr("gannet_proxy_info{version=\"1.2.3\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("gannet_proxy_gets_total{result=\"miss\"} 3\n"));
  EXPECT_THAT(text, HasSubstr("gannet_proxy_store_errors_total{reason=\"late\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("gannet_proxy_operations{waits_for=\"place\"} 8\n"));
  EXPECT_THAT(text, HasSubstr("gannet_proxy_buffer_bytes 600\n"));
  EXPECT_THAT(text, HasSubstr("gannet_proxy_server_up{server=\"a:1\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("gannet_proxy_server_up{server=\"b:1\"} 0\n"));
}

}  // namespace
}  // namespace gannet::proxy
