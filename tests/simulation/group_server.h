#ifndef GANNET_TESTS_SIMULATION_GROUP_SERVER_H_
#define GANNET_TESTS_SIMULATION_GROUP_SERVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/protocol/versions.h"
#include "server/main/control/server.h"
#include "tests/simulation/group_register.h"
#include "tests/simulation/run.h"
#include "tests/simulation/simulated_etcd.h"

namespace gannet::simulation {

// A node of a simulated group, and its processes, each of which is a whole Server with its Member.
// A process that ended by itself, or was killed, is followed by another one, which joins, empty.
//
// Parts: 0 is the control thread's, 1 the member's, the others are the workers.
class GroupServer {
 public:
  struct Options {
    uint32_t node = 0;
    uint32_t group = 0;
    std::string group_name;  // empty: the group is alone
    bool starts = true;      // false: its group is to come later
    // The newest version of the stream that its processes speak (docs/versions.md).
    uint16_t stream_version = kStreamVersions.max;
    uint64_t clock_ahead_ms = 0;  // of its wall clock
    int64_t drift = 0;            // its clock is faster by this many parts of 2^20
    Server::Options server;       // without `listen`, `group` and what the simulation sets
    GroupTerms terms;
    std::function<bool(const std::string&)> reaches;
    // Called when the node's code reads its clock. May stop the whole node there.
    std::function<void(uint32_t)> on_clock;
  };
  GroupServer(Options options, Run* run, GroupRegisterService* service);
  ~GroupServer();
  GroupServer(const GroupServer&) = delete;
  GroupServer& operator=(const GroupServer&) = delete;

  static std::string NameOf(uint32_t node);
  const std::string& address() const { return address_; }
  uint32_t node() const { return options_.node; }
  uint32_t group() const { return options_.group; }

  // Ends the process, and lets another one start after `pause_ns`.
  void Kill(int64_t pause_ns);
  // Starts the other process once it is due, and ends one that has no place in the group.
  void Continue();
  void StartNow() { start_ns_ = 0; }
  // For the next process.
  void SetTerms(GroupTerms terms) { options_.terms = std::move(terms); }
  void SetStreamVersion(uint16_t version) { options_.stream_version = version; }
  uint16_t stream_version() const { return options_.stream_version; }
  bool up() const { return server_ != nullptr; }
  // REQUIRES: up(), as for all that follows.
  // It is told to stop: it hands over, or leaves those in sync, as soon as it can, and ends. Then
  // another process starts.
  void StepDown() {
    steps_down_ = true;
    member().Leave();
  }
  // Whether it is going to end by itself: at once, or when another member has what it has. The only
  // member of a group would end at once; here it goes on.
  bool steps_down() const { return steps_down_ && options_.terms.members.size() > 1; }
  size_t parts() const { return 2 + server_->workers().size(); }
  void Poll(size_t part);

  GroupMember self() const {
    return {.node = NameOf(node()),
            .incarnation = server_->context().store.superblock().incarnation};
  }
  Member& member() { return *server_->member(); }
  // Whether clients would believe it now.
  bool HasLease() const;
  // Whether it is about to give its place to a backup.
  bool HandsOver() { return member().Look().as_primary.hands_over; }
  const ServedPartitions& partitions() const { return server_->context().standing->partitions(); }
  bool serves() const { return server_->serves(); }
  Store& store() { return server_->store(); }
  size_t busy() const;
  // Whether it knows that it has all of the group's items.
  bool HasItems() {
    const Member::Role role = member().Look().role;
    return role == Member::Role::kPrimary || role == Member::Role::kBackup;
  }
  // CLOCK_BOOTTIME of the node.
  int64_t Clock() const;

 private:
  void Start();
  // Sets Server::Options::group. Returns false if etcd has no place for the node now.
  bool FindPlace();
  void Stop();
  BootTime ReadClock();
  Now now() const;
  void LeaseItems();

  Options options_;
  Run* const run_;
  GroupRegisterService* const service_;
  std::unique_ptr<MemberStore> store_;
  std::unique_ptr<EtcdMember> real_store_;  // instead of the other
  std::unique_ptr<ServerClock> clock_;
  std::unique_ptr<Server> server_;
  std::string address_;
  bool stopping_ = false;
  bool steps_down_ = false;
  int64_t start_ns_ = 0;  // when the next process starts
  int64_t lease_ns_ = 0;  // when items are leased next
};

}  // namespace gannet::simulation

#endif  // GANNET_TESTS_SIMULATION_GROUP_SERVER_H_
