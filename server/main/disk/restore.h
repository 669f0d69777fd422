#ifndef GANNET_SERVER_MAIN_DISK_RESTORE_H_
#define GANNET_SERVER_MAIN_DISK_RESTORE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>

#include "absl/status/status.h"
#include "common/base/server_time.h"
#include "server/log/changes/change_sink.h"
#include "server/memory/store/store.h"

namespace gannet {

// Makes a recorded change again in a store that nobody else uses, and lets its index grow.
ReplyStatus RestoreChange(Store* store, const Change& change, ServerTime now);

// Fills a store with recorded changes, before anybody else uses it. A store that evicts may evict
// while it is filled. Those keys are gone for its clients, so they must be recorded as deleted.
class Restorer : public ChangeSink {
 public:
  // `path` is for messages.
  Restorer(Store* store, std::string path, ServerTime now);
  ~Restorer() override;

  // ResourceExhausted: there is no room.
  absl::Status Apply(const Change& change);
  // The store calls this for each item that it evicts.
  bool Record(const Change& change) override;

  uint64_t version_max() const { return version_max_; }
  // Keys that were evicted and did not come back.
  const std::unordered_set<std::string>& evicted() const { return evicted_; }

 private:
  Store* const store_;
  const std::string path_;
  const ServerTime now_;
  uint64_t version_max_ = 0;
  std::unordered_set<std::string> evicted_;
};

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_DISK_RESTORE_H_
