#ifndef GANNET_CLIENT_ENGINE_WAKE_FD_H_
#define GANNET_CLIENT_ENGINE_WAKE_FD_H_

#include <unistd.h>

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "client/engine/engine.h"

namespace gannet {

// A descriptor to sleep on until an Engine has to be polled. It becomes readable when a completion
// came, a connection changed, or something is due: a deadline, a heartbeat, an attempt to connect.
// It belongs to one Engine.
//
//   if (wake.Arm(engine, now)) Poll, and try again;
//   else sleep until wake.fd() is readable, in poll, epoll or Sleep; then Poll.
//
//        fd(): epoll ----> epoll of the sessions' descriptors, made anew when these change
//                 \-----> timerfd
//
// The sessions' descriptors come and go with their connections. A descriptor that was closed cannot
// be removed from an epoll, and stays in it as long as a forked child has it. So the sessions'
// descriptors have an epoll of their own, which is replaced as a whole.
//
// 1. No wake-up is lost: Arm arms the completion queues, polls once more, and only then looks for
//    changed descriptors and for what is due.
// 2. fd() may be readable in vain, for something that an earlier Poll saw. Arm clears that.
// 3. It costs nothing as long as nobody calls Arm.
//
// One owner thread. Another thread may sleep on fd() meanwhile.
class WakeFd {
 public:
  // ResourceExhausted: there are no descriptors left.
  static absl::StatusOr<std::unique_ptr<WakeFd>> Create();
  ~WakeFd();
  WakeFd(const WakeFd&) = delete;
  WakeFd& operator=(const WakeFd&) = delete;

  int fd() const { return outer_; }

  // Prepares to sleep, and polls the engine once more; NextFinished tells what that Poll finished.
  // Returns true if there is something to do: do not sleep. Otherwise fd() becomes readable when
  // there is.
  bool Arm(Engine& engine, int64_t now_ns);
  // When fd() becomes readable even if nothing comes, on the engine's clock; INT64_MAX: never.
  // REQUIRES: Arm returned false.
  int64_t due_ns() const { return due_ns_; }
  // Returns whether fd() still becomes readable in time, though the engine was polled since Arm.
  bool Covers(const Engine& engine, int64_t now_ns) const;
  // Makes fd() readable, until the next Arm.
  void Kick();

  // Waits until `fd` is readable, but at most for `ns`.
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
  uint64_t fds_version_ = 0;  // of the descriptors in inner_
  int64_t due_ns_ = INT64_MAX;
  int64_t timer_ns_ = INT64_MAX;  // when the timer rings; INT64_MAX: it is not set
};

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_WAKE_FD_H_
