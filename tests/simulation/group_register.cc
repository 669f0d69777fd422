#include "tests/simulation/group_register.h"

#include <vector>

#include "common/protocol/versions.h"

namespace gannet::simulation {
namespace {

constexpr int64_t kPatienceNs = 500 * kNsPerMs;
constexpr int64_t kForgottenNsMax = 4 * kNsPerSecond;
constexpr int64_t kLateNsMax = 900 * kNsPerMs;
constexpr int64_t kDelayNsMax = 2 * kNsPerMs;
constexpr int64_t kLookNsMax = 300 * kNsPerMs;

}  // namespace

void GroupRegisterService::Step() {
  while (!events_.empty() && events_.begin()->first <= run_->now_ns()) {
    const std::function<void()> what = std::move(events_.begin()->second);
    events_.erase(events_.begin());
    what();
  }
}

int64_t GroupRegisterService::Delay() {
  return 1 + static_cast<int64_t>(
                 run_->Below(static_cast<uint64_t>(Fault(20) ? kLateNsMax : kDelayNsMax)));
}

ConfigStore::Answer GroupRegisterService::Execute(const GroupMember& sender, const Wanted& wanted) {
  using Result = ConfigStore::Result;
  if (!wanted) return {.result = Result::kRead, .now = now_};
  const GroupMember& primary = wanted->configuration.primary;
  const bool dead = nodes_[sender.node].first != sender || nodes_[primary.node].first != primary;
  if (dead || wanted->revision != now_.revision) return {.result = Result::kLost, .now = now_};
  now_ = {.revision = now_.revision + 1, .configuration = wanted->configuration};
  run_->Note("the register changes");
  return {.result = Result::kWon, .now = now_};
}

void MemberStore::Give(uint64_t request, int64_t delay, const Answer& answer) {
  service_->After(delay, [state = state_, request, answer] {
    if (state->newest == request) state->answer = answer;
  });
}

// A request may be forgotten by its sender and executed much later; it may be lost before or after
// it was executed.
void MemberStore::Begin(const GroupRegisterService::Wanted& wanted) {
  GroupRegisterService& service = *service_;
  const uint64_t request = ++state_->newest;
  state_->answer.reset();
  const bool forgotten = service.Fault(8);
  const int64_t executed_after =
      forgotten ? static_cast<int64_t>(service.run_->Below(static_cast<uint64_t>(kForgottenNsMax)))
                : service.Delay();
  const bool lost = service.Fault(30);
  const bool answer_lost = service.Fault(20);
  const int64_t answer_after = service.Delay();
  if (forgotten || lost || answer_lost) Give(request, executed_after + kPatienceNs, {});
  if (lost) return;
  service.After(executed_after, [state = state_, at = service_, self = self_, request, wanted,
                                 silent = forgotten || answer_lost, answer_after] {
    const Answer answer = at->away_ ? Answer{} : at->Execute(self, wanted);
    if (silent) return;
    at->After(at->away_ ? kPatienceNs : answer_after, [state, request, answer] {
      if (state->newest == request) state->answer = answer;
    });
  });
}

std::optional<ConfigStore::Answer> MemberStore::Poll() {
  Run* const run = service_->run_;
  if (run->now_ns() >= look_ns_) {
    look_ns_ = run->now_ns() + static_cast<int64_t>(run->Below(kLookNsMax));
    service_->After(service_->Delay(), [state = state_, at = service_] {
      if (!at->away_) state->seen = at->now_;
    });
  }
  return std::exchange(state_->answer, std::nullopt);
}

std::optional<std::string> MemberStore::AddressOf(const GroupMember& member) const {
  const auto it = service_->nodes_.find(member.node);
  if (it == service_->nodes_.end() || it->second.first != member) return std::nullopt;
  if (!reaches_(member.node)) return std::nullopt;
  return it->second.second;
}

std::optional<NodeSeen> MemberStore::NodeOf(std::string_view node) const {
  const auto it = service_->nodes_.find(std::string(node));
  if (it == service_->nodes_.end()) return std::nullopt;
  return NodeSeen{.incarnation = it->second.first.incarnation,
                  .applied = 0,
                  .kept = std::nullopt,
                  .stream_version = kStreamVersions.max};
}

// As etcd tells it to members.
std::optional<PartitionMap> MemberStore::Map() const {
  PartitionMap map{.groups = {{"g", {}}}, .partitions = std::vector<uint16_t>(kPartitions)};
  for (const auto& [name, node] : service_->nodes_) map.groups[0].addresses.push_back(node.second);
  return map;
}

}  // namespace gannet::simulation
