#ifndef GANNET_TESTS_TOOLS_KVLOAD_TCP_SERVER_H_
#define GANNET_TESTS_TOOLS_KVLOAD_TCP_SERVER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "softverbs/tests/support/child_process.h"

namespace gannet {

// A third-party server on a TCP port on loopback.
class TcpServer {
 public:
  // `command` returns the words that start it on a port. Returns nullptr, with a failed
  // expectation, if it does not accept connections in time.
  static std::unique_ptr<TcpServer> Start(
      const std::function<std::vector<std::string>(const std::string& port)>& command);
  // Asks it to stop, and waits until it has.
  ~TcpServer();

  const std::string& address() const { return address_; }

 private:
  TcpServer(const std::vector<std::string>& argv, uint16_t port);
  bool AwaitAccepting(uint16_t port);

  test_support::ChildProcess process_;
  const std::string address_;
};

}  // namespace gannet

#endif  // GANNET_TESTS_TOOLS_KVLOAD_TCP_SERVER_H_
