#ifndef GANNET_TESTS_MODEL_LINK_RESUME_MODEL_H_
#define GANNET_TESTS_MODEL_LINK_RESUME_MODEL_H_

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace gannet::model::link_resume {

// A backup's link that goes on over another rail (docs/decisions/2026-11-29-rails.md, rules 11 to
// 14). A primary appends records and WRITEs them into the ring of its backup's link. What has
// completed is committed: the backup is the only one. It takes what is committed out of its ring,
// and says so, so that the places are used again. At any moment it may leave the link: it fences
// its end, reads the ring to its end, and goes on over another link. That may end before its
// welcome is there, and then its ring is not read. A device that is dead need not obey: what was on
// its way may still land where its ring was, and nobody is told of it.
//
// What is to hold: what is committed is in what the backup has, at each moment, as the primary may
// die then; and the stream comes to its end.
struct LinkResumeRules {
  bool fenced_first = true;    // nothing lands and is counted once the ring was read
  bool keeps_rest = true;      // what the old ring had is kept until the new one has as much
  bool from_taken = true;      // the primary begins behind what was taken, not what has completed
  bool drops_acks = true;      // completions of an old link count for nothing
  bool new_memory = true;      // each link has a ring of its own
  bool answered_first = true;  // the primary WRITEs once the backup has answered by the link
};

class LinkResumeModel {
 public:
  static constexpr uint8_t kRecords = 4, kPlaces = 2, kLinks = 3;

  struct State {
    uint8_t appended;
    uint8_t shipped;    // by the current link, as far as the primary knows of one
    uint8_t completed;  // of it
    uint8_t committed;
    uint8_t told;  // what the backup has taken, as the primary knows
    uint8_t taken;
    uint8_t kept;                       // bit r: the backup has record r of a former ring
    uint8_t keeps_to;                   // until the ring has all up to there
    uint8_t link;                       // the primary's
    uint8_t left;                       // the backup has fenced it, and read its ring
    uint8_t follows;                    // it took the link's welcome: without, it reads no ring
    uint8_t answered;                   // it answered by the link, as the primary knows
    std::array<uint8_t, kLinks> wires;  // bit r: a WRITE of record r is on its way
    std::array<uint8_t, kLinks> acks;   // bit r: its completion is on its way
    std::array<std::array<uint8_t, kPlaces>, kLinks> rings;  // record r is r + 1 at r % kPlaces
  };

  explicit LinkResumeModel(const LinkResumeRules& rules) : rules_(rules) {}

  using Emit = std::function<void(const char* label, const State&)>;
  std::vector<State> Initial() const;
  void Next(const State& state, const Emit& emit) const;
  const char* Broken(const State& state) const;
  const char* BrokenAtRest(const State& state) const;

 private:
  uint8_t RingOf(uint8_t link) const { return rules_.new_memory ? link : uint8_t{0}; }
  bool IsInRing(const State& state, uint8_t record) const {
    return state.rings[RingOf(state.link)][record % kPlaces] == record + 1;
  }
  void Primary(const State& state, const Emit& emit) const;
  void Device(const State& state, uint8_t link, const Emit& emit) const;
  void Backup(const State& state, const Emit& emit) const;

  const LinkResumeRules rules_;
};

}  // namespace gannet::model::link_resume

#endif  // GANNET_TESTS_MODEL_LINK_RESUME_MODEL_H_
