#ifndef GANNET_TESTS_MODEL_LOOKUP_WRITER_H_
#define GANNET_TESTS_MODEL_LOOKUP_WRITER_H_

#include "tests/model/lookup_model.h"

namespace gannet::model::lookup {

// The content that a bucket's checksum covers. Two contents are equal only if all their words are.
uint16_t BucketContent(const std::array<uint16_t, kWords>& words, int bucket);

// Read, from a bucket's second word, the pair's counter, and whether the home says that its tag is
// in the stash.
uint16_t MovesOf(uint16_t meta);
bool StashTagOf(uint16_t meta);

// The commit word of a live item.
uint16_t LiveCommit(uint16_t key_word, uint16_t value);
bool IsLive(uint16_t commit);
constexpr uint16_t KeyContent(Key key) { return key + 1; }
constexpr uint16_t SlotContent(int block) { return block + 1; }

// Turns an operation into its stores. So the order of every write of the server is in one place.
// Each method returns the state after the operation was planned and before its first store.
class Writer {
 public:
  using State = LookupModel::State;

  Writer(const Rules& rules, const State& state) : rules_(rules), before_(state), after_(state) {}

  // REQUIRES: the key is absent (Insert) or present (all others), `block` is free, and the
  // destination bucket has a free slot.
  State Insert(Key key, Bucket bucket, int block);
  State Delete(Key key);
  State ReplaceInPlace(Key key);
  State ReplaceOutOfPlace(Key key, int block);
  State MoveInWindow(Key key);
  State MoveToStash(Key key);
  State MoveFromStash(Key key, Bucket to);
  // The variant that frees too early: X, which is elsewhere, gets K's old block before K's slot
  // changes.
  State ReplaceOutOfPlaceFreeingEarly(int block);

  static int FreeSlot(const State& state, int bucket);  // -1: full
  static bool BlockFree(const State& state, int block);

 private:
  // A publication of a bucket: its slot, its second word and its checksum.
  struct Change {
    int slot = -1;  // none
    uint16_t slot_content = 0;
    bool bump = false;
    bool tag_follows = false;  // the stash tag becomes what the stash now holds
  };
  void Publish(int bucket, const Change& change);
  void PublishStashTag();
  void WriteContent(Key key, int block, uint16_t value);
  void SetLive(Key key, int block);
  void SetDead(int block);
  void Store(Word word, uint16_t value, uint16_t truth = LookupModel::kSameTruth);
  void Fence() { ++group_; }
  void FenceBetweenPublications() { group_ += rules_.fence_between_publications; }
  State Finish();

  const Rules& rules_;
  const State& before_;
  State after_;  // as if all was stored; gives the plan and the places
  uint8_t group_ = 0;
};

}  // namespace gannet::model::lookup

#endif  // GANNET_TESTS_MODEL_LOOKUP_WRITER_H_
