#ifndef GANNET_TESTS_COMMON_ETCD_GATEWAY_H_
#define GANNET_TESTS_COMMON_ETCD_GATEWAY_H_

#include <poll.h>

#include <chrono>
#include <string>

#include "common/etcd/http_carrier.h"
#include "softverbs/tests/support/child_process.h"

namespace gannet {

// Does what EtcdClient cannot: deletes keys, compacts, sets passwords. Returns etcd's answer.
inline std::string PostToEtcd(const std::string& url, const std::string& body) {
  auto carrier = HttpCarrier::Create({});
  if (!carrier.ok()) return carrier.status().ToString();
  constexpr int kWaitMs = std::chrono::milliseconds(test_support::kStepTimeout).count();
  (*carrier)->Send({.id = 1, .url = url, .body = body, .answer_ms = kWaitMs});
  pollfd waiting = {.fd = (*carrier)->fd(), .events = POLLIN};
  poll(&waiting, 1, kWaitMs);
  for (const HttpEvent& event : (*carrier)->Take()) return event.error + event.text;
  return "no answer";
}

}  // namespace gannet

#endif  // GANNET_TESTS_COMMON_ETCD_GATEWAY_H_
