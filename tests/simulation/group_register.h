#ifndef GANNET_TESTS_SIMULATION_GROUP_REGISTER_H_
#define GANNET_TESTS_SIMULATION_GROUP_REGISTER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "server/replica/config_store.h"
#include "server/replica/group_directory.h"
#include "tests/simulation/run.h"

namespace gannet::simulation {

// What the members of a simulated group share in the place of etcd: the register, where they can be
// reached, and an operator's wish. It may be away. Requests and answers are late or lost, and a
// transaction whose result is unknown may be executed much later, also after its process has ended,
// but not once the next process of that node has announced itself.
class GroupRegisterService {
 public:
  GroupRegisterService(Run* run, GroupTerms terms) : run_(run), terms_(std::move(terms)) {}

  // Does what is due by now.
  void Step();
  // Returns when something is due next.
  int64_t next_ns() const { return events_.empty() ? INT64_MAX : events_.begin()->first; }
  const GroupConfiguration& now() const { return now_.configuration; }

  void SetAway(bool away) { away_ = away; }
  // Whether requests and answers are lost now and then.
  void SetLossy(bool lossy) { lossy_ = lossy; }
  void WantSuccessor(const std::string& node) { successor_ = node; }

 private:
  friend class MemberStore;
  using Wanted = std::optional<GroupRegister>;  // nullopt: a read

  void After(int64_t ns, std::function<void()> what) {
    events_.emplace(run_->now_ns() + ns, std::move(what));
  }
  bool Fault(uint64_t one_in) { return lossy_ && run_->OneIn(one_in); }
  int64_t Delay();
  ConfigStore::Answer Execute(const GroupMember& sender, const Wanted& wanted);

  Run* const run_;
  const GroupTerms terms_;
  GroupRegister now_{.revision = 1, .configuration = {}};
  bool away_ = false;
  bool lossy_ = true;
  std::optional<std::string> successor_;
  std::map<std::string, std::pair<GroupMember, std::string>> nodes_;
  std::multimap<int64_t, std::function<void()>> events_;
};

// A process's way to it.
class MemberStore : public ConfigStore, public GroupDirectory {
 public:
  // `reaches(node)`: whether this process can connect to that node now.
  MemberStore(GroupRegisterService* service, std::function<bool(const std::string&)> reaches)
      : service_(service), reaches_(std::move(reaches)), state_(std::make_shared<State>()) {}

  void Read() override { Begin(std::nullopt); }
  void Txn(uint64_t revision, const GroupConfiguration& wanted) override {
    Begin(GroupRegister{.revision = revision, .configuration = wanted});
  }
  std::optional<Answer> Poll() override;
  std::optional<GroupRegister> Seen() const override { return state_->seen; }

  GroupTerms terms() const override { return service_->terms_; }
  void Announce(const GroupMember& self, std::string_view address, uint64_t) override {
    self_ = self;
    service_->nodes_[self.node] = {self, std::string(address)};
  }
  std::optional<NodeSeen> NodeOf(std::string_view node) const override;
  std::optional<std::string> AddressOf(const GroupMember& member) const override;
  std::optional<PartitionMap> Map() const override;
  std::optional<std::string> WantedSuccessor() const override { return service_->successor_; }
  void ForgetWantedSuccessor() override { service_->successor_.reset(); }

 private:
  struct State {
    uint64_t newest = 0;  // request
    std::optional<Answer> answer;
    std::optional<GroupRegister> seen;
  };
  void Begin(const GroupRegisterService::Wanted& wanted);
  void Give(uint64_t request, int64_t delay, const Answer& answer);

  GroupRegisterService* const service_;
  const std::function<bool(const std::string&)> reaches_;
  GroupMember self_;
  const std::shared_ptr<State> state_;  // outlives the process, for what is under way
  int64_t look_ns_ = 0;                 // when the watch tells something next
};

}  // namespace gannet::simulation

#endif  // GANNET_TESTS_SIMULATION_GROUP_REGISTER_H_
