#ifndef GANNET_TESTS_SIMULATION_CLUSTER_KEYS_LOG_H_
#define GANNET_TESTS_SIMULATION_CLUSTER_KEYS_LOG_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/etcd/etcd_client.h"
#include "common/etcd/etcd_messages.h"

namespace gannet::simulation {

// The keys of a cluster as they would lie in etcd, and all changes of them in their order, so that
// everybody who watches may be told of them at another time.
class ClusterKeysLog {
 public:
  int64_t revision() const { return revision_; }
  // Begins a transaction and returns its revision. All that is put or deleted next is part of it.
  int64_t Begin() { return ++revision_; }
  void Put(const std::string& key, std::string value) {
    const EtcdKeyValue item = {key, std::move(value), revision_};
    items_[key] = item;
    changes_.push_back({.item = item});
  }
  void Delete(const std::string& key) {
    items_.erase(key);
    changes_.push_back({.item = {key, "", revision_}, .deleted = true});
  }

  // All keys are gone at once. Revisions go on, as EtcdClient tells them.
  void LoseAll() {
    Begin();
    items_.clear();
    ++losses_;
  }
  // How often that happened.
  uint64_t losses() const { return losses_; }

  // Returns nullptr if there is no such key.
  const EtcdKeyValue* Find(const std::string& key) const {
    const auto found = items_.find(key);
    return found == items_.end() ? nullptr : &found->second;
  }
  std::vector<EtcdKeyValue> Items() const {
    std::vector<EtcdKeyValue> items;
    for (const auto& [key, item] : items_) items.push_back(item);
    return items;
  }
  size_t size() const { return changes_.size(); }
  // Returns what changed since the log had `from` changes.
  EtcdNews Since(size_t from) const {
    return {.kind = EtcdNews::Kind::kChanged,
            .revision = revision_,
            .changes = {changes_.begin() + static_cast<std::ptrdiff_t>(from), changes_.end()}};
  }

 private:
  int64_t revision_ = 0;
  uint64_t losses_ = 0;
  std::map<std::string, EtcdKeyValue> items_;
  std::vector<EtcdChange> changes_;
};

}  // namespace gannet::simulation

#endif  // GANNET_TESTS_SIMULATION_CLUSTER_KEYS_LOG_H_
