#ifndef GANNET_TESTS_SIMULATION_SIMULATED_ETCD_H_
#define GANNET_TESTS_SIMULATION_SIMULATED_ETCD_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/etcd/etcd.h"
#include "server/group/cluster/etcd_config_store.h"
#include "tests/simulation/group_register.h"

namespace gannet::simulation {

// A process's way to the keys of GroupRegisterService, with the rules of EtcdClient: what is under
// way when etcd loses its data has an unknown result, and the watch lists anew, a while after
// answers have shown it. The first list comes at once.
class SimulatedEtcd final : public Etcd {
 public:
  explicit SimulatedEtcd(GroupRegisterService* service);

  int fd() const override { return -1; }
  int64_t NowNs() const override { return service_->run_->now_ns(); }
  void Poll() override;
  void Range(std::string_view key, RangeHandler handler) override;
  void Txn(const EtcdTxn& txn, TxnHandler handler) override;
  void Compact(int64_t, CompactHandler) override {}
  uint64_t Watch(std::string_view, WatchHandler handler) override;

 private:
  using Answered = GroupRegisterService::Answered;
  // Outlives the process, for what is under way.
  struct State {
    std::vector<Answered> inbox;  // what Poll calls
    size_t told = 0;              // so much of the log
    uint64_t listed = 0;          // how often etcd had lost its data when the watch listed last
  };
  // execute() is called when it is executed, if ever, and returns what Poll calls; unknown is
  // called in its place.
  void Send(const std::function<Answered()>& execute, const Answered& unknown);
  void Look();

  GroupRegisterService* const service_;
  const std::shared_ptr<State> state_;
  WatchHandler handler_;
  bool listed_ = false;
  uint64_t losses_ = 0;  // of etcd's data that this process knows of
  int64_t look_ns_ = 0;  // when the watch tells something next
};

// The store of a member, as kvserver has it.
class EtcdMember final : public EtcdConfigStore {
 public:
  // `reaches(node)`: whether the process can connect to that node now. Errors as those of
  // EtcdConfigStore::Open.
  static absl::StatusOr<std::unique_ptr<EtcdMember>> Open(
      GroupRegisterService* service, const std::string& node,
      std::function<bool(const std::string&)> reaches);

  std::optional<std::string> AddressOf(const GroupMember& member) const override;
  std::optional<std::string> PrimaryOf(std::string_view group) const override;

 private:
  EtcdMember(GroupRegisterService* service, const std::string& node,
             std::function<bool(const std::string&)> reaches);

  const std::function<bool(const std::string&)> reaches_;
};

}  // namespace gannet::simulation

#endif  // GANNET_TESTS_SIMULATION_SIMULATED_ETCD_H_
