#ifndef GANNET_TESTS_MODEL_LARGE_MODEL_H_
#define GANNET_TESTS_MODEL_LARGE_MODEL_H_

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace gannet::model::large {

// Large items, whose commit word covers the header but not the value. One writer inserts, replaces,
// moves and deletes two keys, K and X, in three blocks of the heap. One reader GETs K: it READs the
// commit word of a block where K is or ever was, then the value, then the commit word again. It may
// leave out the first READ if it remembers the commit word of its last answer from that block. It
// also asks only for K's version (Exists, GetIfChanged): it READs the commit word alone, and
// believes it if it is K's, or if it is the one that it remembers.
//
// As in the update model, stores of one group happen in any order, groups happen in order, and each
// word of a READ is sampled at any moment between its post and its completion. An answer needs the
// same live commit word of K on both sides of the value.
//
// Properties: a value that is returned was K's at some moment during the GET, and is whole; a
// reader never sees versions go back.
struct LargeRules {
  bool first_header = true;        // READ before the value's READ is posted
  bool second_header = true;       // READ at all
  bool second_after_value = true;  // posted after the value's completion
  bool out_of_place = true;        // replacements; or into the old item's block, once it is dead
  bool old_dead_before_new_live = true;
  bool dead_before_reuse = true;     // a block is dead before it gets other content
  bool content_before_live = true;   // the value is complete before the commit word
  bool commit_names_placing = true;  // or only the version, which a move keeps
  bool head_names_key = true;        // asking for the version: the word must be K's, not only live
  bool same_head = true;             // asking for a remembered version: the same word, not only K's
};

class LargeModel {
 public:
  static constexpr int kBlocks = 3;
  enum ItemWord : uint8_t { kCommit, kValueFirst, kValueLast, kItemWords };
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
  enum class Phase : uint8_t { kIdle, kHeader, kValue, kConfirm, kHead, kKnownHead };
  enum class Breach : uint8_t { kNothing, kWrongValue, kTornValue, kVersionWentBack };

  // Widest first: the checker hashes the bytes, so there must be no padding.
  struct State {
    std::array<uint16_t, kWords> memory;
    std::array<Store, kStoresMax> plan;     // writer: what is left of the operation under way
    std::array<uint16_t, kItemWords> copy;  // reader: of the READ under way, where sampled
    std::array<uint16_t, 2> value;          // reader: the value's two words
    uint16_t first_commit;                  // reader: of this GET
    uint16_t remembered;                    // reader: the commit word of its last answer
    uint16_t seen;                          // reader: bit v: K's version was v during the GET
    uint16_t truth;                         // K's version now, 0 = absent
    std::array<uint8_t, 2> block_of;        // writer: by key; kNowhere = absent
    uint8_t plan_size;
    uint8_t operations_left;
    uint8_t next_version;
    uint8_t next_placing;
    uint8_t known;             // reader: blocks where K is or was, a bit each
    uint8_t reading;           // reader: the block that the GET looks at
    uint8_t remembered_block;  // reader: of its last answer
    Phase phase;
    uint8_t sampled;  // reader: words that were sampled by the READ under way
    uint8_t gets_left;
    uint8_t last_version;  // reader: of its last answer
    Breach broken;
  };

  LargeModel(const LargeRules& rules, uint8_t operations, uint8_t gets)
      : rules_(rules), operations_(operations), gets_(gets) {}

  using Emit = std::function<void(const char* label, const State&)>;
  std::vector<State> Initial() const;
  void Next(const State& state, const Emit& emit) const;
  const char* Broken(const State& state) const;
  const char* BrokenAtRest(const State&) const { return nullptr; }

 private:
  enum Key : uint8_t { kKeyK, kKeyX };

  void StoreNext(const State& state, const Emit& emit) const;
  void StartOperation(const State& state, const Emit& emit) const;
  void StartGets(const State& state, const Emit& emit) const;
  // Puts content of this version into the block, and makes it live behind `groups` other groups.
  void Place(State* state, Key key, uint8_t block, uint8_t version, bool kill_old) const;
  State Put(State state, Key key, uint8_t block) const;
  State PutOverDead(State state, Key key) const;
  State PutInPlace(State state, Key key) const;
  State Move(State state, Key key, uint8_t block) const;
  State Delete(State state, Key key) const;
  // The words that the READ under way covers.
  uint8_t Covered(const State& state) const;
  State CompleteRead(State state) const;
  State Answer(State state) const;
  State AnswerVersion(State state) const;
  bool ProvesHead(const State& state, uint16_t commit) const;
  bool IsLiveK(uint16_t commit) const;

  const LargeRules rules_;
  const uint8_t operations_;
  const uint8_t gets_;
};

}  // namespace gannet::model::large

#endif  // GANNET_TESTS_MODEL_LARGE_MODEL_H_
