// Store: is made of what a former process left in a memory file.

#include <algorithm>

#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "server/recovery/survey.h"
#include "server/store/adopter.h"
#include "server/store/store.h"

namespace gannet {
namespace {

double SecondsSince(int64_t start_ns) {
  return static_cast<double>(MonotonicNs() - start_ns) / kNsPerSecond;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> Store::TakeOver(const Options& options) {
  const int64_t start_ns = MonotonicNs();
  const uint64_t heap_offset = AlignUp(kRecoveryEnd, options.page_bytes);
  GANNET_ASSIGN_OR_RETURN(const Survey survey,
                          Survey::Of(options.region, heap_offset, options.take_over_threads));
  GANNET_ASSIGN_OR_RETURN(auto heap,
                          Heap::Create(options.region.subspan(heap_offset), survey.heap()));
  // Nothing was changed up to here.
  Options adopted = options;
  adopted.first_version = std::max(options.first_version, survey.versions_end());
  Superblock superblock = survey.superblock();
  const uint64_t begun = survey.place().taking_over;
  superblock.incarnation = begun != 0 ? begun : options.incarnation;
  RecoveryArea(options.region).SetTakingOver(superblock.incarnation);
  for (const Survey::Redirected& slot : survey.redirected()) {
    StoreWordRelease(options.region.data() + slot.offset, slot.to.word());
  }
  std::unique_ptr<Store> store(new Store(adopted, superblock, std::move(heap), &survey));
  Adopter(*store).Adopt(survey, options.take_over_threads);
  store->grower_.Begin(survey.superblock().index, survey.superblock().next_index);
  store->recovery_->SetTakingOver(0);
  store->recovery_->SetNextVersion(store->next_version());
  store->recovery_->SetState(RegionState::kServing);
  store->taken_over_ = {survey.stopped_in_order(), survey.counts(), SecondsSince(start_ns),
                        NotedClock(LoadRecoveryHeader(options.region))};
  return store;
}

}  // namespace gannet
