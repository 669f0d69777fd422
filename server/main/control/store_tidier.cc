#include "server/main/control/store_tidier.h"

#include "glog/logging.h"

namespace gannet {
namespace {

// The pauses between two steps: after a step that left nothing to do, and after one that left some.
// A step takes some 2 ms, so a server with much to tidy spends up to a fifth of a core on it.
constexpr int64_t kTidyPeriodNs = kNsPerSecond;
constexpr int64_t kTidyAgainNs = 10 * kNsPerMs;
// The pause while the index grows, whose steps are shorter. They take up to half of a core.
constexpr int64_t kGrowAgainNs = kNsPerMs;
// The pause in a store that evicts. There, writes soon use up what a step made free.
constexpr int64_t kEvictAgainNs = kNsPerMs;

}  // namespace

void StoreTidier::Poll(const Now& now) {
  if (wanted_->Take() || now.boot >= due_) Tidy(now);
}

void StoreTidier::Tidy(const Now& now) {
  Store& store = server_.store;
  TellOfIndex();
  bool more = store.Tidy(now.server_time);
  more |= PublishEvictions();
  const int64_t again_ns = store.growing()  ? kGrowAgainNs
                           : store.evicts() ? kEvictAgainNs
                                            : kTidyAgainNs;
  const int64_t rest_ns = store.NearlyFull() ? kTidyAgainNs : kTidyPeriodNs;
  due_ = now.boot + (more ? again_ns : rest_ns);
  StatsReply stats{};
  store.FillStats(&stats);
  const FullLog::Lines lines = full_log_.Report(stats, now.boot);
  if (lines.heap) LOG(WARNING) << *lines.heap;
  if (lines.index) LOG(WARNING) << *lines.index;
}

// Whoever waits for room has no answer that waits, so no worker publishes for it.
bool StoreTidier::PublishEvictions() {
  Writes& writes = server_.writes;
  if (!writes.evictions_wait()) return false;
  writes.Publish(server_.changes.safe());
  if (!writes.evictions_wait()) return false;
  server_.control.AskForSync();
  return true;
}

// Tells the store which indexes clients may still READ, and tells the workers of a new one.
void StoreTidier::TellOfIndex() {
  Store& store = server_.store;
  store.Acknowledge(workers_.index_generation());
  if (index_generation_ == store.index_generation()) return;
  index_generation_ = store.index_generation();
  workers_.Notify({Notice::Type::kIndexChanged, 0});
  const IndexGeometry index = store.superblock().index;
  LOG(INFO) << "the index has " << index.slots() << " slots now (" << index.bytes() << " bytes)";
}

}  // namespace gannet
