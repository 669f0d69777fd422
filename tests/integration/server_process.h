#ifndef GANNET_TESTS_INTEGRATION_SERVER_PROCESS_H_
#define GANNET_TESTS_INTEGRATION_SERVER_PROCESS_H_

#include <memory>
#include <string>
#include <vector>

#include "tests/integration/child_process.h"

namespace gannet {

// A kvserver on the device under test (see test_device.h), on a port that it chose itself, ready.
// Or, with --server=HOST:PORT, only the name of one that runs elsewhere: that one is not killed,
// and what it holds from earlier tests stays.
class ServerProcess {
 public:
  // Returns when it said READY; ends the test program, with what the server said, when it does not.
  // Small memory and --busy_poll_us=0 (the machine may have few cores) unless `flags` say
  // otherwise.
  explicit ServerProcess(std::vector<std::string> flags = {});

  // "127.0.0.1:PORT" on softverbs.
  const std::string& endpoint() const { return endpoint_; }
  const std::string& ready_line() const { return ready_line_; }
  // REQUIRES: no --server, as for Kill and Restart.
  ChildProcess& process();
  // kill -9, and waits until it is gone.
  void Kill();
  // The same flags and the same port.
  void Restart();

 private:
  void Start(const std::string& listen);

  const std::vector<std::string> flags_;
  std::unique_ptr<ChildProcess> process_;
  std::string ready_line_;
  std::string endpoint_;
};

// The words of "READY <addr>:<port> device=<name> kind=<kind>".
struct ReadyLine {
  std::string endpoint;
  std::string device;
  std::string kind;
};
// An empty endpoint: not such a line.
ReadyLine ParseReadyLine(const std::string& line);

}  // namespace gannet

#endif  // GANNET_TESTS_INTEGRATION_SERVER_PROCESS_H_
