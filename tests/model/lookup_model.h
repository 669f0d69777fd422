#ifndef GANNET_TESTS_MODEL_LOOKUP_MODEL_H_
#define GANNET_TESTS_MODEL_LOOKUP_MODEL_H_

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace gannet::model::lookup {

// One reader looks up a key K in an index that one writer changes, one 8-byte store at a time.
//
// The index is K's window (the home bucket and the next) and one stash bucket. The heap has three
// blocks. A second key X has the same home, the same tag and the same stash tag, so every slot may
// match. The server changes a bucket only under that bucket's lock, so a window never has more than
// one writer.
//
// Stores of one group of a Plan happen in any order, and groups happen in order (a release fence
// lies between them). So the model shows where the server needs a fence and where not.
//
// Each word of a READ is sampled at any moment between its post and its completion, in any order.
// Every READ is posted as soon as it can be. Sampling at any moment is the same as sampling just
// before some store to that word, or at the completion, so only those steps are explored.
//
// Left out, because they only make the reader see less: retries (a retry is a new lookup that began
// earlier), tags that do not match, stash tags of other keys.

// X may also be elsewhere, in a bucket that the lookup of K never sees.
enum Bucket : uint8_t { kHome, kNext, kStash, kElsewhere };
inline constexpr int kBuckets = 3;  // that have words
inline constexpr int kSlots = 1;
inline constexpr int kBlocks = 3;

// All 8-byte words. An item is its commit word, its key and its value. Only the variant that keeps
// `state` apart from the checksum uses it.
using Word = uint8_t;
inline constexpr int kBucketWords = kSlots + 2;
inline constexpr int kItemWords = 4;
inline constexpr int kWords = kBuckets * kBucketWords + kBlocks * kItemWords;
constexpr Word SlotWord(int bucket, int slot) { return bucket * kBucketWords + slot; }
constexpr Word MetaWord(int bucket) { return bucket * kBucketWords + kSlots; }
constexpr Word ChecksumWord(int bucket) { return MetaWord(bucket) + 1; }
constexpr Word CommitWord(int block) { return kBuckets * kBucketWords + block * kItemWords; }
constexpr Word KeyWord(int block) { return CommitWord(block) + 1; }
constexpr Word ValueWord(int block) { return CommitWord(block) + 2; }
constexpr Word StateWord(int block) { return CommitWord(block) + 3; }

enum Key : uint8_t { kKeyK, kKeyX };

// What the writer may do.
enum Operation : uint32_t {
  kInsertK = 1 << 0,
  kDeleteK = 1 << 1,
  kReplaceKInPlace = 1 << 2,
  kReplaceKOutOfPlace = 1 << 3,
  kMoveK = 1 << 4,       // between home and next
  kMoveKStash = 1 << 5,  // between the window and the stash
  kInsertX = 1 << 6,
  kDeleteX = 1 << 7,
  kReplaceXOutOfPlace = 1 << 8,
  kMoveX = 1 << 9,
  kMoveXStash = 1 << 10,
  kAllOperations = (1 << 11) - 1,
};

// The rules of the design. Each can be weakened.
struct Rules {
  // Of the writer.
  bool destination_first = true;  // a move: destination published before the source is cleared
  bool bump_destination = true;   // a move within the window bumps the destination's counter
  bool bump_source = true;        // ... and the source's
  bool bump_home_on_stash_move = true;  // W2
  bool bump_next_on_stash_move = true;
  bool fence_between_publications = true;
  bool bump_version = true;
  bool dead_before_slot_cleared = true;   // a delete
  bool live_after_slot_published = true;  // an insert
  bool free_after_publication = true;     // a block may be reused only after its slot is published
  uint8_t counter_values = 8;             // the pair's counter wraps; 8 is for ever in the model
  // Of the reader.
  bool bucket_checksum = true;
  bool compare_counters = true;
  bool item_checksum = true;
  bool state_in_commit_word = true;
  bool window_again = true;  // W3
  // If a slot in the stash matched but was another key's: ask the server. Reading the window again
  // does not show what happened to that slot since.
  bool ask_when_stash_matched = true;
};

struct Scenario {
  Bucket k = kHome;  // where K is at first
  bool k_present = true;
  Bucket x = kNext;
  bool x_present = false;
  uint32_t operations = kAllOperations;
  uint8_t operations_max = 2;
};

class LookupModel {
 public:
  static constexpr int kStoresMax = 16;
  static constexpr uint16_t kSameTruth = 0xffff;

  struct Store {
    Word word;
    uint8_t group;
    uint16_t value;
    uint16_t truth;  // K's value from this store on: its linearization point
  };

  struct Place {
    uint8_t present;
    uint8_t bucket;
    uint8_t slot;
    uint8_t block;
  };

  enum class Phase : uint8_t { kIdle, kWindow, kItems, kStash, kStashItems, kAgain, kDone };
  enum class Verdict : uint8_t { kNone, kHit, kMiss, kRetry, kWrongHit, kFalseMiss };

  // Widest first: the checker hashes the bytes, so there must be no padding.
  struct State {
    uint32_t sampled;                   // reader: words of the READ under way that were sampled
    std::array<uint16_t, kWords> copy;  // reader: ... and what they were
    std::array<uint16_t, kWords> memory;
    std::array<Store, kStoresMax> plan;  // writer: what is left of the operation under way
    std::array<uint16_t, 2> first;       // reader: contents of the window's buckets when READ first
    uint16_t seen;                // reader: bit v: K's value was v at some moment in the lookup
    uint16_t truth;               // K's value now, 0 = absent
    std::array<Place, 2> places;  // writer: by Key; of after the operation under way
    uint8_t plan_size;
    uint8_t operations_left;
    uint8_t next_value;
    Phase phase;
    Verdict verdict;
    uint8_t blocks;        // reader: blocks that the READ under way covers, a bit each
    uint8_t window_exact;  // reader: W1 holds for the first window
    uint8_t window_matched;
  };

  LookupModel(const Rules& rules, const Scenario& scenario) : rules_(rules), scenario_(scenario) {}

  using Emit = std::function<void(const char* label, const State&)>;
  std::vector<State> Initial() const;
  void Next(const State& state, const Emit& emit) const;
  const char* Broken(const State& state) const;
  const char* BrokenAtRest(const State&) const { return nullptr; }

 private:
  void StartOperation(const State& state, const Emit& emit) const;
  void StartInsert(const State& state, Key key, const Emit& emit) const;
  void StartWrite(const State& state, Key key, const Emit& emit) const;
  void StartMove(const State& state, Key key, const Emit& emit) const;
  bool Allowed(uint32_t operation) const { return (scenario_.operations & operation) != 0; }
  void StoreNext(const State& state, const Emit& emit) const;

  const Rules rules_;
  const Scenario scenario_;
};

}  // namespace gannet::model::lookup

#endif  // GANNET_TESTS_MODEL_LOOKUP_MODEL_H_
