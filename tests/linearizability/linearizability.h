#ifndef GANNET_TESTS_LINEARIZABILITY_LINEARIZABILITY_H_
#define GANNET_TESTS_LINEARIZABILITY_LINEARIZABILITY_H_

#include <cstdint>
#include <limits>
#include <span>
#include <string>

namespace gannet::linearizability {

// Decides whether what clients saw of one key could have happened one operation at a time, each at
// a moment between its call and its return (Herlihy & Wing). A key starts absent.
//
// The search is Wing & Gong's in Lowe's form: walk the calls and returns in time, keep the set of
// all (value, pending operations already taken effect) that fit so far; it is empty when no order
// fits. Operations that only look are taken as soon as they fit. With c clients the set is at most
// about c * 2^c, and mostly a handful. A write of unknown outcome stays pending to the end of the
// history, or until its `until_ns`: few histories with many of them can be decided without that.
//
// A store that evicts may turn any value into a miss. The search takes such a step only where a
// return asks for it. So a miss is always explained; an older value, or one that nobody wrote, is
// not, and neither is a value that comes back after a miss.

enum class Kind : uint8_t {
  kGet,
  kPut,
  kDelete,
  kCompareAndSet,
  kReplace,           // a PUT that is refused if the key is absent
  kCompareAndDelete,  // a conditional DELETE; of unknown outcome also an item's expiry
  kClear,             // absent afterwards, whatever was there: a server that lost its memory
};

enum class Outcome : uint8_t {
  kDone,  // GET: `found` and `value` are the answer; PUT: applied; DELETE: `found` is the answer;
          // compare-and-set: applied
  kRefused,  // compare-and-set or -delete: the value was not `expected`; replace: the key was
             // absent; nothing was changed
  kUnknown,  // a write that may have been applied at any time since its call until `until_ns`, or
             // never
};

inline constexpr uint64_t kAbsent = 0;
inline constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

struct Operation {
  uint32_t client = 0;
  Kind kind = Kind::kGet;
  uint64_t value = kAbsent;     // read or to be written; each written value is unique, not 0
  uint64_t expected = kAbsent;  // compare-and-...: the value that must be there; 0 = absent
  bool found = false;
  int64_t invoke_ns = 0;
  int64_t respond_ns = kNever;  // ignored when kUnknown
  Outcome outcome = Outcome::kDone;
  // Of kUnknown: when all who could apply it were gone, as a server that was killed.
  int64_t until_ns = kNever;
};

// "client 3: PUT 17 [1000, 2000]"
std::string ToString(const Operation& operation);

// What the store itself may do to a key.
enum class Evictions : uint8_t {
  kNone,
  kAnyTime,  // delete it, at any moment and any number of times; no client hears of it
};

// True when the history of one key is linearizable. Otherwise `*why` says at which return no order
// was left, and what was pending there. GETs of unknown outcome are ignored.
// False too when the history itself is wrong: a value written twice, a return before its call, or
// more than 64 operations pending at once.
bool Check(std::span<const Operation> history, std::string* why);
bool Check(std::span<const Operation> history, Evictions evictions, std::string* why);

}  // namespace gannet::linearizability

#endif  // GANNET_TESTS_LINEARIZABILITY_LINEARIZABILITY_H_
