#include "tests/server/group/replica/simulated_config.h"

#include <algorithm>

namespace gannet {

// Again and again while the register is away.
void SimulatedConfig::Announce(SimulatedTime* time, SimulatedRegister* shared,
                               const GroupMember& self) {
  time->After(time->Delay(), [=] {
    if (shared->away) return Announce(time, shared, self);
    uint64_t& newest = shared->announced[self.node];
    newest = std::max(newest, self.incarnation);
  });
}

ConfigStore::Answer SimulatedConfig::Execute(SimulatedRegister* shared, const GroupMember& sender,
                                             const std::optional<GroupRegister>& wanted) {
  if (!wanted) return {.result = Result::kRead, .now = shared->now};
  const auto replaced = [shared](const GroupMember& member) {
    return shared->announced[member.node] > member.incarnation;
  };
  const bool dead = replaced(sender) || replaced(wanted->configuration.primary);
  if (dead || wanted->revision != shared->now.revision) {
    return {.result = Result::kLost, .now = shared->now};
  }
  shared->now = {.revision = wanted->revision + 1, .configuration = wanted->configuration};
  return {.result = Result::kWon, .now = shared->now};
}

void SimulatedConfig::Give(uint64_t request, int64_t delay, const Answer& answer) {
  time_->After(delay, [state = state_, request, answer] {
    if (state->newest == request) state->answer = answer;
  });
}

void SimulatedConfig::Begin(const std::optional<GroupRegister>& wanted) {
  const uint64_t request = ++state_->newest;
  state_->answer.reset();
  const bool forgotten = time_->Fault(8);
  const int64_t executed_after = forgotten ? time_->BelowMs(4'000) : time_->Delay();
  const bool lost = time_->Fault(30);
  if (forgotten) Give(request, kPatienceNs, {});
  time_->After(executed_after, [this, request, wanted, forgotten, lost] {
    if (shared_->away || lost) {
      if (!forgotten) Give(request, kPatienceNs, {});
      return;
    }
    const Answer answer = Execute(shared_, self_, wanted);
    if (forgotten) return;
    if (time_->Fault(20)) {
      Give(request, kPatienceNs, {});
    } else {
      Give(request, time_->Delay(), answer);
    }
  });
}

void SimulatedConfig::Look() {
  time_->After(time_->Delay(), [shared = shared_, state = state_] {
    if (!shared->away) state->seen = shared->now;
  });
}

}  // namespace gannet
