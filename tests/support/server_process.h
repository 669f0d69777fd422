#ifndef GANNET_TESTS_SUPPORT_SERVER_PROCESS_H_
#define GANNET_TESTS_SUPPORT_SERVER_PROCESS_H_

#include <memory>
#include <string>
#include <vector>

#include "softverbs/tests/support/child_process.h"

namespace gannet {

// Where the servers of a test program run. This is for programs whose servers choose softverbs by
// themselves; the main() of test_device.h sets it to the device under test.
struct ServerPlace {
  std::string device = "soft";
  std::string listen = "127.0.0.1:0";  // with a port that the server chooses
  std::string running = {};            // a server that runs elsewhere, or empty
};
void SetServerPlace(const ServerPlace& place);

// A kvserver on a port that it chose itself, ready. If ServerPlace names a running server, this is
// only its name: that one is not killed, and its items from earlier tests stay.
class ServerProcess {
 public:
  // Returns when the server printed READY. If it does not, ends the test program with what the
  // server said. The server gets small memory and --busy_poll_us=0 (the machine may have few cores)
  // unless `flags` say otherwise.
  explicit ServerProcess(std::vector<std::string> flags = {});

  // "127.0.0.1:PORT" on softverbs.
  const std::string& endpoint() const { return endpoint_; }
  const std::string& ready_line() const { return ready_line_; }
  // REQUIRES: no running server was named, as for Kill and Restart.
  test_support::ChildProcess& process();
  // Kills it (kill -9), and waits until it is gone.
  void Kill();
  // Starts it again with the same flags and the same port.
  void Restart() {
    StartAgain();
    AwaitReady();
  }
  // The same in two steps: a member of a group may become ready only when others have started, too.
  void StartAgain();
  void AwaitReady();

 private:
  void Start(const std::string& listen);

  const std::vector<std::string> flags_;
  std::unique_ptr<test_support::ChildProcess> process_;
  std::string ready_line_;
  std::string endpoint_;
};

// The parts of "READY <addr>:<port> device=<name> kind=<kind>[ memory_file=<path>]".
struct ReadyLine {
  std::string endpoint;
  std::string device;
  std::string kind;
};
// Parses such a line. Returns an empty endpoint for any other line.
ReadyLine ParseReadyLine(const std::string& line);

// Returns the URL at which a kvserver with --http shows itself, by its log, which has that already:
// of the newest process, if several wrote there.
std::string ShownAt(const std::string& log);

}  // namespace gannet

#endif  // GANNET_TESTS_SUPPORT_SERVER_PROCESS_H_
