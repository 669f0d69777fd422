#ifndef GANNET_TESTS_COMMON_ETCD_FAKE_SERVER_H_
#define GANNET_TESTS_COMMON_ETCD_FAKE_SERVER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

namespace gannet {

// A server on 127.0.0.1 that is not etcd. It answers each request with bytes that a test chose.
class FakeServer {
 public:
  struct Answer {
    std::string bytes;   // the whole answer, its headers included
    bool close = true;   // closes the connection behind it; otherwise waits for the client
    uint64_t times = 1;  // sends the bytes so often
  };
  // Returns the answer to a request. Called by the server's thread.
  using Script = std::function<Answer(const std::string& request)>;

  explicit FakeServer(Script script);
  ~FakeServer();
  FakeServer(const FakeServer&) = delete;
  FakeServer& operator=(const FakeServer&) = delete;

  std::string Url() const;
  // How many whole requests came.
  int requests() const { return requests_.load(std::memory_order_relaxed); }

  // Returns an HTTP answer with this body.
  static std::string Http(const std::string& body, const std::string& status = "200 OK");

 private:
  struct Connection {
    int fd = -1;
    std::string received;
  };

  void Run();
  // Returns false if the connection has ended.
  bool Serve(Connection* connection);

  const Script script_;
  int listener_ = -1;
  int stop_[2] = {-1, -1};  // a pipe
  uint16_t port_ = 0;
  std::atomic<int> requests_{0};  // relaxed: tells nothing but itself
  std::thread thread_;
};

}  // namespace gannet

#endif  // GANNET_TESTS_COMMON_ETCD_FAKE_SERVER_H_
