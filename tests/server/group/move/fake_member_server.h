#ifndef GANNET_TESTS_SERVER_GROUP_MOVE_FAKE_MEMBER_SERVER_H_
#define GANNET_TESTS_SERVER_GROUP_MOVE_FAKE_MEMBER_SERVER_H_

#include <cstdint>
#include <vector>

#include "server/group/members/member_server.h"

namespace gannet {

// The server of a primary whose partitions move, of which a test says what it needs.
class FakeMemberServer : public MemberServer {
 public:
  void WakeMember() override {}
  void Forget(uint64_t) override {}
  void Publish() override {}
  uint64_t published() const override { return 0; }
  uint64_t workers_at() const override { return 0; }
  uint64_t requests() const override { return 0; }
  bool CoresAreScarce() override { return false; }
  void Adopt(std::vector<SessionCopy>) override {}
  void BeginEpoch(uint64_t) override {}
  ServerTime Time() const override { return {}; }
  void FollowClock(ServerTime) override {}
  void StartClock(ServerTime) override {}
};

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_GROUP_MOVE_FAKE_MEMBER_SERVER_H_
