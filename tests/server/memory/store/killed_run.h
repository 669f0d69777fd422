#ifndef GANNET_TESTS_SERVER_MEMORY_STORE_KILLED_RUN_H_
#define GANNET_TESTS_SERVER_MEMORY_STORE_KILLED_RUN_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/memory/store/store.h"
#include "tests/server/memory/store/store_fixture.h"

namespace gannet {

inline constexpr uint64_t kKilledRunMs = 1'000;  // when its operations are done

// What a store has under a key.
struct KeyState {
  std::string value;  // of a stub: where it is
  uint64_t version = 0;
  ItemAttributes attributes;

  friend bool operator==(const KeyState& a, const KeyState& b) {
    return a.value == b.value && a.version == b.version &&
           a.attributes.flags == b.attributes.flags && a.attributes.expiry == b.attributes.expiry;
  }
};
using KeyStates = std::map<std::string, KeyState, std::less<>>;

// A store in a region that outlives it, as in a memory file, and random operations on it.
class KilledRun {
 public:
  struct Options {
    uint64_t region_bytes = 1 << 20;
    uint64_t index_slots = 64;
    bool index_grows = true;
    bool evict = false;
    // Values become stubs, as if they had been written to it.
    std::optional<TierOfStore> tier;
    uint32_t keys = 60;
    uint32_t value_bytes_max = 300;
    uint32_t large_bytes = 6000;  // of one value in eight; 0: none
    uint64_t seed = 1;
    uint32_t take_over_threads = 0;
  };
  // During an operation, a key has its state before it or after it.
  struct Step {
    uint32_t begin;  // stores
    uint32_t end;
    KeyStates before;
    KeyStates after;
  };

  explicit KilledRun(const Options& options);

  // Does some operations, which are not recorded.
  void Prepare(int operations);
  // Does some operations and records every store of them in `trace`.
  template <class Trace>
  void Record(int operations, const Trace& trace) {
    KeyStates before = States(*store_);
    for (int i = 0; i < operations; ++i) {
      const uint32_t begin = trace.now();
      Operate();
      KeyStates after = States(*store_);
      steps_.push_back({begin, trace.now(), before, after});
      before = std::move(after);
    }
  }

  std::span<std::byte> region() const { return region_.span(); }
  Store& store() { return *store_; }
  const std::vector<Step>& steps() const { return steps_; }
  // All keys, as a Get finds them.
  KeyStates States(Store& store) const;
  // Opens a store on a region that a process left.
  absl::StatusOr<std::unique_ptr<Store>> Open(std::span<std::byte> region, uint64_t incarnation) {
    return Open(region, incarnation, options_.tier);
  }
  absl::StatusOr<std::unique_ptr<Store>> Open(std::span<std::byte> region, uint64_t incarnation,
                                              const std::optional<TierOfStore>& tier);

  Writes& writes() { return *writes_; }

  // Ends the store in order.
  void Stop() {
    writes_ = nullptr;
    store_ = nullptr;
  }

 private:
  std::string Key(uint32_t i) const { return "key" + std::string(i % 7, '-') + std::to_string(i); }
  uint32_t Random(uint32_t below) { return static_cast<uint32_t>(random_() % below); }
  void Operate();
  void Put(const std::string& key);
  // Makes a stub of the key's item, or deletes its stub.
  void MakeStub(const std::string& key);

  const Options options_;
  std::mt19937_64 random_;
  TestRegion region_;
  std::vector<uint64_t> lock_words_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Writes> writes_;
  std::vector<Step> steps_;
};

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_MEMORY_STORE_KILLED_RUN_H_
