#ifndef GANNET_CLIENT_ENGINE_LOCK_OPS_H_
#define GANNET_CLIENT_ENGINE_LOCK_OPS_H_

#include "client/engine/lookup_gets.h"
#include "client/engine/op_fate.h"
#include "client/engine/op_table.h"
#include "common/layout/lock_word.h"
#include "common/protocol/message.h"

namespace gannet {

// Locks: one compare-and-swap to take and one to release, or by RPC where a NIC cannot do it. Sees
// to it that a lock is released that nobody else will release. One owner thread.
class LockOps {
 public:
  // These outlive it.
  LockOps(OpTable& ops, LookupGets& gets) : ops_(ops), gets_(gets) {}

  // These begin. REQUIRES: the session is ready.
  void StartLock(Op& op);  // Lock, and LockAndGet
  void StartUnlock(Op& op);
  void OnCompareAndSwapDone(Op& op);
  // The server answers a request about a lock.
  void OnReply(Op& op, const ReplyView& reply);
  // An extension's answer tells nothing of where the key's partition was before: the server may
  // have given it away and got it back, and another client may have had the lock meanwhile. So the
  // answer counts only under a lease for the client's map, as a compare-and-swap does. Returns
  // whether there is none now. Then the request is to be sent again.
  static bool MustAskAgain(const Op& op, const ReplyHeader& reply);
  // Releases the lock that an operation acquired after it ended. Nobody else will.
  void GiveBack(Op& op);
  // Ends an operation that takes a lock, whose answer came after the key's partition moved.
  void GiveUp(Op& op);
  // Ends an operation as was decided, and does what it owes. REQUIRES: verdict.fate is kEnds.
  void End(Op& op, const OpVerdict& verdict);

 private:
  void OnAnswer(Op& op, bool acquired, LockWord holder);
  void KeepReleasing(Op& op, Op::Phase was);

  OpTable& ops_;
  LookupGets& gets_;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_LOCK_OPS_H_
