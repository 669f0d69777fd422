#ifndef GANNET_TESTS_MODEL_TIER_READ_MODEL_H_
#define GANNET_TESTS_MODEL_TIER_READ_MODEL_H_

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace gannet::model::tier_read {

// Buffers into which the disk is read (docs/decisions/2026-11-29-tier.md, rules 5 to 7). Two GETs
// of two keys share one buffer. The disk fills the buffer when a read completes; the server proves
// what is there; the NIC WRITEs it to the client, which takes a moment of its own. A GET may be
// given up at any time, as its deadline comes or its client dies.
//
// What is to hold: a client gets its key's value, and no read changes an item.
struct ReadRules {
  // A buffer is used again when the disk, and the NIC, have done with it, whoever gave up.
  bool waits_for_disk = true;
  bool waits_for_nic = true;
  // The WRITE comes out of what was proved.
  bool proves_before_write = true;
  // Reads end in buffers outside of the region. If not, they outlive a kill: the next process has
  // items where its predecessor reads. And the disk's blocks are longer than the item's.
  bool own_buffers = true;
};

struct ReadScenario {
  bool kills = false;       // a kill -9 with a memory file
  bool blocks_fit = false;  // the disk's blocks are no longer than the item's
};

class TierReadModel {
 public:
  static constexpr int kGets = 2;
  static constexpr uint8_t kNobody = 0xff;
  // Contents: that of GET g's record is g.
  static constexpr uint8_t kNothing = 2;
  static constexpr uint8_t kItem = 3;

  enum class Get : uint8_t { kWaits, kReads, kProved, kDone };
  struct Reader {
    Get phase;
    uint8_t disk;  // its read is under way
    uint8_t nic;   // its WRITE is under way
    uint8_t got;   // by its client
  };
  struct State {
    std::array<Reader, kGets> gets;
    uint8_t holder;     // of the buffer, or kNobody
    uint8_t buffer;     // what is in it
    uint8_t neighbour;  // what is behind it, if it lies in the region
    uint8_t killed;
  };

  TierReadModel(const ReadRules& rules, const ReadScenario& scenario)
      : rules_(rules), scenario_(scenario) {}

  using Emit = std::function<void(const char* label, const State&)>;
  std::vector<State> Initial() const;
  void Next(const State& state, const Emit& emit) const;
  const char* Broken(const State& state) const;
  const char* BrokenAtRest(const State& state) const;

 private:
  void Steps(const State& state, uint8_t g, const Emit& emit) const;
  void DiskAndNic(const State& state, uint8_t g, const Emit& emit) const;
  void Kill(const State& state, const Emit& emit) const;
  // Gives the buffer back, if it may be used again.
  void Give(State* state, uint8_t g) const;

  const ReadRules rules_;
  const ReadScenario scenario_;
};

}  // namespace gannet::model::tier_read

#endif  // GANNET_TESTS_MODEL_TIER_READ_MODEL_H_
