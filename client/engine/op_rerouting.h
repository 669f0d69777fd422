#ifndef GANNET_CLIENT_ENGINE_OP_REROUTING_H_
#define GANNET_CLIENT_ENGINE_OP_REROUTING_H_

#include <algorithm>
#include <bitset>
#include <cstdint>

#include "client/engine/lock_ops.h"
#include "client/engine/op_fate.h"
#include "client/engine/op_table.h"
#include "client/engine/server_set.h"
#include "common/protocol/message.h"
#include "common/protocol/partition_map.h"

namespace gannet {

// What happens to operations when partitions of a cluster move (docs/partitions.md):
//
//   - What was READ of a partition that changed, and not delivered, is done again (rule 13).
//   - What was not sent goes to the server that has the key now. While nobody serves the key, it
//     waits at ServerSet::waiting(), and nothing is sent or READ for it.
//   - A request that was sent stays with its server until that answers (rule 11). A server that
//     does not serve the key (status 18) has not executed it, so it is sent again as a new request.
//   - Writes of one key keep their order: what is behind a request that was sent waits for it. A
//     server that refuses a write puts off those behind it, until it hears that this client was
//     told (rule 14).
//   - A lock that was about to be taken is not; who asked for it is told to try again. Unlocks go
//     to where the lock is.
//
// One owner thread.
class OpRerouting {
 public:
  using Changed = std::bitset<kPartitions>;
  struct KnownMap {
    uint64_t revision = 0;
    bool all_served = true;  // no partition is closed, and all groups can be reached
  };

  // All of these outlive it.
  OpRerouting(OpTable& ops, ServerSet& servers, LockOps& locks)
      : ops_(ops), servers_(servers), locks_(locks) {}

  // The servers have other routes now, of the map of this revision. These partitions are not what
  // they were.
  void OnRoutes(const Changed& changed, uint64_t revision);
  // A map was read, and it is the one that is known. What was refused is tried again.
  void TryAgain();
  // Returns whether an operation waits for a newer map, or somebody wants one.
  bool AnyWaits() const;

  const KnownMap& known() const { return known_; }
  // The map of this revision, or a later one, is wanted, although no operation waits for it.
  void Want(uint64_t revision) {
    wanted_ = std::max(wanted_, revision);
    ops_.LookAt(0);
  }

  // Returns whether the map of revision `begun`, by which something began that concerns all keys
  // of a server, is still the newest, although the server told revision `told` in the end, and
  // whether all partitions are served by it. Otherwise a newer map is wanted.
  bool HeldSince(uint64_t begun, uint64_t told);

  // The group refuses a request, as it does not serve the key's partition (status 18).
  void OnRefused(Op& op, const ReplyView& reply);
  // Gives an operation that begins, or begins anew, its server. REQUIRES: op.misplaced; nothing of
  // it is in flight.
  void Aim(Op& op);
  // Does with an operation what was decided.
  void Apply(Op& op, const OpVerdict& verdict);
  // The READs of an operation whose partition moved are done, or lost (Phase::kOutOfDate).
  void BeginAnew(Op& op);

 private:
  void Misplace(Op& op);
  void MoveQueued(EngineServer& server);
  void Queue(Op& op);

  OpTable& ops_;
  ServerSet& servers_;
  LockOps& locks_;
  KnownMap known_;
  uint64_t wanted_ = 0;  // the revision of a map
};

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_OP_REROUTING_H_
