#include "server/memory/store/item_sampler.h"

#include <algorithm>
#include <memory>

#include "server/memory/store/stubs.h"

namespace gannet {
namespace {

// A place in the index is looked at only as often as it has items (see Sample). So many places are
// tried.
constexpr int kPlacesTried = 16;
// An item that is not the coldest is evicted for its size class, if it is at most this much warmer.
constexpr int32_t kWarmerMax = Heat::kUnitsPerDoubling / 2;

bool IsOf(ItemSampler::Kind kind, Slot slot) {
  return kind == ItemSampler::Kind::kAll || (kind == ItemSampler::Kind::kStubs) == IsStub(slot);
}

}  // namespace

size_t ItemSampler::ListNear(const Index::Lock& /*held*/, IndexTable& table, uint64_t home,
                             const Choice& choice, std::span<Candidate> candidates) const {
  size_t n = 0;
  const uint64_t first = home < choice.reach ? 0 : home - choice.reach;
  const uint64_t last = std::min(home + choice.reach, table.geometry().homes - 1);
  for (uint64_t near = first; near <= last && n < candidates.size(); ++near) {
    Items::FoundOfHome found;
    const size_t listed = table.List(near, found);
    for (size_t i = 0; i < listed && n < candidates.size(); ++i) {
      const uint64_t bucket = found[i].place.bucket;
      if (choice.window_only && bucket != home && bucket != home + 1) continue;
      const Slot slot = found[i].slot;
      if (!IsOf(choice.kind, slot)) continue;
      const uint32_t block_class = items_.BlockClassOf(slot);
      int32_t worth = WorthOf(items_.eviction()->heat.Get(slot.offset()), block_class);
      if (block_class == choice.size_class) worth -= kWarmerMax;
      candidates[n++] = {found[i], worth};
    }
  }
  return n;
}

// Looks at places in the index with as many homes as have kCompared items on average. A place with
// half as many items is taken half as often, so that each item is as likely to be compared as any
// other. (If every place were taken as often, items in thin places would be evicted more often than
// others come there, and those places would become empty.)
bool ItemSampler::Sample(Kind kind, uint32_t size_class, Take take) const {
  const std::shared_ptr<IndexTable> table = items_.index().Hold();
  const uint64_t homes = table->geometry().homes;
  const uint64_t all = items_.index().slots_used();
  const uint64_t stubs = items_.stubs() == nullptr ? 0 : std::min(items_.stubs()->count(), all);
  const uint64_t items = std::max<uint64_t>(kind == Kind::kStubs ? stubs : all - stubs, 1);
  const uint64_t reach = std::min(kCompared * homes / items / 2, kNearHomes);
  const uint64_t expected = std::clamp<uint64_t>((2 * reach + 1) * items / homes, 1, kCompared);
  std::array<Candidate, 2 * kCompared> candidates;
  for (int i = 0; i < kPlacesTried; ++i) {
    const uint64_t random = items_.eviction()->Random();
    const uint64_t home = MapToRange(random, homes);
    const Index::Lock lock(items_.index(), *table, home);
    if (!items_.index().IsCurrent(*table)) return false;
    const size_t n = ListNear(lock, *table, home, {size_class, reach, false, kind}, candidates);
    if (Mix64(random) % (2 * expected) >= n) continue;
    if (take(lock, std::span(candidates).first(n))) return true;
  }
  return false;
}

}  // namespace gannet
