#ifndef GANNET_SERVER_GROUP_MEMBERS_JOIN_TARGET_H_
#define GANNET_SERVER_GROUP_MEMBERS_JOIN_TARGET_H_

#include <cstdint>
#include <string_view>

#include "common/base/server_time.h"
#include "common/layout/key_hash.h"
#include "common/protocol/message.h"
#include "server/log/changes/change.h"
#include "server/memory/store/store.h"

namespace gannet {

// Where a Joiner puts what it finds. One thread, the joiner's.
class JoinTarget {
 public:
  virtual ~JoinTarget() = default;

  // Whether items of this key are wanted at all.
  virtual bool Wants(std::string_view key) const = 0;
  // Returns a hash by which the joiner remembers the key. It is the same for as long as the target
  // lives.
  virtual KeyHash HashOf(std::string_view key) const = 0;
  virtual bool Has(std::string_view key, ServerTime now) = 0;
  // kExists: the key has an item, and nothing was done. kTryAgain, kIndexFull: there is no room in
  // the index, or in what the change goes through, now. Anything else but kOk is for good.
  virtual ReplyStatus Insert(const Change& put, ServerTime now) = 0;
};

// A backup's store.
class StoreJoinTarget final : public JoinTarget {
 public:
  // `store` outlives this.
  explicit StoreJoinTarget(Store* store) : store_(store) {}

  bool Wants(std::string_view) const override { return true; }
  KeyHash HashOf(std::string_view key) const override { return store_->HashOf(key); }
  bool Has(std::string_view key, ServerTime now) override {
    return store_->Get(key, {}, now).status != ReplyStatus::kNotFound;
  }
  ReplyStatus Insert(const Change& put, ServerTime now) override {
    return store_->ApplyIfAbsent(put, now);
  }

 private:
  Store* const store_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_GROUP_MEMBERS_JOIN_TARGET_H_
