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

// The events of a completion channel, the CQs that became due, behind a descriptor that the
// application may poll. The descriptor is also a bell: while the application waits on it, peers
// write into it instead of waking the loop thread, and whoever was woken drives the engine itself.
//
// 1. The descriptor is readable while an event is queued, and when a peer rang. A peer rings only
//    while a thread waits in Pop, or if the application made the descriptor non-blocking; Pop then
//    says EAGAIN when there was nothing for it. So one that polls the descriptor and then calls a
//    blocking Pop is not left hanging.
// 2. Whoever takes a ring out of the descriptor looks at all links afterwards. Otherwise what the
//    peer rang for would stay there, since it rings only once for each sleep.
// 3. Pop blocks, or fails with EAGAIN when the application made fd() non-blocking, or with EINTR
//    when a signal handler without SA_RESTART ran: what read(2) on a kernel channel does.
//
// Thread safe. The descriptor is the application's to see, so a forked child keeps it.
class ChannelEvents {
 public:
  explicit ChannelEvents(Context* context);
  ~ChannelEvents();
  ChannelEvents(const ChannelEvents&) = delete;
  ChannelEvents& operator=(const ChannelEvents&) = delete;

  // -1 when the process ran out of descriptors.
  int fd() const { return fd_; }

  void Push(Cq* due);
  // The oldest event, or null and errno (EAGAIN, EINTR).
  Cq* Pop();
  // Removes and counts the queued events of a CQ.
  size_t Purge(const Cq* cq);
  // A CQ of this channel was armed: the application is about to wait.
  void OnArmed();

 private:
  bool Empty();
  Cq* Take();
  // Tokens are writes that nobody read yet. False: there were none.
  bool TakeTokens(bool may_block);
  void AddToken();
  bool Blocking() const;
  // Has peers ring this descriptor.
  void SleepHere();
  // After tokens were taken.
  void LookAtLinks();

  Context* const context_;
  const int fd_;
  std::once_flag has_bell_;
  uint32_t bell_ = 0;  // its number, since the first use
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
