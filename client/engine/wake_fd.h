#ifndef GANNET_CLIENT_ENGINE_WAKE_FD_H_
#define GANNET_CLIENT_ENGINE_WAKE_FD_H_

#include <unistd.h>

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "client/engine/engine.h"

namespace gannet {

// One descriptor for whoever sleeps until an Engine, always the same one, has to be polled. It
// becomes readable when a completion came, a connection changed, or something is due (a deadline, a
// heartbeat, an attempt to connect).
//
//   if (wake.Arm(engine, now)) Poll, and try again;
//   else sleep until wake.fd() is readable, in poll, epoll or Sleep; then Poll.
//
//        fd(): epoll ----> epoll of the sessions' descriptors, made anew when these change
//                 \-----> timerfd
//
// The sessions' descriptors come and go with their connections. A descriptor that was closed cannot
// be taken out of an epoll any more, and stays in it as long as a forked child has it. That is why
// they have an epoll of their own, which is replaced as a whole.
//
// 1. No wake-up is lost: Arm arms the completion queues before it polls once more, and looks for
//    changed descriptors and for what is due after that Poll.
// 2. It may be readable in vain, for what an earlier Poll saw. Arm clears that.
// 3. Where nobody calls Arm, it costs nothing.
//
// One owner thread, but for fd(), on which another one may sleep meanwhile.
class WakeFd {
 public:
  // ResourceExhausted: there are no descriptors left.
  static absl::StatusOr<std::unique_ptr<WakeFd>> Create();
  ~WakeFd();
  WakeFd(const WakeFd&) = delete;
  WakeFd& operator=(const WakeFd&) = delete;

  int fd() const { return outer_; }

  // Prepares to sleep, and polls the engine once more. True: there is something to do, do not
  // sleep; what that Poll finished is for NextFinished. False: fd() becomes readable when there is.
  bool Arm(Engine& engine, int64_t now_ns);
  // Until when fd() is not readable unless something comes. On the engine's clock, INT64_MAX: for
  // ever. REQUIRES: Arm returned false.
  int64_t due_ns() const { return due_ns_; }
  // After a Poll since then: fd() still becomes readable in time for whatever there is to do.
  bool Covers(const Engine& engine, int64_t now_ns) const;
  // Makes fd() readable, until the next Arm.
  void Kick();

  // Waits until fd() is readable, at most so long.
  static void Sleep(int fd, int64_t ns);

 private:
  WakeFd(int outer, int timer) : outer_(outer), timer_(timer) {}

  void TakeEvents(Engine& engine);
  void Watch(const Engine& engine);
  void SetDue(int64_t due_ns, int64_t now_ns);
  void SetTimer(int64_t ns);

  const int outer_;
  const int timer_;
  int inner_ = -1;
  uint64_t fds_version_ = 0;  // of what inner_ has
  int64_t due_ns_ = INT64_MAX;
  int64_t timer_ns_ = INT64_MAX;  // the timer is set to this, or it is not set
};

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_WAKE_FD_H_
