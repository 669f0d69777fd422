#ifndef SOFTVERBS_TESTS_VERBS_CONTRACT_HOST_H_
#define SOFTVERBS_TESTS_VERBS_CONTRACT_HOST_H_

#include <string>

namespace verbs_contract {

// Where an end of a connection lives. In verbs_contract_test both are this process on this host
// (one_host.cc). In verbs_contract_two_hosts_test each has an instance of softverbs of its own, in
// a network namespace of its own (two_hosts.h).
enum class Host : int { kClients, kServers };

// Lets the calling thread make the objects of an end of this host as long as it lives. Functions on
// objects that exist need none.
class AtHost {
 public:
  explicit AtHost(Host host);
  ~AtHost();
  AtHost(const AtHost&) = delete;
  AtHost& operator=(const AtHost&) = delete;

 private:
  [[maybe_unused]] const Host before_;  // with one host there is nothing to go back to
};

// Makes the hosts. Call it before all else. Returns the address of the server's host, or an empty
// text if it is this one.
std::string MakeHosts();
// Returns whether there are two.
bool TwoHosts();

}  // namespace verbs_contract

#endif  // SOFTVERBS_TESTS_VERBS_CONTRACT_HOST_H_
