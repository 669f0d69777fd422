#ifndef GANNET_COMMON_PROGRAM_SUPERVISOR_H_
#define GANNET_COMMON_PROGRAM_SUPERVISOR_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace gannet {

// Tells the supervisor of this process how it is: the messages of sd_notify(3), as systemd's units
// of Type=notify and WatchdogSec= expect them. Each is one datagram to the UNIX socket that
// NOTIFY_SOCKET names. Without that variable there is no socket, and every call returns at once.
//
// The protocol is documented and stable, and its man page recommends to speak it directly. So the
// server does not link libsystemd, which brings five compression and crypto libraries.
//
// A message that cannot be sent is dropped: the supervisor then acts as if the server had hung.
//
// Thread safety: all methods may be called from any thread.
class Supervisor {
 public:
  // Reads NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID from the environment.
  static Supervisor FromEnvironment();

  Supervisor() = default;  // nobody supervises
  ~Supervisor();
  Supervisor(Supervisor&& other) noexcept;
  Supervisor& operator=(Supervisor&&) = delete;

  bool supervises() const { return fd_ >= 0; }
  // The server accepts clients. `status` is one line for `systemctl status`.
  void Ready(std::string_view status) const;
  // The program begins or ends, and needs more time for it: the supervisor's patience begins anew,
  // with `ns` at least. `status` as above. To be called again before that is over.
  void NeedsTime(std::string_view status, int64_t ns) const;
  // The server has begun to stop.
  void Stopping() const;
  // The server is alive. To be called every beat_ns() at least.
  void Alive() const;

  // Half of the time after which the supervisor takes the server for hung. 0: nobody watches.
  int64_t beat_ns() const { return beat_ns_; }

 private:
  void Send(std::string_view message) const;

  std::string address_;  // of the socket, without its terminating NUL
  int fd_ = -1;
  int64_t beat_ns_ = 0;
};

}  // namespace gannet

#endif  // GANNET_COMMON_PROGRAM_SUPERVISOR_H_
