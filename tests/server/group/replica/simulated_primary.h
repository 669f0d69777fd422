#ifndef GANNET_TESTS_SERVER_GROUP_REPLICA_SIMULATED_PRIMARY_H_
#define GANNET_TESTS_SERVER_GROUP_REPLICA_SIMULATED_PRIMARY_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "server/group/replica/commit.h"
#include "server/group/replica/hand_over.h"
#include "server/group/replica/membership.h"
#include "server/group/replica/opening.h"
#include "server/group/replica/primary_lease.h"
#include "server/log/stream/ring_writer.h"
#include "tests/server/group/replica/simulated_world.h"

namespace gannet {

// What a member does as primary.
class SimulatedPrimary {
 public:
  using LinkPtr = std::shared_ptr<SimulatedLink>;

  SimulatedPrimary(SimulatedWorld* world, SimulatedMember* member, const GroupRegister& known,
                   RingTail tail, uint64_t clock_ms);

  // It has polled.
  void Turn();
  void HandOverToSomebody();
  // Whether it serves clients now.
  bool Serves() const;
  bool deposed() const { return membership_.deposed(); }
  // Clients may believe it until then, in real time.
  int64_t believed_until() const { return believed_until_; }
  bool LeaseIsValid() const;
  // Whether it may commit, as far as transactions go.
  bool MayCommit() const { return membership_.MayCommit(); }

  // Messages.
  void OnHello(const LinkPtr& link, bool joins);
  void OnReady(const LinkPtr& link);
  void OnAnswer(const LinkPtr& link, uint64_t sequence, uint64_t consumed);
  void OnWritten(const LinkPtr& link);
  void OnBroken(const LinkPtr& link);

 private:
  void AdvanceCommit();
  void Open();
  void TakeWrites();
  void Append(const std::string& key);
  void Ship();
  void Pump(const LinkPtr& link);
  void SendBeacons();
  void DropLinks();
  void Drop(const LinkPtr& link);
  bool HasLink(const LinkPtr& link) const;
  uint64_t ClockMs() const;
  std::vector<GroupMember> Backups() const;

  SimulatedWorld* const world_;
  SimulatedMember* const member_;
  Opening opening_;
  std::vector<uint64_t> ring_;
  RingWriter writer_;
  PrimaryLease lease_;
  Commit commit_;
  Membership membership_;
  HandOver hand_over_;
  const uint64_t clock_ms_;  // at the beginning
  const BootTime began_;
  uint64_t committed_;
  std::deque<std::string> uncommitted_;
  std::set<std::string> uncommitted_keys_;
  std::map<uint64_t, LinkPtr> links_;  // by backups' incarnations
  bool open_ = false;
  int64_t beacon_at_ = 0;
  int64_t believed_until_ = 0;
};

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_GROUP_REPLICA_SIMULATED_PRIMARY_H_
