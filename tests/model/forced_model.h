#ifndef GANNET_TESTS_MODEL_FORCED_MODEL_H_
#define GANNET_TESTS_MODEL_FORCED_MODEL_H_

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace gannet::model::forced {

// Whom an operator forces if etcd has lost a group and its primary is dead (docs/group-recovery.md,
// "A register that is lost", 7): the best of those that say that they live.
//
// A primary, two backups, a third member that may take over and dies before it takes clients, and a
// write. Of the primary's removals, the backups hear late or never.
//
// What is to hold: as long as a backup lives that is in sync, the one that is forced has what was
// acknowledged.
struct ForcedRules {
  bool says_what_came = true;  // what a backup has in its ring counts, too, applied or not
  bool says_it_again = true;   // when that changes. The operator waits for that
  bool out_is_worse = true;    // a backup that knows that it was taken out is worse than any other
};

class ForcedModel {
 public:
  static constexpr int kBackups = 2;
  struct Backup {
    uint8_t alive;
    uint8_t linked;  // to the primary, or the ring is as it was when that died
    uint8_t came;    // the write is in its ring
    uint8_t applied;
    // As it knows, and as its note says.
    uint8_t epoch;
    uint8_t in_sync;
    uint8_t noted;  // there is a note
    uint8_t says;   // the note: it has the write
  };
  struct State {
    std::array<Backup, kBackups> backups;
    uint8_t primary;  // it lives
    uint8_t written;
    uint8_t acknowledged;
    uint8_t epoch;    // the register's
    uint8_t in_sync;  // the same, of the backups
    uint8_t lost;     // the register is
    uint8_t died;     // a backup has
    uint8_t broken;
  };

  explicit ForcedModel(const ForcedRules& rules) : rules_(rules) {}

  using Emit = std::function<void(const char* label, const State&)>;
  std::vector<State> Initial() const;
  void Next(const State& state, const Emit& emit) const;
  const char* Broken(const State& state) const;
  const char* BrokenAtRest(const State&) const { return nullptr; }

 private:
  static void PrimarySteps(const State& state, const Emit& emit);
  void BackupSteps(const State& state, int b, const Emit& emit) const;
  void Force(const State& state, const Emit& emit) const;
  uint8_t WhatItSays(const Backup& backup) const;

  const ForcedRules rules_;
};

}  // namespace gannet::model::forced

#endif  // GANNET_TESTS_MODEL_FORCED_MODEL_H_
