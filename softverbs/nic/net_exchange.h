#ifndef SOFTVERBS_NIC_NET_EXCHANGE_H_
#define SOFTVERBS_NIC_NET_EXCHANGE_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <functional>

#include "softverbs/base/unique_fd.h"
#include "softverbs/nic/net_wire.h"
#include "softverbs/nic/strangers.h"

namespace softverbs {

// How a connection between two hosts begins, see net_wire.h. Both functions return at once. What
// they call runs on the loop thread.

struct DialResult {
  // 0, or why there is no connection. ECONNREFUSED: nobody is there. EAGAIN: later. EACCES: another
  // key. EPROTO: no softverbs of this version. ETIMEDOUT: no answer, for example because the
  // process that accepted is stopped. ECONNRESET: the peer gave up. Otherwise what connect(2) says.
  int error = 0;
  UniqueFd socket;
  Welcome welcome;
};

// Connects from this host's own GID to the host with the other one. Fills in the NetOpening's
// nonce. `dials` says how many dials before this one got no answer: on busy hosts an answer takes
// long, so each dial waits longer. REQUIRES: SOFTVERBS_NET is set.
void DialHost(const ibv_gid& own, const ibv_gid& gid, const NetOpening& opening, int dials,
              std::function<void(DialResult)> done);

// Who dials: the addresses that the connection comes to and from, and what the NetOpening says.
struct NetCaller {
  ibv_gid own;
  ibv_gid gid;
  NetOpening opening;
};

// What to do with a caller that proved that it has the key. Returns the Welcome. If its status is
// kOk, the connection is then given to `done`.
using Decide = std::function<Welcome(const NetCaller& caller)>;
// Answers a connection whose NetOpening has not been read yet, and closes it if it comes to
// nothing, or takes longer than kExchangeNs. Until the key is proven it waits among `strangers`,
// which outlives it. Loop thread.
void AnswerCaller(Strangers& strangers, UniqueFd socket, Decide decide,
                  std::function<void(UniqueFd socket, const NetCaller& caller)> done);

// How long each side waits for what comes next. The other side is there: on a host where hundreds
// of threads wait for a core its answer takes seconds.
inline constexpr int64_t kExchangeNs = 16'000'000'000;

// Refuses a connection with this status, and closes it. Best effort.
void RefuseCaller(int socket, NetStatus status);

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_NET_EXCHANGE_H_
