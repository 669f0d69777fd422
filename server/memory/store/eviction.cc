// What is counted of uses, of ages, and of keys that were evicted. All of it is an estimate: what
// a race loses costs a worse choice, and nothing else.

#include "server/memory/store/eviction.h"

#include <algorithm>
#include <cstring>

#include "common/base/words.h"
#include "common/layout/key_hash.h"
#include "common/protocol/touch.h"

namespace gannet {
namespace {

// One call of Cool looks at so many words of heats. That takes some 0.2 ms.
constexpr uint64_t kCoolWordsMax = 1 << 16;
// A long item that comes back has its former heat one time in so many (docs/memory.md).
constexpr uint64_t kLongRememberedOnceIn = 8;

uint8_t* ByteAt(std::vector<uint64_t>& words, uint64_t i) {
  return reinterpret_cast<uint8_t*>(words.data()) + i;
}

}  // namespace

EvictedKeys::EvictedKeys(uint64_t entries)
    : checks_(entries / sizeof(uint64_t) + 1), heats_(checks_.size()) {}

uint64_t EvictedKeys::EntryOf(KeyHash hash) const {
  return MapToRange(Mix64(hash.value()), heats_.size() * sizeof(uint64_t));
}

void EvictedKeys::Remember(KeyHash hash, uint8_t heat) {
  const uint64_t entry = EntryOf(hash);
  __atomic_store_n(ByteAt(checks_, entry), CheckOf(hash), __ATOMIC_RELAXED);
  __atomic_store_n(ByteAt(heats_, entry), heat, __ATOMIC_RELAXED);
}

uint8_t EvictedKeys::Take(KeyHash hash) {
  const uint64_t entry = EntryOf(hash);
  if (__atomic_load_n(ByteAt(checks_, entry), __ATOMIC_RELAXED) != CheckOf(hash)) {
    return Heat::kNone;
  }
  const uint8_t heat = __atomic_load_n(ByteAt(heats_, entry), __ATOMIC_RELAXED);
  __atomic_store_n(ByteAt(heats_, entry), Heat::kNone, __ATOMIC_RELAXED);
  return heat;
}

void EvictedKeys::Cool(uint64_t words) {
  for (; words > 0; --words) {
    uint64_t* const word = &heats_[cool_position_];
    const uint64_t heats = LoadWord(word);
    if (heats != 0) StoreWord(word, Cooled(heats, 0));
    if (++cool_position_ == heats_.size()) cool_position_ = 0;
  }
}

void VersionAges::Mark(ServerTime now, uint64_t next_version) {
  MutexLock lock(mutex_);
  if (!marks_.empty() && now.ms() < marks_.back().ms + interval_ms_) return;
  if (marks_.size() == kMarksMax) {
    for (size_t i = 0; i < kMarksMax / 2; ++i) marks_[i] = marks_[2 * i];
    marks_.resize(kMarksMax / 2);
    interval_ms_ *= 2;
  }
  marks_.push_back({next_version, now.ms()});
}

uint64_t VersionAges::AgeMs(ServerTime now, uint64_t version) const {
  MutexLock lock(mutex_);
  const auto later =
      std::upper_bound(marks_.begin(), marks_.end(), version,
                       [](uint64_t v, const Point& mark) { return v < mark.version; });
  if (later == marks_.begin()) return marks_.empty() ? 0 : now.ms() - marks_.front().ms;
  return now.ms() - std::min(now.ms(), (later - 1)->ms);
}

uint64_t Eviction::Random() {
  // Relaxed: any two calls get different numbers, which is enough.
  return Mix64(random_.fetch_add(0x9e3779b97f4a7c15, std::memory_order_relaxed));
}

void Eviction::TouchAll(std::string_view touches, uint64_t region_bytes) {
  uint64_t random = Random();
  uint64_t uses = 0;
  ForEachTouch(touches, [&](Touch touch) {
    if (touch.offset() >= region_bytes) return;
    random = random * 6364136223846793005 + 1442695040888963407;
    heat.Add(touch.offset(), touch.uses(), static_cast<uint32_t>(random >> 32));
    uses += touch.uses();
  });
  uses_.fetch_add(uses, std::memory_order_relaxed);
}

void Eviction::Installed(KeyHash hash, uint64_t offset, uint32_t size_class, uint8_t old_heat) {
  const uint64_t mean = mean_bytes_.load(std::memory_order_relaxed);
  mean_bytes_.store(mean - mean / kMeanOf + SizeClassBytes(size_class), std::memory_order_relaxed);
  const uint64_t random64 = Random();
  const bool remembers =
      !IsLong(SizeClassBytes(size_class)) || (random64 >> 32) % kLongRememberedOnceIn == 0;
  uint8_t known = old_heat;
  if (known == Heat::kNone && remembers) known = keys.Take(hash);
  const uint32_t random = static_cast<uint32_t>(random64);
  heat.Set(offset, known == Heat::kNone ? Heat::kUsedOnce : heat.After(known, 1, random));
  uses_.fetch_add(1, std::memory_order_relaxed);
}

void Eviction::Evicted(KeyHash hash, uint8_t item_heat, uint64_t version) {
  keys.Remember(hash, item_heat);
  items_evicted.fetch_add(1, std::memory_order_relaxed);
  last_evicted_version.store(version, std::memory_order_relaxed);
}

bool Eviction::Cool() {
  const uint64_t mean = mean_bytes_.load(std::memory_order_relaxed) / kMeanOf;
  const uint64_t items = std::max<uint64_t>(heap_bytes_ / std::max<uint64_t>(mean, 1), 64);
  // One unit is due for all heats after this many uses.
  const uint64_t uses_per_unit = items * kHalvedAfter / Heat::kUnitsPerDoubling;
  const uint64_t uses = uses_.load(std::memory_order_relaxed) - uses_cooled_;
  const uint64_t due = static_cast<uint64_t>(static_cast<double>(uses) / uses_per_unit *
                                             static_cast<double>(heat.words()));
  const uint64_t words = std::min(due, kCoolWordsMax);
  if (words == 0) return false;
  heat.Cool(words);
  keys.Cool(words * keys.words() / heat.words());
  uses_cooled_ += static_cast<uint64_t>(static_cast<double>(words) /
                                        static_cast<double>(heat.words()) * uses_per_unit);
  return words < due;
}

}  // namespace gannet
