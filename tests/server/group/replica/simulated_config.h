#ifndef GANNET_TESTS_SERVER_GROUP_REPLICA_SIMULATED_CONFIG_H_
#define GANNET_TESTS_SERVER_GROUP_REPLICA_SIMULATED_CONFIG_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "server/group/replica/config_store.h"
#include "tests/server/group/replica/simulated_time.h"

namespace gannet {

// The register of a simulated group. It may be away for a while.
struct SimulatedRegister {
  GroupRegister now;
  bool away = false;
  // The newest incarnation of each node that has announced itself. What an earlier one sent is not
  // executed any more.
  std::map<std::string, uint64_t> announced = {};
};

// A member's way to it. Requests and answers are late or lost. A transaction whose result is
// unknown may be executed much later, also after its member has ended.
class SimulatedConfig : public ConfigStore {
 public:
  SimulatedConfig(SimulatedTime* time, SimulatedRegister* shared, const GroupMember& self)
      : time_(time), shared_(shared), self_(self), state_(std::make_shared<State>()) {
    Announce(time, shared, self);
  }

  void Read() override { Begin(std::nullopt); }
  void Txn(uint64_t revision, const GroupConfiguration& wanted) override {
    Begin(GroupRegister{.revision = revision, .configuration = wanted});
  }
  std::optional<Answer> Poll() override { return std::exchange(state_->answer, std::nullopt); }
  std::optional<GroupRegister> Seen() const override { return state_->seen; }
  // Looks at the register, as a watch does.
  void Look();

 private:
  static constexpr int64_t kPatienceNs = 500 * SimulatedTime::kMs;

  struct State {
    uint64_t newest = 0;  // request
    std::optional<Answer> answer;
    std::optional<GroupRegister> seen;
  };

  // `wanted`: with the revision that it compares with; nullopt: a Read.
  void Begin(const std::optional<GroupRegister>& wanted);
  static void Announce(SimulatedTime* time, SimulatedRegister* shared, const GroupMember& self);
  static Answer Execute(SimulatedRegister* shared, const GroupMember& sender,
                        const std::optional<GroupRegister>& wanted);
  void Give(uint64_t request, int64_t delay, const Answer& answer);

  SimulatedTime* const time_;
  SimulatedRegister* const shared_;
  const GroupMember self_;
  const std::shared_ptr<State> state_;
};

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_GROUP_REPLICA_SIMULATED_CONFIG_H_
