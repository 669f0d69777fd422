#include "softverbs/qp/tear_answer.h"

#include <algorithm>
#include <memory>

#include "softverbs/base/monotonic_clock.h"
#include "softverbs/nic/loop.h"
#include "softverbs/qp/remote_memory.h"
#include "softverbs/qp/requester.h"
#include "softverbs/qp/responder.h"

namespace softverbs {
namespace {

void StepLater(Qp& qp, const Answer& answer);

RemoteMemory Source(const Qp& qp, const Answer& answer, uint32_t begin, uint32_t size) {
  return RemoteMemory(qp, answer.rkey, answer.remote_addr + begin, size, IBV_ACCESS_REMOTE_READ);
}

// Returns true, because the answer can go on.
bool Refuse(Answer& answer) {
  answer.type = PacketType::kNak;
  answer.nak = NakCode::kRemoteAccess;
  return true;
}

// Returns true if the answer can go on: it is complete, or it failed.
bool StepNow(Qp& qp, Answer& answer) {
  TornRead& torn = *answer.torn;
  // Checked at every step, because the region may be deregistered in between.
  const RemoteMemory from = Source(qp, answer, torn.begin(), torn.end() - torn.begin());
  if (from.at() == nullptr) return Refuse(answer);
  torn.Step(from.at());
  if (torn.Done()) return true;
  StepLater(qp, answer);
  return false;
}

void StepAndSend(Nic& nic, uint32_t number, const TornRead* torn) {
  const PacketEngine::Pause pause(nic.engine());
  Qp* qp = nic.qps().Find(number);
  if (qp == nullptr) return;
  const LockGuard guard(qp->lock);
  std::deque<Answer>& answers = qp->responder.answers;
  if (answers.empty() || answers.front().torn.get() != torn) return;
  if (StepNow(*qp, answers.front()) && SendAnswers(*qp)) Transmit(*qp);
}

void StepLater(Qp& qp, const Answer& answer) {
  const int64_t wait_ns =
      std::max<int64_t>(1, answer.tear_ns / static_cast<int64_t>(TornRead::kSteps));
  // The torn READ lives as long as the timer, so that no other torn READ gets its address.
  Loop::Get().RunAt(MonotonicNs() + wait_ns,
                    [nic = qp.nic, number = qp.number, torn = answer.torn] {
                      StepAndSend(*nic, number, torn.get());
                      nic->engine().HandleParked();
                    });
}

}  // namespace

bool PrepareTorn(Qp& qp, Answer& answer) {
  if (answer.torn && answer.sent < answer.torn->end()) return answer.torn->Done();
  const uint32_t size = std::min(TornRead::kUnitBytes, answer.length - answer.sent);
  {
    const RemoteMemory from = Source(qp, answer, answer.sent, size);
    if (from.at() == nullptr) return Refuse(answer);
    answer.torn = std::make_shared<TornRead>(from.at(), answer.sent, size, answer.tear_seed);
  }
  return StepNow(qp, answer);
}

bool IsTearing(const Qp& qp) {
  const std::deque<Answer>& answers = qp.responder.answers;
  return !answers.empty() && answers.front().type == PacketType::kReadResponse &&
         answers.front().torn && !answers.front().torn->Done();
}

}  // namespace softverbs
