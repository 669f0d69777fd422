#ifndef SOFTVERBS_TESTS_VERBS_CONTRACT_TWO_HOSTS_H_
#define SOFTVERBS_TESTS_VERBS_CONTRACT_TWO_HOSTS_H_

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include "softverbs/tests/verbs_contract/host.h"

// Two instances of softverbs in one process: the library, and a copy of it. Each has its own
// adapter, thread and sockets, in one of the two namespaces of two_hosts.py. So the suite's cases
// hold both ends, although the packets between them cross the network.
//
// The copy cannot be linked. So this program defines the functions of both libraries itself
// (two_hosts_verbs.cc, two_hosts_cm.cc), and calls the instance that the object belongs to. What
// the header defines inline goes there by the pointers in the object's context.
namespace verbs_contract {

// Returns the host that the calling thread is at.
Host CurrentHost();
// Returns the function `name` of a host's instance. Ends the program if it has none.
void* FindFunction(Host host, const char* name);

// Returns the host that an object belongs to.
Host HostOf(const ibv_context* context);
Host HostOf(const rdma_event_channel* channel);
Host HostOfDevice(const ibv_device* device);

template <class Function>
struct OfBothHosts {
  explicit OfBothHosts(const char* name)
      : of{reinterpret_cast<Function*>(FindFunction(Host::kClients, name)),
           reinterpret_cast<Function*>(FindFunction(Host::kServers, name))} {}
  template <class... Arguments>
  auto operator()(Host host, Arguments... arguments) const {
    const AtHost at(host);
    return of[static_cast<int>(host)](arguments...);
  }

  Function* const of[2];
};

// Calls `function` of the host's instance, in the host's namespace.
#define CALL_AT(host, function, ...)                                              \
  [&] {                                                                           \
    static const verbs_contract::OfBothHosts<decltype(function)> both(#function); \
    return both(host __VA_OPT__(, ) __VA_ARGS__);                                 \
  }()

}  // namespace verbs_contract

#endif  // SOFTVERBS_TESTS_VERBS_CONTRACT_TWO_HOSTS_H_
