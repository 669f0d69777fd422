#ifndef GANNET_SERVER_GROUP_MEMBERS_MEMBER_INBOX_H_
#define GANNET_SERVER_GROUP_MEMBERS_MEMBER_INBOX_H_

#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "common/base/mutex.h"
#include "server/group/members/member_server.h"
#include "server/group/members/replica_arrival.h"

namespace gannet {

// What the listener's thread has for a member: servers that ask to connect as a replica, and those
// whose connection is gone.
//
// Thread safe.
class MemberInbox {
 public:
  // `server` outlives this.
  explicit MemberInbox(MemberServer* server) : server_(server) {}

  void Put(ReplicaArrival arrival) {
    {
      MutexLock lock(mutex_);
      mail_.arrivals.push_back(std::move(arrival));
      has_mail_.store(true, std::memory_order_relaxed);
    }
    server_->WakeMember();
  }
  void PutGone(uint64_t name) {
    {
      MutexLock lock(mutex_);
      mail_.gone.push_back(name);
      has_mail_.store(true, std::memory_order_relaxed);
    }
    server_->WakeMember();
  }

  struct Mail {
    std::vector<ReplicaArrival> arrivals;
    std::vector<uint64_t> gone;
  };
  // Whether Take has something. Relaxed: it is taken under the mutex, and whoever sets this wakes
  // the member's thread afterwards. So that looks once more.
  bool has_mail() const { return has_mail_.load(std::memory_order_relaxed); }
  Mail Take() {
    MutexLock lock(mutex_);
    has_mail_.store(false, std::memory_order_relaxed);
    return std::exchange(mail_, {});
  }

 private:
  MemberServer* const server_;
  std::atomic<bool> has_mail_{false};
  Mutex mutex_;
  Mail mail_ GANNET_GUARDED_BY(mutex_);
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MEMBERS_MEMBER_INBOX_H_
