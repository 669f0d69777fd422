#ifndef GANNET_TESTS_SERVER_GROUP_MEMBERS_SHARED_REGISTER_H_
#define GANNET_TESTS_SERVER_GROUP_MEMBERS_SHARED_REGISTER_H_

#include <algorithm>
#include <atomic>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "common/base/mutex.h"
#include "common/protocol/versions.h"
#include "server/group/replica/config_store.h"
#include "server/group/replica/group_directory.h"

namespace gannet {

// A register that the members of a group in one process share, in the place of etcd. It may be
// away for a while.
//
// Thread safe.
class SharedRegister {
 public:
  explicit SharedRegister(GroupTerms terms) : terms_(std::move(terms)) {}

  GroupRegister now() const {
    MutexLock lock(mutex_);
    return now_;
  }
  GroupTerms terms() const {
    MutexLock lock(mutex_);
    return terms_;
  }
  // What `kvcli cluster set` does.
  void SetTerms(const std::function<void(GroupTerms*)>& set) {
    MutexLock lock(mutex_);
    set(&terms_);
    ++now_.revision;
  }
  void WantSuccessor(std::optional<std::string> node) {
    MutexLock lock(mutex_);
    successor_ = std::move(node);
  }
  std::optional<std::string> successor() const {
    MutexLock lock(mutex_);
    return successor_;
  }
  // The cluster's map, as far as this group is concerned.
  void SetPartitions(const GroupPartitions& partitions) {
    MutexLock lock(mutex_);
    partitions_ = partitions;
    has_map_.store(true, std::memory_order_release);
  }
  // A member asks at each Poll, whose instructions are counted.
  bool has_map() const { return has_map_.load(std::memory_order_acquire); }
  std::optional<GroupPartitions> partitions() const {
    MutexLock lock(mutex_);
    return partitions_;
  }
  // From now on nothing is told but with the answers to requests: the watches are late.
  void SetWatchesLate() { watches_late_.store(true, std::memory_order_release); }
  bool watches_late() const { return watches_late_.load(std::memory_order_acquire); }
  void SetAway(bool away) {
    MutexLock lock(mutex_);
    away_ = away;
  }

  void SetMembers(std::vector<std::string> nodes) {
    MutexLock lock(mutex_);
    terms_.members = std::move(nodes);
  }
  // Announcements fail from now on, because of that.
  void SetNotAnnounced(std::string why) {
    MutexLock lock(mutex_);
    not_announced_ = std::move(why);
  }
  std::string not_announced() const {
    MutexLock lock(mutex_);
    return not_announced_;
  }
  // What an operator does if all in sync are gone. REQUIRES: the node's process has announced
  // itself.
  void Force(const std::string& node, uint64_t history) {
    MutexLock lock(mutex_);
    const GroupMember primary = nodes_.at(node).first;
    terms_.history = history;
    now_ = {.revision = now_.revision + 1,
            .configuration = {
                .epoch = now_.configuration.epoch + 1, .primary = primary, .in_sync = {primary}}};
  }
  // What a member asked for.
  void RemoveAllButThePrimary() {
    MutexLock lock(mutex_);
    ++now_.revision;
    now_.configuration.in_sync = {now_.configuration.primary};
  }
  void TakeOver(const GroupMember& primary) {
    MutexLock lock(mutex_);
    now_ = {.revision = now_.revision + 1,
            .configuration = {
                .epoch = now_.configuration.epoch + 1, .primary = primary, .in_sync = {primary}}};
  }
  // Returns what the node's newest process said that it had applied, or nullopt.
  std::optional<uint64_t> AppliedOf(const std::string& node, uint64_t incarnation) const {
    MutexLock lock(mutex_);
    const auto it = applied_.find({node, incarnation});
    if (it == applied_.end()) return std::nullopt;
    return it->second;
  }

  // For its members.
  ConfigStore::Answer Execute(const std::optional<GroupRegister>& wanted) {
    using Result = ConfigStore::Result;
    MutexLock lock(mutex_);
    if (away_) return {.result = Result::kUnknown};
    if (!wanted) return {.result = Result::kRead, .now = now_};
    if (wanted->revision != now_.revision) return {.result = Result::kLost, .now = now_};
    now_ = {.revision = now_.revision + 1, .configuration = wanted->configuration};
    return {.result = Result::kWon, .now = now_};
  }
  // Returns the revision that Watch tells, or 0.
  uint64_t revision_seen() const {
    MutexLock lock(mutex_);
    return away_ ? 0 : now_.revision;
  }
  std::optional<GroupRegister> Watch() const {
    MutexLock lock(mutex_);
    if (away_) return std::nullopt;
    return now_;
  }
  void Announce(const GroupMember& member, std::string_view addresses, uint64_t applied) {
    MutexLock lock(mutex_);
    std::vector<std::string>& rails = rails_[member.incarnation];
    rails = absl::StrSplit(std::string(addresses), ',');
    const std::string address = rails.front();
    if (rails.size() == 1) rails.clear();
    const bool is_new =
        applied_.insert_or_assign({member.node, member.incarnation}, applied).second;
    // Of two processes with one name, the one in sync has it; otherwise the later one.
    const bool gets = is_new || now_.configuration.IsInSync(member);
    if (!gets && nodes_.at(member.node).first != member) return;
    auto& [holder, at] = nodes_[member.node];
    at = address;
    if (std::exchange(holder, member) == member) return;
    processes_.fetch_add(1, std::memory_order_release);
  }
  // How often another process got a name. As has_map, members ask at each Poll.
  uint64_t processes() const { return processes_.load(std::memory_order_acquire); }
  // Whether another process with its name has announced itself since.
  bool IsReplaced(const GroupMember& member) const {
    MutexLock lock(mutex_);
    return nodes_.at(member.node).first != member;
  }
  // The node speaks versions of the stream up to this one.
  void SetStreamVersion(const std::string& node, uint16_t version) {
    MutexLock lock(mutex_);
    stream_versions_[node] = version;
  }
  void AnnounceKept(const GroupMember& member, const KeptRun& kept) {
    MutexLock lock(mutex_);
    kept_[member.incarnation] = kept;
  }
  std::optional<NodeSeen> NodeOf(std::string_view node) const {
    MutexLock lock(mutex_);
    const auto it = nodes_.find(std::string(node));
    if (it == nodes_.end()) return std::nullopt;
    const GroupMember& member = it->second.first;
    NodeSeen seen = {.incarnation = member.incarnation,
                     .applied = applied_.at({member.node, member.incarnation}),
                     .kept = std::nullopt,
                     .stream_version = kStreamVersions.max,
                     .rails = rails_.at(member.incarnation)};
    if (const auto kept = kept_.find(member.incarnation); kept != kept_.end()) {
      seen.kept = kept->second;
    }
    if (const auto version = stream_versions_.find(member.node);
        version != stream_versions_.end()) {
      seen.stream_version = version->second;
    }
    return seen;
  }
  // As Execute, for a process that begins the group again.
  ConfigStore::Answer BeginAgain(const GroupRegister& wanted, uint64_t history,
                                 const std::vector<GroupMember>& others) {
    {
      MutexLock lock(mutex_);
      const auto runs = [this](const GroupMember& it)
                            GANNET_UNCHECKED_LOCKS { return nodes_.at(it.node).first == it; };
      if (!std::ranges::all_of(others, runs)) {
        return {.result = ConfigStore::Result::kLost, .now = now_};
      }
      if (wanted.revision == now_.revision) terms_.history = history;
    }
    return Execute(wanted);
  }
  std::optional<std::string> AddressOf(const GroupMember& member) const {
    MutexLock lock(mutex_);
    const auto it = nodes_.find(member.node);
    if (it == nodes_.end() || it->second.first != member) return std::nullopt;
    return it->second.second;
  }

 private:
  mutable Mutex mutex_;
  GroupRegister now_ GANNET_GUARDED_BY(mutex_){.revision = 1};
  GroupTerms terms_ GANNET_GUARDED_BY(mutex_);
  bool away_ GANNET_GUARDED_BY(mutex_) = false;
  std::string not_announced_ GANNET_GUARDED_BY(mutex_);
  std::atomic<bool> watches_late_{false};
  std::atomic<bool> has_map_{false};
  std::atomic<uint64_t> processes_{0};
  std::optional<GroupPartitions> partitions_ GANNET_GUARDED_BY(mutex_);
  std::optional<std::string> successor_ GANNET_GUARDED_BY(mutex_);
  std::map<std::string, std::pair<GroupMember, std::string>> nodes_ GANNET_GUARDED_BY(mutex_);
  std::map<uint64_t, std::vector<std::string>> rails_ GANNET_GUARDED_BY(mutex_);  // by incarnation
  std::map<std::pair<std::string, uint64_t>, uint64_t> applied_ GANNET_GUARDED_BY(mutex_);
  std::map<std::string, uint16_t> stream_versions_ GANNET_GUARDED_BY(mutex_);
  std::map<uint64_t, KeptRun> kept_ GANNET_GUARDED_BY(mutex_);  // by incarnation
};

// A member's way to it.
class SharedConfigStore : public ConfigStore, public GroupDirectory {
 public:
  explicit SharedConfigStore(SharedRegister* shared) : shared_(shared) {}

  void Read() override { Execute(std::nullopt); }
  void Txn(uint64_t revision, const GroupConfiguration& wanted) override {
    Execute(GroupRegister{.revision = revision, .configuration = wanted});
  }
  std::optional<Answer> Poll() override { return std::exchange(answer_, std::nullopt); }
  std::optional<GroupRegister> Seen() const override {
    if (shared_->watches_late()) return seen_;
    const std::optional<GroupRegister> told = shared_->Watch();
    if (told) seen_ = told;
    return told;
  }
  bool SeesNewer(uint64_t revision) const override {
    if (shared_->watches_late()) return seen_ && seen_->revision > revision;
    return shared_->revision_seen() > revision;
  }

  GroupTerms terms() const override { return shared_->terms(); }
  void Announce(const GroupMember& self, std::string_view addresses, uint64_t applied) override {
    if (kept_) shared_->AnnounceKept(self, *kept_);
    shared_->Announce(self, addresses, applied);
    self_ = self;
  }
  std::string WhyNotAnnounced() const override { return shared_->not_announced(); }
  void AnnounceKept(const KeptRun& kept) override { kept_ = kept; }
  std::optional<NodeSeen> NodeOf(std::string_view node) const override {
    return shared_->NodeOf(node);
  }
  void BeginAgain(uint64_t revision, const GroupConfiguration& wanted, uint64_t history,
                  const std::vector<GroupMember>& others) override {
    answer_ = shared_->BeginAgain({.revision = revision, .configuration = wanted}, history, others);
  }
  std::optional<std::string> AddressOf(const GroupMember& member) const override {
    return shared_->AddressOf(member);
  }
  bool Replaced() const override {
    if (!self_ || shared_->processes() == replaced_at_) return replaced_;
    replaced_at_ = shared_->processes();
    return replaced_ = shared_->IsReplaced(*self_);
  }
  std::optional<std::string> WantedSuccessor() const override { return shared_->successor(); }
  void ForgetWantedSuccessor() override { shared_->WantSuccessor(std::nullopt); }
  const GroupPartitions* Partitions() const override {
    if (shared_->has_map() && !shared_->watches_late()) partitions_ = shared_->partitions();
    return partitions_ ? &*partitions_ : nullptr;
  }

 private:
  // As in etcd, each answer comes with the map.
  void Execute(const std::optional<GroupRegister>& wanted) {
    answer_ = shared_->Execute(wanted);
    if (answer_->result == Result::kUnknown) return;
    seen_ = answer_->now;
    partitions_ = shared_->partitions();
  }

  SharedRegister* const shared_;
  // As this process knows them.
  mutable std::optional<GroupRegister> seen_;
  mutable std::optional<GroupPartitions> partitions_;
  std::optional<GroupMember> self_;   // once announced
  mutable uint64_t replaced_at_ = 0;  // processes() when it was looked at
  mutable bool replaced_ = false;
  std::optional<KeptRun> kept_;
  std::optional<Answer> answer_;
};

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_GROUP_MEMBERS_SHARED_REGISTER_H_
