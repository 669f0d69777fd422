#include "softverbs/qp/split_atomic.h"

#include <memory>

#include "softverbs/base/monotonic_clock.h"
#include "softverbs/nic/loop.h"
#include "softverbs/nic/nic.h"
#include "softverbs/qp/requester.h"
#include "softverbs/qp/responder.h"

namespace softverbs {
namespace {

using Operation = AtomicUnits::Operation;

void FinishAndSend(Nic& nic, uint32_t number, Operation& operation) {
  nic.atomic_units().Finish(operation);
  const PacketEngine::Pause pause(nic.engine());
  Qp* qp = nic.qps().Find(number);
  if (qp == nullptr) return;
  const LockGuard guard(qp->lock);
  if (SendAnswers(*qp)) Transmit(*qp);
}

}  // namespace

bool BeginSplitAtomic(Qp& qp, const PacketHeader& request, Answer* answer) {
  auto operation = std::make_shared<Operation>();
  operation->rkey = request.rkey;
  operation->addr = request.remote_addr;
  operation->qpn = qp.number;
  operation->pd = qp.pd_id;
  operation->is_swap = request.type == PacketType::kCompareSwap;
  operation->operand = request.operand;
  operation->swap = request.swap;
  if (!qp.nic->atomic_units().Begin(qp.context->device, operation)) return false;
  answer->value = operation->original;
  answer->atomic = operation;
  Loop::Get().RunAt(MonotonicNs() + AtomicUnits::kNs,
                    [nic = qp.nic, number = qp.number, operation] {
                      FinishAndSend(*nic, number, *operation);
                      nic->engine().HandleParked();
                    });
  return true;
}

bool IsSplitting(const Qp& qp) {
  // What follows an atomic waits, so it is the last of the answers.
  const std::deque<Answer>& answers = qp.responder.answers;
  return !answers.empty() && answers.back().atomic && !answers.back().atomic->IsDone();
}

void EndSplitAtomics(Qp& qp) {
  if (IsSplitting(qp)) qp.nic->atomic_units().Finish(*qp.responder.answers.back().atomic);
}

}  // namespace softverbs
