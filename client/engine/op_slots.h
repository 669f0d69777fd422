#ifndef GANNET_CLIENT_ENGINE_OP_SLOTS_H_
#define GANNET_CLIENT_ENGINE_OP_SLOTS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "client/engine/fixed_stack.h"
#include "client/engine/op.h"
#include "common/base/data_path_checks.h"

namespace gannet {

// The operations of an Engine. At most `depth` may be alive: taken and not released. There are
// twice as many slots, because a released slot is reused only when nothing can write to its memory
// any more, and its number is in no queue.
//
// Allocates only when it is made. One owner thread.
class OpSlots {
 public:
  explicit OpSlots(uint32_t depth)
      : depth_(depth), reserve_(depth), ops_(2 * depth), free_(2 * depth) {
    for (uint32_t i = size(); i-- > 0;) {
      ops_[i].number = i;
      free_.Push(&ops_[i]);
    }
  }

  uint32_t size() const { return static_cast<uint32_t>(ops_.size()); }
  Op& operator[](uint32_t number) { return ops_[number]; }
  const Op& operator[](uint32_t number) const { return ops_[number]; }
  auto begin() { return ops_.begin(); }
  auto end() { return ops_.end(); }

  // Less than `depth` operations are alive, and a slot is free.
  bool HasRoom() const { return free_.size() > reserve_; }
  // REQUIRES: HasRoom().
  Op& Take() {
    GANNET_CHECK_DATA_PATH(HasRoom(), "more operations than there is room for");
    return *free_.Pop();
  }
  // Gives back a slot that nothing is busy with, and that is like a new one.
  void Free(Op& op) {
    op.phase.FastGoTo(Op::Phase::kFree);
    free_.Push(&op);
  }
  // Gives back a slot, at once or as soon as nothing is busy with it.
  void Release(Op& op) {
    if (op.busy.quiet()) return ClearAndFree(op);
    op.phase.GoTo(Op::Phase::kReleased);
    SetLingering(lingering_ + 1);
  }
  // Call it when something ceased to be busy with an operation. Frees the slot if it was released
  // and that was the last thing.
  void FreeIfQuiet(Op& op);

  uint32_t alive() const { return size() - free_.size() - lingering_; }
  uint32_t not_free() const { return size() - free_.size(); }

 private:
  void ClearAndFree(Op& op);
  void SetLingering(uint32_t n) {
    lingering_ = n;
    reserve_ = depth_ - std::min(depth_, n);
  }

  const uint32_t depth_;
  uint32_t lingering_ = 0;  // released slots that something is busy with
  uint32_t reserve_;        // HasRoom leaves so many slots free
  std::vector<Op> ops_;
  FixedStack<Op*> free_;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_OP_SLOTS_H_
