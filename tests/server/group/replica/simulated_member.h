#ifndef GANNET_TESTS_SERVER_GROUP_REPLICA_SIMULATED_MEMBER_H_
#define GANNET_TESTS_SERVER_GROUP_REPLICA_SIMULATED_MEMBER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "server/group/replica/backup_log.h"
#include "server/group/replica/takeover.h"
#include "tests/server/group/replica/simulated_primary.h"
#include "tests/server/group/replica/simulated_world.h"

namespace gannet {

// One run of a process: it joins, is a backup, then primary, and ends.
class SimulatedMember {
 public:
  using LinkPtr = std::shared_ptr<SimulatedLink>;

  SimulatedMember(SimulatedWorld* world, size_t node);

  // It is primary from the beginning.
  void Found(const GroupRegister& known);
  void Turn();
  // It ends. Another process of its node begins after a while.
  void End();
  void StopUntil(int64_t time) { stopped_until_ = time; }
  // It is told to stop: it ends once others need nothing of it.
  void AskToStop() { leaving_ = true; }
  bool leaving() const { return leaving_; }

  // Of the link's other end, after a while; not if the network is away. A reliable message comes
  // late in that case.
  void Tell(SimulatedMember* to, std::function<void()> what);
  void TellReliably(SimulatedMember* to, std::function<void()> what);

  // Messages.
  void OnWelcome(const LinkPtr& link, const RingReader::Begin& begin, uint64_t tail_end,
                 uint64_t clock_ms);
  void OnBeacon(const LinkPtr& link, uint64_t sequence, uint64_t committed, uint64_t clock_ms,
                bool last);

  const GroupMember& self() const { return self_; }
  size_t node() const { return node_; }
  bool alive() const { return alive_; }
  SimulatedPrimary* primary() { return primary_.get(); }
  SimulatedConfig* store() { return &store_; }
  // CLOCK_BOOTTIME here.
  BootTime Clock() const;
  // A backup in sync that follows nobody.
  bool HasFenced() const { return takeover_.has_value() && link_ == nullptr; }
  void Deliver(std::function<void()> what) { inbox_.push_back(std::move(what)); }

 private:
  void JoinTurn();
  void BackupTurn();
  void Fence();
  // It is not in sync any more. One that is told to stop keeps its copy until a primary lives.
  void Out();
  void Connect(const GroupMember& primary, bool joins);
  void Lead();
  std::function<void(const RingRecord&, uint64_t, uint64_t)> Apply();

  SimulatedWorld* const world_;
  const size_t node_;
  const GroupMember self_;
  SimulatedConfig store_;
  bool alive_ = true;
  int64_t stopped_until_ = 0;
  bool leaving_ = false;
  bool counts_next_ = false;  // a primary that has polled, and was stopped before it counted
  std::vector<std::function<void()>> inbox_;

  // A joiner or backup.
  bool reading_ = false;
  bool followed_since_read_ = false;
  LinkPtr link_;
  uint64_t link_epoch_ = 0;
  uint64_t begins_ = 0;  // the joiner's stream
  BootTime heard_;
  int64_t walked_at_ = 0;
  bool published_ = false;  // what is before the stream
  bool ready_ = false;
  int64_t fenced_at_ = 0;
  std::optional<BackupLog> log_;
  ExpiryClock clock_;
  std::optional<Takeover> takeover_;

  std::unique_ptr<SimulatedPrimary> primary_;
};

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_GROUP_REPLICA_SIMULATED_MEMBER_H_
