#include "softverbs/cq/channel.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "softverbs/base/mutex.h"

namespace softverbs {
namespace {

// The channel for which this thread drives the engine now. The thread itself takes the events that
// are pushed meanwhile, so no other thread need be woken.
thread_local ChannelEvents* driving_for = nullptr;

}  // namespace

ChannelEvents::ChannelEvents(Context* context) : context_(context), fd_(eventfd(0, EFD_CLOEXEC)) {}

ChannelEvents::~ChannelEvents() {
  if (bell_ != 0) {
    context_->nic->engine().ForgetBell(bell_);
    context_->nic->bells().Remove(bell_);
    context_->nic->links().AnnounceBellGone(bell_);
  }
  if (fd_ >= 0) close(fd_);
}

void ChannelEvents::Push(Cq* due) {
  const LockGuard guard(mutex_);
  events_.push_back(due);
  if (driving_for != this) AddToken();
}

Cq* ChannelEvents::Pop() {
  bool rung_for_nothing = false;
  for (;;) {
    if (!Empty()) {
      TakeTokens(/*may_block=*/false);
    } else {
      if (rung_for_nothing || Blocking()) SleepHere();
      if (!TakeTokens(/*may_block=*/true)) return nullptr;
    }
    LookAtLinks();
    if (Cq* due = Take()) return due;
    rung_for_nothing = true;
  }
}

size_t ChannelEvents::Purge(const Cq* cq) {
  size_t removed;
  {
    const LockGuard guard(mutex_);
    removed = std::erase(events_, cq);
    if (removed == 0 || !events_.empty()) return removed;
    TakeTokens(/*may_block=*/false);
  }
  LookAtLinks();
  const LockGuard guard(mutex_);
  // LookAtLinks may have pushed events of other CQs, which this thread does not take.
  if (!events_.empty()) AddToken();
  return removed;
}

void ChannelEvents::OnArmed() {
  if (Blocking()) {
    context_->nic->engine().PrepareToSleep(0);
  } else {
    SleepHere();
  }
}

bool ChannelEvents::Empty() {
  const LockGuard guard(mutex_);
  return events_.empty();
}

Cq* ChannelEvents::Take() {
  const LockGuard guard(mutex_);
  if (events_.empty()) return nullptr;
  Cq* due = events_.front();
  events_.pop_front();
  // This thread took all tokens, perhaps also those of other events.
  if (!events_.empty()) AddToken();
  return due;
}

bool ChannelEvents::TakeTokens(bool may_block) {
  uint64_t tokens;
  if (may_block) return read(fd_, &tokens, sizeof(tokens)) == sizeof(tokens);
  iovec vec{&tokens, sizeof(tokens)};
  return preadv2(fd_, &vec, 1, -1, RWF_NOWAIT) == sizeof(tokens);
}

void ChannelEvents::AddToken() {
  const uint64_t one = 1;
  // Never blocks, because the counter never reaches 2^64 - 1.
  while (write(fd_, &one, sizeof(one)) < 0 && errno == EINTR) {
  }
}

bool ChannelEvents::Blocking() const {
  const int flags = fcntl(fd_, F_GETFL);
  return flags < 0 || (flags & O_NONBLOCK) == 0;
}

void ChannelEvents::SleepHere() {
  if (Inherited(&context_->verbs.context)) return;
  std::call_once(has_bell_, [this] { bell_ = context_->nic->bells().Add(fd_); });
  context_->nic->engine().PrepareToSleep(bell_);
}

void ChannelEvents::LookAtLinks() {
  if (bell_ == 0 || Inherited(&context_->verbs.context)) return;
  driving_for = this;
  context_->nic->engine().OnBell(bell_);
  driving_for = nullptr;
}

}  // namespace softverbs
