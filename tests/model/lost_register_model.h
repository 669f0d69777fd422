#ifndef GANNET_TESTS_MODEL_LOST_REGISTER_MODEL_H_
#define GANNET_TESTS_MODEL_LOST_REGISTER_MODEL_H_

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace gannet::model {

// A group whose register is lost once while its members live: etcd has lost its data, or an
// operator has restored the register as it was at first (docs/group-recovery.md, "A register that
// is lost").
//
// What is to hold: whoever takes clients has all that was acknowledged, no two can acknowledge
// anything at a time, nobody throws the last copy away, and no empty group is founded as long as
// somebody lives who has items.
//
// Takeovers, removals and hand-overs are transactions, which may be executed at any time, also
// after their senders' deaths, but not once the register that they compare is lost. Nobody joins. A
// primary acknowledges a write when all that it counts in sync have it and follow it, which stands
// for its lease. An operator makes the group anew once all who live with items have said so, which
// stands for the time that init waits.
struct LostRegisterRules {
  bool adopts_when_answered = true;  // all who are counted have answered since the loss was seen
  bool answers_are_new = true;       // an answer from before it says nothing
  bool naming_matters = true;        // who may have named a successor adopts nothing
  bool notes_matter = true;          // nobody founds the group while a note is there
  bool epochs_matter = true;         // a register of a lower epoch is not believed
  bool restored_is_doubted = true;   // nor one of the same epoch that was there when it was lost
};

class LostRegisterModel {
 public:
  static constexpr int kNodes = 3;
  enum Role : uint8_t { kWaits, kFollows, kLeads, kOut };
  enum class Loss : uint8_t { kEmpty, kRestored };

  // Nobody names a node's second process but as founder, so a bit for each node is enough.
  struct Register {
    uint8_t present;
    uint8_t era;     // 1: after the loss
    uint8_t is_new;  // it was written after the loss
    uint8_t revision;
    uint8_t epoch;  // 0: nobody has founded the group
    uint8_t primary;
    uint8_t in_sync;
    uint8_t history;
  };
  struct Txn {
    uint8_t under_way;
    Register compares;
    Register wants;
  };
  struct Node {
    uint8_t alive;
    uint8_t process;
    uint8_t role;
    uint8_t fenced;  // it answers its primary no more
    uint8_t open;
    uint8_t has;     // the write
    uint8_t naming;  // a successor may have been named
    uint8_t saw_loss;
    uint8_t answered;  // who has, as a primary knows
    uint8_t note;
    Register known;
    Txn txn;
  };
  struct State {
    std::array<Node, kNodes> nodes;
    Register now;
    Register last;  // what it was when it was lost, of which somebody may hear later
    uint8_t lost;   // it was
    uint8_t died;   // a process has
    uint8_t made;   // an operator made the group anew
    uint8_t written;
    uint8_t acknowledged;
    uint8_t broken;
  };

  // `nodes`: a primary, and one backup or two.
  LostRegisterModel(const LostRegisterRules& rules, Loss loss, int nodes)
      : rules_(rules), loss_(loss), nodes_(nodes) {}

  using Emit = std::function<void(const char* label, const State&)>;
  std::vector<State> Initial() const;
  void Next(const State& state, const Emit& emit) const;
  const char* Broken(const State& state) const;
  const char* BrokenAtRest(const State&) const { return nullptr; }

 private:
  void PrimarySteps(const State& state, int p, const Emit& emit) const;
  void BackupSteps(const State& state, int b, const Emit& emit) const;
  void LifeSteps(const State& state, int n, const Emit& emit) const;
  void RegisterSteps(const State& state, const Emit& emit) const;
  void LossSteps(const State& state, int n, const Emit& emit) const;
  void Learn(const State& state, int n, const Register& news, const Emit& emit) const;
  bool Believes(const Node& node, const Register& now) const;

  const LostRegisterRules rules_;
  const Loss loss_;
  const int nodes_;
};

}  // namespace gannet::model

#endif  // GANNET_TESTS_MODEL_LOST_REGISTER_MODEL_H_
