#ifndef GANNET_PROXY_NET_OUTPUT_H_
#define GANNET_PROXY_NET_OUTPUT_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>

namespace gannet::proxy {

// Replies that wait to be sent. Short ones are copied into pieces, and long ones are pieces of
// their own. So nothing long is copied, and what was sent is freed at once.
class Output {
 public:
  // Takes the reply. Another text may be left in its place.
  void Append(std::string* reply);
  // Sends what the socket takes. Returns false if the application is gone.
  bool Send(int fd);

  bool empty() const { return bytes_ == 0; }
  size_t bytes() const { return bytes_; }
  uint64_t sent() const { return sent_; }  // in all

 private:
  std::deque<std::string> pieces_;
  size_t at_ = 0;     // of the first piece that is not sent
  size_t bytes_ = 0;  // not sent
  uint64_t sent_ = 0;
};

}  // namespace gannet::proxy

#endif  // GANNET_PROXY_NET_OUTPUT_H_
