#ifndef GANNET_TESTS_MODEL_TIER_MODEL_H_
#define GANNET_TESTS_MODEL_TIER_MODEL_H_

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace gannet::model::tier {

// A disk behind the memory (docs/decisions/2026-11-29-tier.md): one key, whose value is in memory
// or in a record on the disk, to which a stub leads. Two segments with room for one record each,
// two GETs, and one thread that writes to the disk.
//
// What a client READs is in lookup_model.h and large_model.h. So changes of the key are single
// steps here, as they happen under its lock. The buffers of reads are in tier_read_model.h.
//
// What is to hold:
//   - a GET answers what the key was at a moment between its begin and its end. An eviction is a
//     deletion at its moment;
//   - the key has at most one item, and what memory or the stub's record says is its value;
//   - unless the disk lies, the record of each stub is on the disk, over restarts, too, and no
//     stub is deleted whose record was read.
struct TierRules {
  // 1. The seal of a stub proves no item.
  bool stub_proves_no_item = true;
  // 3. The item becomes a stub when its write has completed, if its version is still the same.
  bool write_completes_first = true;
  bool compares_versions = true;
  // 4. A record is proved by its key and its own version, which a touch does not change.
  bool proves_records = true;
  bool by_its_own_version = true;
  // 6. A promotion replaces that stub, and nothing else. A record counts as there, without another
  // write, until its segment is taken again.
  bool promotes_that_stub_only = true;
  bool promotes_stubs_only = true;
  bool forgets_taken_records = true;
  // 7. A GET joins a read of the same record. Or it joins one of the same key, and looks again when
  // that has ended: both are right. A miss is answered when the stub is deleted.
  bool joins_by_record = true;
  bool looks_again = true;
  bool deletes_first = true;
  // A segment is taken again when no stub leads there, and no read of it is under way.
  bool stubs_go_first = true;
  bool waits_for_reads = true;
  // A process that takes over a memory file goes on behind the newest segment to which a stub
  // leads, and begins when the reads and writes of its predecessor have ended.
  bool goes_on_behind_stubs = true;
  bool waits_for_predecessor = true;
};

struct TierScenario {
  uint8_t versions_max = 3;  // puts and touches
  uint8_t takings_max = 2;   // of segments
  uint8_t errors_max = 0;    // reads that fail
  uint8_t lies_max = 0;      // writes that are said to have completed, and are not there
  uint8_t crashes_max = 0;   // kill -9, and a next process with the same memory and disk
  bool promotes = false;
  bool evicts = false;  // items and stubs, at any time
};

class TierModel {
 public:
  static constexpr int kSegments = 2;
  static constexpr int kGets = 2;
  // Values: that of a PUT is its version.
  static constexpr uint8_t kAbsent = 0;
  static constexpr uint8_t kOther = 6;  // another key's record, or half of one
  static constexpr uint8_t kStubsBytes = 7;

  struct Record {
    uint8_t value;
    uint8_t version;
    friend bool operator==(const Record&, const Record&) = default;
  };
  enum class Kind : uint8_t { kNone, kItem, kStub };
  struct Key {
    Kind kind;
    uint8_t value;    // of the item; of a stub: what its record is to have
    uint8_t version;  // of the item or stub
    uint8_t segment;  // of a stub
    uint8_t record;   // version of a stub's record
    friend bool operator==(const Key&, const Key&) = default;
  };
  enum class Write : uint8_t { kNone, kUnderWay, kCompleted };
  enum class Get : uint8_t { kNotBegun, kAsks, kReads, kJoined, kHasRead, kPromotes, kDone };
  struct Reader {
    Get phase;
    uint8_t seen;   // a bit for each value that the key had since the GET began
    uint8_t wrong;  // it answered another one
    Key stub;       // that it found
    Record sample;  // of the disk
  };
  struct State {
    uint8_t truth;  // the key's value
    Key key;
    uint8_t items;    // of the key
    uint8_t lost;     // a stub was deleted whose record was read
    uint8_t version;  // the last one given
    std::array<Record, kSegments> disk;
    uint8_t newest;  // the segment that is written to
    uint8_t full;
    uint8_t takings;
    Write write;
    Record writing;
    uint8_t late;  // a write of the former process is under way, of this record
    uint8_t late_segment;
    Record late_record;
    Key promoted;  // the stub that the item was; kNone: it was none
    std::array<Reader, kGets> gets;
    uint8_t errors;
    uint8_t lies;
    uint8_t crashes;
  };

  TierModel(const TierRules& rules, const TierScenario& scenario)
      : rules_(rules), scenario_(scenario) {}

  using Emit = std::function<void(const char* label, const State&)>;
  std::vector<State> Initial() const { return {State{}}; }
  void Next(const State& state, const Emit& emit) const;
  const char* Broken(const State& state) const;
  const char* BrokenAtRest(const State&) const { return nullptr; }

 private:
  void Changes(const State& state, const Emit& emit) const;
  void Writing(const State& state, const Emit& emit) const;
  void BecomesStub(const State& state, const Emit& emit) const;
  void Taking(const State& state, const Emit& emit) const;
  void Crash(const State& state, const Emit& emit) const;
  void GetSteps(const State& state, int g, const Emit& emit) const;
  void Look(State state, int g, const Emit& emit) const;
  void Sample(const State& state, int g, const Emit& emit) const;
  void EndRead(const State& state, int g, const Emit& emit) const;
  void Promote(const State& state, int g, const Emit& emit) const;
  bool Proves(const Reader& get) const;

  const TierRules rules_;
  const TierScenario scenario_;
};

}  // namespace gannet::model::tier

#endif  // GANNET_TESTS_MODEL_TIER_MODEL_H_
