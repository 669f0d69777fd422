#ifndef GANNET_TESTS_MODEL_REMOVAL_MODEL_H_
#define GANNET_TESTS_MODEL_REMOVAL_MODEL_H_

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace gannet::model::removal {

// When a primary removes silent backups (docs/group.md, "Removal"). Backups may crash, and the
// primary's port may fail: then nobody hears it, and it hears nobody, but it still reaches the
// register. Any beacon, and any answer, may be lost, also for long in one direction only. A backup
// that heard nothing for G takes over. A transaction takes up to a step.
//
// What is to hold: a primary that nobody reaches does not remove its last backup while that lives.
struct RemovalRules {
  // If the primary heard nobody for L/2, it waits until its backups had time to take over.
  bool waits_if_it_hears_nobody = true;
  bool waits_long = true;    // for 3 G, or for G only
  bool falls_silent = true;  // after G without an answer it sends no beacon, so that they notice
};

class RemovalModel {
 public:
  static constexpr uint8_t kBackups = 2;
  static constexpr uint8_t kSlow = 4;  // clocks advance by this while kReal passes, or by kFast
  static constexpr uint8_t kReal = 4;
  static constexpr uint8_t kFast = 5;
  static constexpr uint8_t kLease = 12;
  static constexpr uint8_t kGrace = kLease * kFast / kSlow;
  static constexpr uint8_t kWait = 3 * kGrace;
  enum class Txn : uint8_t { kNone, kSent, kLate };  // kLate: it is executed before time passes

  struct Backup {
    uint8_t rate;
    uint8_t alive;
    uint8_t in_sync;
    uint8_t silence;     // since it heard the primary, by its clock
    uint8_t unanswered;  // since the primary heard it, by the primary's clock
    Txn takeover;
  };
  struct State {
    uint8_t rate;
    uint8_t port_failed;
    uint8_t deposed;
    uint8_t crashes_left;
    Txn removal;
    uint8_t removed;  // whom it removes
    uint8_t alone;    // it removed the last backup, which lives
    std::array<Backup, kBackups> backups;
  };

  explicit RemovalModel(const RemovalRules& rules) : rules_(rules) {}

  using Emit = std::function<void(const char* label, const State&)>;
  std::vector<State> Initial() const;
  void Next(const State& state, const Emit& emit) const;
  const char* Broken(const State& state) const;
  const char* BrokenAtRest(const State&) const { return nullptr; }

 private:
  void TimePasses(const State& state, const Emit& emit) const;
  void BackupSteps(const State& state, uint8_t i, const Emit& emit) const;
  bool MayRemove(const State& state, uint8_t i) const;

  const RemovalRules rules_;
};

}  // namespace gannet::model::removal

#endif  // GANNET_TESTS_MODEL_REMOVAL_MODEL_H_
