#ifndef GANNET_TESTS_COMMON_ETCD_ETCD_PROCESSES_H_
#define GANNET_TESTS_COMMON_ETCD_ETCD_PROCESSES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "softverbs/tests/support/child_process.h"

namespace gannet {

// A cluster of etcd processes of a test, with an address of its own, ports that nobody else uses,
// and its own data. The processes and the data go with it.
class EtcdProcesses {
 public:
  // Returns when all serve clients. Ends the test program if they do not. `flags` are for each.
  explicit EtcdProcesses(size_t count, std::vector<std::string> flags = {});
  ~EtcdProcesses();
  EtcdProcesses(const EtcdProcesses&) = delete;
  EtcdProcesses& operator=(const EtcdProcesses&) = delete;

  // The address of all processes of this test program.
  static std::string Address();
  // "http://127.1.2.3:PORT", or https.
  std::string Url(size_t member, const std::string& scheme = "http") const;
  std::vector<std::string> Urls() const;
  // Where the other members connect.
  std::string PeerUrl(size_t member) const;
  std::string DataFolder(size_t member) const;

  test_support::ChildProcess& process(size_t member) { return *members_[member].process; }
  // Kills it (kill -9), and waits until it is gone.
  void Kill(size_t member);
  // Starts it again after Kill. Returns when it serves clients.
  void Restart(size_t member);

 private:
  struct Member {
    uint16_t client_port = 0;
    uint16_t peer_port = 0;
    std::unique_ptr<test_support::ChildProcess> process;
  };

  bool StartAll(size_t count);
  void Start(size_t member);
  bool AwaitReady(size_t member) const;

  const std::vector<std::string> flags_;
  std::string folder_;
  std::vector<Member> members_;
};

}  // namespace gannet

#endif  // GANNET_TESTS_COMMON_ETCD_ETCD_PROCESSES_H_
