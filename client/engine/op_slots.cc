#include "client/engine/op_slots.h"

namespace gannet {

void OpSlots::FreeIfQuiet(Op& op) {
  if (op.phase != Op::Phase::kReleased || !op.busy.quiet()) return;
  SetLingering(lingering_ - 1);
  ClearAndFree(op);
}

// Clears what an operation of any kind may have left behind.
void OpSlots::ClearAndFree(Op& op) {
  if (op.item.lent.data != nullptr) op.ReturnItem();
  op.request = {};
  op.done = {};
  op.value = {};
  op.lock = {};
  op.rpc = {};
  op.late = op.misplaced = false;
  Free(op);
}

}  // namespace gannet
