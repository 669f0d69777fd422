#ifndef SOFTVERBS_CQ_CHANNEL_H_
#define SOFTVERBS_CQ_CHANNEL_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <deque>
#include <mutex>

#include "softverbs/base/mutex.h"
#include "softverbs/nic/context.h"

namespace softverbs {

struct Cq;

// The event queue of a completion channel, behind a descriptor that the application may poll. An
// event is a CQ that became due. The descriptor is also a bell: while the application waits for it,
// peers write into it instead of waking the loop thread. The thread that wakes up then drives the
// engine itself.
//
// 1. The descriptor is readable while an event is queued, and after a peer rang. A ring need not
//    bring an event. So a peer rings only while a thread waits in Pop, or if the application made
//    the descriptor non-blocking: then Pop returns EAGAIN if there is no event. An application that
//    polls the descriptor and then calls a blocking Pop is thus never left hanging.
// 2. A thread that takes a ring out of the descriptor looks at all links afterwards. Otherwise the
//    peer's packets would stay there, because a peer rings only once for each sleep.
// 3. Pop behaves like read(2) on a kernel channel. It blocks, fails with EAGAIN if the application
//    made fd() non-blocking, or fails with EINTR if a signal handler without SA_RESTART ran.
//
// Thread safe. The application knows the descriptor, so a forked child keeps it.
class ChannelEvents {
 public:
  explicit ChannelEvents(Context* context);
  ~ChannelEvents();
  ChannelEvents(const ChannelEvents&) = delete;
  ChannelEvents& operator=(const ChannelEvents&) = delete;

  // Returns -1 if there was no descriptor left.
  int fd() const { return fd_; }

  void Push(Cq* due);
  // Removes and returns the oldest event. Returns null and sets errno (EAGAIN, EINTR) if it fails.
  Cq* Pop();
  // Removes the queued events of a CQ, and returns their number.
  size_t Purge(const Cq* cq);
  // Puts the engine to sleep. Called when a CQ of this channel was armed, because the application
  // is then about to wait.
  void OnArmed();

 private:
  bool Empty();
  Cq* Take();
  // Takes all tokens: the writes into the descriptor that no thread has read yet. Returns false if
  // there were none.
  bool TakeTokens(bool may_block);
  void AddToken();
  bool Blocking() const;
  // Puts the engine to sleep, and makes peers ring this descriptor.
  void SleepHere();
  // Executes what peers rang for. Called after tokens were taken.
  void LookAtLinks();

  Context* const context_;
  const int fd_;
  std::once_flag has_bell_;
  uint32_t bell_ = 0;  // the descriptor's number as a bell; 0 before its first use
  Mutex mutex_;
  std::deque<Cq*> events_ SV_GUARDED_BY(mutex_);
};

// A completion channel.
struct Channel {
  explicit Channel(ibv_context* context) : events(Context::From(context)) {
    ibv.context = context;
    ibv.fd = events.fd();
  }

  ibv_comp_channel ibv{};  // first
  ChannelEvents events;

  static Channel* From(ibv_comp_channel* channel) { return reinterpret_cast<Channel*>(channel); }
};

}  // namespace softverbs

#endif  // SOFTVERBS_CQ_CHANNEL_H_
