#include "client/engine/op_slots.h"

namespace gannet {

void OpSlots::FreeIfQuiet(Op& op) {
  if (op.phase != Op::Phase::kReleased || !op.busy.quiet()) return;
  SetLingering(lingering_ - 1);
  ClearAndFree(op);
}

// Clears what an operation of any kind may have left behind.
void OpSlots::ClearAndFree(Op& op) {
  if (op.item.data != nullptr) op.ReturnItem();
  op.hold = Op::Hold::kNot;
  op.request = {};
  op.done = {};
  op.value = {};
  op.word = LockWord();
  op.value_needed = 0;
  op.version_alive = 0;
  op.second_step = op.late = op.put_off = op.misplaced = false;
  op.refused_at = 0;
  Free(op);
}

}  // namespace gannet
