#ifndef GANNET_TESTS_MODEL_GROWTH_MODEL_H_
#define GANNET_TESTS_MODEL_GROWTH_MODEL_H_

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace gannet::model::growth {

// One reader looks up a key K while the index grows: K's home is migrated from an old index to a
// new one, K is written meanwhile, and later the old index's memory is used for something else.
//
// Each index is one bucket: a slot, a second word (version and migrated flag) and a checksum. The
// heap has two blocks, each a commit word and a value; no other key is in them. What makes lookups
// right within one index is searched in lookup_model.h, so only what two indexes add is here.
//
// Every store is seen in the order of the plan. A READ samples each word at any moment between its
// post and its completion. The reader begins at any moment, knowing the old index only, both, or
// only the new one, as far as the server may have told it by then. It acknowledges the new index
// when it begins there. A reader that knows the old index only asks the server when it sees the
// flag, which ends the lookup.

inline constexpr int kGrowthIndexes = 2;  // 0 = old, 1 = new
inline constexpr int kGrowthBlocks = 2;
using GrowthWord = uint8_t;
constexpr GrowthWord GrowthSlot(int index) { return index * 3; }
constexpr GrowthWord GrowthMeta(int index) { return index * 3 + 1; }
constexpr GrowthWord GrowthChecksum(int index) { return index * 3 + 2; }
constexpr GrowthWord GrowthCommit(int block) { return kGrowthIndexes * 3 + block * 2; }
constexpr GrowthWord GrowthValue(int block) { return GrowthCommit(block) + 1; }
inline constexpr int kGrowthWords = kGrowthIndexes * 3 + kGrowthBlocks * 2;

// The rules of growth. Each can be weakened.
struct GrowthRules {
  // Of the server.
  bool copy_before_flag = true;      // the new index has the keys of a home before its flag is set
  bool migrate_before_write = true;  // a write migrates its key's home first
  bool write_to_new = true;          // a change of a migrated home goes to the new index
  bool old_slots_stay = true;        // a migrated home's old slots are not cleared
  bool all_before_switch = true;     // lookups begin at the new index only if all is migrated
  bool free_after_acknowledged = true;  // the old index's memory is reused only after that
  // Of the reader.
  bool flag_looked_at = true;       // a miss in the old index needs a home without the flag
  bool read_new_after_flag = true;  // a miss in the new one needs a READ posted after the flag
  bool bucket_checksum = true;      // a miss needs a bucket's checksum
};

class GrowthModel {
 public:
  static constexpr int kStoresMax = 12;
  static constexpr uint8_t kSameTruth = 0xff;

  struct Store {
    GrowthWord word;
    uint8_t value;
    uint8_t truth;  // K's value from this store on
  };
  enum class Phase : uint8_t { kIdle, kOld, kNew, kBoth, kItem, kDone };
  enum class Verdict : uint8_t { kNone, kHit, kMiss, kRetry, kWrongHit, kFalseMiss };
  enum class Knows : uint8_t { kOldOnly, kBoth, kNewOnly };

  struct State {
    std::array<Store, kStoresMax> plan;
    std::array<uint8_t, kGrowthWords> memory;
    std::array<uint8_t, kGrowthWords> copy;
    uint16_t sampled;
    uint8_t plan_size;
    uint8_t operations_left;
    uint8_t next_value;
    uint8_t truth;     // K's value now, 0 = absent
    uint8_t seen;      // bit v: K's value was v at some moment of the lookup
    uint8_t block;     // K's, + 1; 0 = none
    uint8_t started;   // clients may know of the new index
    uint8_t migrated;  // as the server knows it
    uint8_t switched;  // lookups begin at the new index
    uint8_t freed;     // the old index's memory was used for something else
    uint8_t item;      // reader: the block that it READs
    Phase phase;
    Verdict verdict;
    Knows knows;
  };

  GrowthModel(const GrowthRules& rules, bool k_present, uint8_t operations_max)
      : rules_(rules), k_present_(k_present), operations_max_(operations_max) {}

  using Emit = std::function<void(const char* label, const State&)>;
  std::vector<State> Initial() const;
  void Next(const State& state, const Emit& emit) const;
  const char* Broken(const State& state) const;
  const char* BrokenAtRest(const State&) const { return nullptr; }

 private:
  void StoreNext(const State& state, const Emit& emit) const;
  void StartStep(const State& state, const Emit& emit) const;
  void StartWrites(const State& state, const Emit& emit) const;
  void BeginLookup(const State& state, const Emit& emit) const;
  bool MayFree(const State& state) const;
  // Appends the stores.
  void Migrate(State* state) const;
  void Publish(State* state, int index, uint8_t slot, bool flag) const;
  void PublishSlot(State* state, uint8_t slot) const;
  // The reader's READ under way is complete.
  State Advance(State state) const;
  void AfterOld(State* state, const std::array<uint8_t, kGrowthWords>& copy) const;
  void AfterNew(State* state, const std::array<uint8_t, kGrowthWords>& copy) const;

  const GrowthRules rules_;
  const bool k_present_;
  const uint8_t operations_max_;
};

}  // namespace gannet::model::growth

#endif  // GANNET_TESTS_MODEL_GROWTH_MODEL_H_
