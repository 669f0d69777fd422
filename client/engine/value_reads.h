#ifndef GANNET_CLIENT_ENGINE_VALUE_READS_H_
#define GANNET_CLIENT_ENGINE_VALUE_READS_H_

#include "client/engine/op_table.h"
#include "client/session/fixed_ring.h"
#include "client/session/memory_domains.h"

namespace gannet {

// The READs of large items' values (common/layout/item.h), into memory of the caller's own or into
// a long buffer of this client. Behind them the commit word is READ again. And the queue of all
// operations that wait for a long buffer, or for room for such READs. One owner thread.
class ValueReads {
 public:
  // `ops` outlives it.
  explicit ValueReads(OpTable& ops) : ops_(ops), starved_(ops.size()) {}

  // Begins to READ the value that op.lookup found. It goes on in OnRead.
  void Read(Op& op);
  // Begins to READ `bytes` of the value that op.lookup knows, with one READ into `local`. REQUIRES:
  // the session is ready.
  void ReadKnown(Op& op, const MemoryRange& range, uint64_t at, uint32_t bytes);
  // A READ of the value is done. When all are, the commit word is READ (Phase::kConfirming).
  void OnRead(Op& op);
  // The READ of ReadKnown is done. The commit word is READ (Phase::kConfirmingKnown).
  void OnKnownRead(Op& op);
  // Goes on with an operation that starved. REQUIRES: op.lookup.reads_value().
  void Resume(Op& op);

  // Makes an operation wait for a long buffer, unless there will never be one; or for room in the
  // send queues.
  void Starve(Op& op);
  // Returns whether an operation is in the queue of those that wait.
  bool has_starved() const { return !starved_.empty(); }
  // Calls resume(Op&) for the operations that wait, in their order, until one starves again.
  template <class F>
  void FeedStarved(F resume) {
    for (uint32_t n = starved_.size(); n > 0; --n) {
      Op& op = ops_[starved_.front()];
      starved_.Pop();
      op.busy.starving = false;
      if (op.phase == Op::Phase::kStarved) {
        resume(op);
        if (op.phase == Op::Phase::kStarved) return;
      }
      ops_.FreeIfQuiet(op);
    }
  }

 private:
  void Post(Op& op);
  void Confirm(Op& op, Op::Phase next);

  OpTable& ops_;
  FixedRing<uint32_t> starved_;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_VALUE_READS_H_
