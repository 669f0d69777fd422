#ifndef GANNET_TESTS_MODEL_MOVED_EXPIRY_MODEL_H_
#define GANNET_TESTS_MODEL_MOVED_EXPIRY_MODEL_H_

#include <cstdint>
#include <functional>
#include <vector>

namespace gannet::model::moved_expiry {

// When an item expires whose partition moves to a group with another clock (docs/partitions.md,
// rule 15). The receiver reads its own clock, says hello, and gets a welcome with the giver's
// clock. So it knows the difference of the two, at least. It translates the expiry of what it takes
// by that. The rates of the clocks differ, or one of them is slewed: sometimes one of them goes on
// alone. The giver may get another primary, whose clock is ahead of the last one's, or behind it,
// but not behind the last time that anybody was shown. Somebody reads the key where it is served.
//
// What is to hold: who saw the item expire does not see it again. It expires not later than at the
// giver, but for what the receiver's clock has lost since, and earlier at most by a round trip, by
// the rounding, and by what that clock has gained since.
//
// The clocks count half milliseconds, and show whole ones.
struct MovedExpiryRules {
  bool translates = true;      // what is taken gets an expiry by the receiver's clock
  bool asks_first = true;      // the own clock is read before the hello, not with the welcome
  bool reads_once = true;      // and not again for a hello that is sent again
  bool rounds_down = true;     // the difference is a whole millisecond less
  bool waits = true;           // for the own clock, before the receiver is the owner
  bool behind_the_end = true;  // until it has reached what the giver's showed behind the end
  bool begins_anew = true;     // another primary of the giver has another clock
  bool goes_on = true;         // which is not behind the last time that anybody was shown
};

class MovedExpiryModel {
 public:
  static constexpr uint8_t kClockMax = 12;  // half milliseconds
  enum class Step : uint8_t { kIdle, kHello, kWelcome, kCopies, kEnded, kOwned };

  struct State {
    uint8_t giver, receiver;              // clocks
    uint8_t giver_alone, receiver_alone;  // how often a clock may still go on alone
    uint8_t fail_overs_left, touches_left, hellos_left;
    uint8_t unseen;  // by how much the giver's clock went on since it was shown; at most 1
    uint8_t expiry;  // at the giver, in milliseconds
    uint8_t seen_dead;
    Step step;
    uint8_t asked;         // the receiver's clock, read before the hello, in milliseconds
    uint8_t answer;        // what the giver's clock showed in the welcome
    uint8_t trip;          // how far the receiver's clock went on meanwhile
    uint8_t lost, gained;  // by the receiver's clock, since the welcome
    uint8_t has_difference;
    int8_t difference;
    uint8_t told;         // what a beacon showed of the giver's clock; 0: none came
    uint8_t told_behind;  // behind the end
    uint8_t has;          // the receiver has the giver's newest content
    uint8_t own_expiry;   // in milliseconds; 0: it has dropped the item
    uint8_t wrong;        // 1 lives again, 2 lives too long, 3 dies too early
  };

  explicit MovedExpiryModel(const MovedExpiryRules& rules) : rules_(rules) {}

  using Emit = std::function<void(const char* label, const State&)>;
  std::vector<State> Initial() const;
  void Next(const State& state, const Emit& emit) const;
  const char* Broken(const State& state) const;
  const char* BrokenAtRest(const State&) const { return nullptr; }

 private:
  static void Time(const State& state, const Emit& emit);
  static void Read(const State& state, const Emit& emit);
  static void GiverSteps(const State& state, const Emit& emit);
  void FailOver(const State& state, const Emit& emit) const;
  void ReceiverSteps(const State& state, const Emit& emit) const;
  // Who reads the clock once need not be shown to ask again: it changes nothing.
  bool MayAskAgain(const State& state) const { return !rules_.reads_once && state.hellos_left > 0; }
  void Welcomed(const State& state, const Emit& emit) const;
  void Take(const State& state, const Emit& emit) const;
  bool MayOwn(const State& state) const;

  const MovedExpiryRules rules_;
};

}  // namespace gannet::model::moved_expiry

#endif  // GANNET_TESTS_MODEL_MOVED_EXPIRY_MODEL_H_
