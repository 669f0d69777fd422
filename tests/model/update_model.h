#ifndef GANNET_TESTS_MODEL_UPDATE_MODEL_H_
#define GANNET_TESTS_MODEL_UPDATE_MODEL_H_

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace gannet::model::update {

// One writer inserts, replaces, moves and deletes two keys, K and X, in three blocks of the heap.
// One reader GETs K twice, each time by one READ of a block where K is or ever was: it remembers
// the location, or has just found it in a slot. A READ that does not prove K's item gives no answer
// (the client goes on to the window, which is the lookup model).
//
// As in the lookup model, stores of one group happen in any order, groups happen in order, and each
// word of a READ is sampled at any moment between its post and its completion.
//
// Properties: a value that is returned was K's at some moment during the GET; a reader never sees
// versions go back; at most one live item of K exists at any time.
struct UpdateRules {
  bool old_dead_before_new_live = true;
  bool item_checksum = true;
  bool state_in_commit_word = true;
  bool acknowledge_last = true;       // a write is not done before its commit word says so
  bool content_before_commit = true;  // replace in place
  bool mark_dead_on_delete = true;    // or only clear the slot
  bool mark_dead_on_move = true;      // the block that the item left; else it is freed as it is
  // False: check only what a reader sees, not the cause.
  bool count_live_items = true;
};

class UpdateModel {
 public:
  static constexpr int kBlocks = 3;
  enum ItemWord : uint8_t { kCommit, kKey, kValueFirst, kValueLast, kLiveState, kItemWords };
  static constexpr int kWords = kBlocks * kItemWords;
  static constexpr int kStoresMax = 8;
  static constexpr uint8_t kNowhere = 0xff;
  static constexpr uint16_t kSameTruth = 0xffff;

  struct Store {
    uint8_t word;
    uint8_t group;
    uint16_t value;
    uint16_t truth;
  };

  enum class Breach : uint8_t { kNothing, kWrongValue, kTornValue, kVersionWentBack };

  // Widest first: the checker hashes the bytes, so there must be no padding.
  struct State {
    std::array<uint16_t, kWords> memory;
    std::array<Store, kStoresMax> plan;     // writer: what is left of the operation under way
    std::array<uint16_t, kItemWords> copy;  // reader: of the READ under way, where sampled
    uint16_t seen;                          // reader: bit v: K's version was v during the GET
    uint16_t truth;                         // K's version now, 0 = absent
    std::array<uint8_t, 2> block_of;        // writer: by key; kNowhere = absent
    uint8_t plan_size;
    uint8_t operations_left;
    uint8_t next_version;
    uint8_t known;    // reader: blocks where K is or was, a bit each
    uint8_t reading;  // reader: the block being READ, kNowhere = none
    uint8_t sampled;  // reader: words of it that were sampled
    uint8_t gets_left;
    uint8_t last_version;  // reader: of its last answer
    Breach broken;
    uint8_t unused;
  };

  UpdateModel(const UpdateRules& rules, uint8_t operations, uint8_t gets)
      : rules_(rules), operations_(operations), gets_(gets) {}

  using Emit = std::function<void(const char* label, const State&)>;
  std::vector<State> Initial() const;
  void Next(const State& state, const Emit& emit) const;
  const char* Broken(const State& state) const;
  const char* BrokenAtRest(const State& state) const;

 private:
  enum Key : uint8_t { kKeyK, kKeyX };

  void StartOperation(const State& state, const Emit& emit) const;
  void StoreNext(const State& state, const Emit& emit) const;
  State Insert(State state, Key key, uint8_t block) const;
  State ReplaceInPlace(State state, Key key) const;
  State ReplaceOutOfPlace(State state, Key key, uint8_t block) const;
  // Puts the same content, with the same version, into another block.
  State Move(State state, Key key, uint8_t block) const;
  State Delete(State state, Key key) const;
  void WriteContent(State* state, Key key, uint8_t block, uint8_t group, uint8_t version) const;
  void SetLive(State* state, Key key, uint8_t block, uint8_t group, uint8_t version) const;
  void SetDead(State* state, uint8_t block, uint8_t group, uint16_t truth) const;
  void AcknowledgeFirst(State* state) const;
  State Complete(State state) const;
  bool Proves(const std::array<uint16_t, kItemWords>& item) const;
  int LiveItemsOfK(const State& state) const;

  const UpdateRules rules_;
  const uint8_t operations_;
  const uint8_t gets_;
};

}  // namespace gannet::model::update

#endif  // GANNET_TESTS_MODEL_UPDATE_MODEL_H_
