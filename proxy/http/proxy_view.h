#ifndef GANNET_PROXY_HTTP_PROXY_VIEW_H_
#define GANNET_PROXY_HTTP_PROXY_VIEW_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proxy/jobs/counters.h"
#include "proxy/jobs/loop_status.h"

namespace gannet::proxy {

// What others may see of a running proxy. It only reads what the proxy's threads publish.
struct ProxyView {
  std::string version;
  const Service* service = nullptr;
  std::vector<const LoopStatus*> loops;

  // A thread that has not gone around for this long hangs. It goes around at least once a second,
  // but may wait for a core for some seconds on a busy machine.
  static constexpr int64_t kHangsMs = 10'000;

  // Returns the metrics in the text format of Prometheus.
  std::string Metrics() const;
  // Returns which thread hangs, and since when. Empty: none hangs.
  std::string WhatHangs(int64_t now_ms) const;
  // Returns why commands would fail: a thread reaches no server. Empty: each thread reaches at
  // least one.
  std::string WhyNotReady() const;
};

}  // namespace gannet::proxy

#endif  // GANNET_PROXY_HTTP_PROXY_VIEW_H_
