#ifndef GANNET_TESTS_INTEGRATION_GROUP_OF_PROCESSES_H_
#define GANNET_TESTS_INTEGRATION_GROUP_OF_PROCESSES_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/common/etcd/etcd_caller.h"
#include "tests/common/etcd/etcd_processes.h"
#include "tests/support/server_process.h"

namespace gannet {

// Returns an address with a port that was free for a server just now. A member that executes itself
// again does so with the same flags, and clients look for it where it was.
std::string FreeEndpoint();

// One etcd and three kvservers that are one group. All go with it. One thread uses it.
class GroupOfProcesses {
 public:
  static constexpr int kMembers = 3;

  // What the register in etcd says.
  struct Register {
    uint64_t epoch = 0;
    int primary = -1;  // a member's index, or -1: none yet
    std::vector<int> in_sync;
  };

  // Starts all of it. Returns before the members are in sync. `flag` returns one more flag for a
  // member, and `more` are for all of them. `policy` is the group's; empty: it has none.
  explicit GroupOfProcesses(int lease_ms, const std::function<std::string(int)>& flag = {},
                            const std::vector<std::string>& more = {},
                            const std::string& policy = "");

  // "cluster:HOST:PORT,...", with all members.
  std::string Endpoint() const;
  Register Read();
  // Waits until all members are in sync in an epoch of at least this one. Fails the test, and
  // returns what the register says then, if that takes so long that something hangs.
  Register AwaitAllInSync(uint64_t epoch_min = 1) { return AwaitInSync(kMembers, epoch_min); }
  // The same for at least so many members.
  Register AwaitInSync(size_t members, uint64_t epoch_min);

  // Waits until so many members are in sync, and no others. Otherwise as above.
  Register AwaitExactly(size_t members);

  // Waits until a member's process that was started again has told etcd of itself.
  void AwaitAnnouncedAgain(int i);

  std::string EtcdUrl() const { return etcd_.Url(0); }
  ServerProcess& member(int i) { return *members_[i]; }
  test_support::ChildProcess& etcd() { return etcd_.process(0); }
  // What a member's process has logged since it was started.
  std::string Log(int i) { return members_[i]->process().Stderr(); }

 private:
  EtcdProcesses etcd_{1};
  EtcdCaller caller_;
  std::vector<std::unique_ptr<ServerProcess>> members_;
};

}  // namespace gannet

#endif  // GANNET_TESTS_INTEGRATION_GROUP_OF_PROCESSES_H_
