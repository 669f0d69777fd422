#include "tests/linearizability/linearizability.h"

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"

namespace gannet::linearizability {
namespace {

// A value that nobody is known to have seen. To the search all such values are the same.
constexpr uint64_t kUnseen = std::numeric_limits<uint64_t>::max();
constexpr int kSlots = 64;

// Writes of unknown outcome that nobody is known to have seen. All of one kind are alike, so the
// search counts how many it used, and takes the earliest first.
enum UnseenKind { kUnseenPut, kUnseenInsert, kUnseenDelete, kUnseenReplace, kUnseenKinds };
using UnseenCounts = std::array<uint32_t, kUnseenKinds>;

// A possible state at some moment.
struct Possibility {
  uint64_t value;
  uint64_t applied;  // slots of pending operations that took effect already
  UnseenCounts used;
};

// A set of possibilities. It drops a possibility that has used more unknown writes than another,
// all else equal: it can explain nothing more.
class PossibilitySet {
 public:
  // Returns false if it was there already, or a better one.
  bool Insert(const Possibility& p) {
    std::vector<UnseenCounts>& all = sets_[{p.value, p.applied}];
    const auto at_most = [](const UnseenCounts& a, const UnseenCounts& b) {
      return std::equal(a.begin(), a.end(), b.begin(), std::less_equal<>());
    };
    if (std::any_of(all.begin(), all.end(), [&](const auto& q) { return at_most(q, p.used); })) {
      return false;
    }
    all.erase(
        std::remove_if(all.begin(), all.end(), [&](const auto& q) { return at_most(p.used, q); }),
        all.end());
    all.push_back(p.used);
    return true;
  }

  std::vector<Possibility> All() const {
    std::vector<Possibility> all;
    for (const auto& [key, counts] : sets_) {
      for (const UnseenCounts& used : counts) all.push_back({key.first, key.second, used});
    }
    return all;
  }

 private:
  absl::flat_hash_map<std::pair<uint64_t, uint64_t>, std::vector<UnseenCounts>> sets_;
};

bool Compares(Kind kind) { return kind == Kind::kCompareAndSet || kind == Kind::kCompareAndDelete; }

bool WritesAValue(Kind kind) {
  return kind == Kind::kPut || kind == Kind::kCompareAndSet || kind == Kind::kReplace;
}

bool OnlyLooks(const Operation& op) {
  return op.kind == Kind::kGet || op.outcome == Outcome::kRefused ||
         (op.kind == Kind::kDelete && op.outcome == Outcome::kDone && !op.found);
}

// Returns whether an operation that only looks sees what it saw, if the key has `value`.
bool Fits(const Operation& op, uint64_t value) {
  if (op.kind == Kind::kGet) return value == (op.found ? op.value : kAbsent);
  if (op.kind == Kind::kDelete || op.kind == Kind::kReplace) return value == kAbsent;
  return value != op.expected;
}

// Returns whether an operation that writes can take effect. If so, `*value` becomes the new value.
bool Apply(const Operation& op, uint64_t* value) {
  const bool needs_value = op.kind == Kind::kDelete || op.kind == Kind::kReplace;
  if (needs_value && *value == kAbsent) return false;
  if (Compares(op.kind) && *value != op.expected) return false;
  *value = WritesAValue(op.kind) ? op.value : kAbsent;
  return true;
}

class Search {
 public:
  Search(std::span<const Operation> history, Evictions evictions)
      : evictions_(evictions), operations_(history.begin(), history.end()) {
    slots_.fill(nullptr);
  }

  bool Run() {
    if (!Prepare()) return false;
    possible_ = {{kAbsent, 0, {}}};
    for (const Event& event : events_) {
      if (!(event.is_return ? End(event.operation) : Call(event.operation))) return false;
    }
    return true;
  }

  const std::string& why() const { return why_; }

 private:
  struct Event {
    int64_t time_ns;
    bool is_return;
    uint32_t operation;
  };

  bool Fail(std::string why) {
    why_ = std::move(why);
    return false;
  }

  bool Prepare() {
    if (!CheckHistory()) return false;
    BoundUnknownWrites();
    for (uint32_t i = 0; i < operations_.size(); ++i) {
      const Operation& op = operations_[i];
      if (op.kind == Kind::kGet && op.outcome == Outcome::kUnknown) continue;
      events_.push_back({op.invoke_ns, false, i});
      const int64_t end_ns = op.outcome == Outcome::kUnknown ? op.until_ns : op.respond_ns;
      if (end_ns != kNever) events_.push_back({end_ns, true, i});
    }
    // Sorts calls before returns of the same time, so that such operations count as concurrent.
    std::sort(events_.begin(), events_.end(), [](const Event& a, const Event& b) {
      return std::tie(a.time_ns, a.is_return, a.operation) <
             std::tie(b.time_ns, b.is_return, b.operation);
    });
    return true;
  }

  bool CheckHistory() {
    absl::flat_hash_set<uint64_t> written;
    for (const Operation& op : operations_) {
      if (op.outcome != Outcome::kUnknown && op.respond_ns < op.invoke_ns) {
        return Fail(absl::StrCat("returned before it was called: ", ToString(op)));
      }
      if (op.until_ns < op.invoke_ns) {
        return Fail(absl::StrCat("was over before it was called: ", ToString(op)));
      }
      if (!WritesAValue(op.kind)) continue;
      if (op.value == kAbsent || op.value == kUnseen || !written.insert(op.value).second) {
        return Fail(absl::StrCat("value is not unique: ", ToString(op)));
      }
    }
    return true;
  }

  // If the value of a write of unknown outcome was seen, the write happened before that read
  // returned.
  void BoundUnknownWrites() {
    absl::flat_hash_map<uint64_t, int64_t> seen_by_ns;
    absl::flat_hash_set<uint64_t> told_apart;
    for (const Operation& op : operations_) {
      if (Compares(op.kind)) told_apart.insert(op.expected);
      if (op.outcome != Outcome::kDone) continue;
      const bool saw_a_value = op.kind == Kind::kGet ? op.found : Compares(op.kind);
      if (!saw_a_value) continue;
      const uint64_t saw = op.kind == Kind::kGet ? op.value : op.expected;
      auto [seen, first] = seen_by_ns.try_emplace(saw, op.respond_ns);
      seen->second = std::min(seen->second, op.respond_ns);
    }
    for (Operation& op : operations_) {
      if (op.outcome != Outcome::kUnknown || !WritesAValue(op.kind)) continue;
      const auto seen = seen_by_ns.find(op.value);
      if (seen != seen_by_ns.end() && seen->second >= op.invoke_ns) {
        op.outcome = Outcome::kDone;
        op.respond_ns = std::min(seen->second, op.until_ns);
      } else if (!told_apart.contains(op.value)) {
        op.value = kUnseen;
      }
    }
  }

  // Returns how the search counts it, or kUnseenKinds if the operation has a slot instead.
  static UnseenKind UnseenKindOf(const Operation& op) {
    if (op.outcome != Outcome::kUnknown || op.until_ns != kNever) return kUnseenKinds;
    if (op.kind == Kind::kDelete) return kUnseenDelete;
    if (!WritesAValue(op.kind) || op.value != kUnseen) return kUnseenKinds;
    if (op.kind == Kind::kPut) return kUnseenPut;
    if (op.kind == Kind::kReplace) return kUnseenReplace;
    const bool inserts = op.kind == Kind::kCompareAndSet && op.expected == kAbsent;
    return inserts ? kUnseenInsert : kUnseenKinds;
  }

  bool Call(uint32_t index) {
    const Operation& op = operations_[index];
    const UnseenKind unseen = UnseenKindOf(op);
    if (unseen != kUnseenKinds) {
      ++unseen_[unseen];
      return true;
    }
    const auto free = std::find(slots_.begin(), slots_.end(), nullptr);
    if (free == slots_.end()) return Fail("more than 64 operations pending at once");
    *free = &op;
    std::vector<Possibility> after;
    for (const Possibility& p : possible_) AddLooked(p, &after);
    possible_ = std::move(after);
    return true;
  }

  // Ends an operation: it returned, or is over.
  bool End(uint32_t index) {
    const Operation* op = &operations_[index];
    const auto at = std::find(slots_.begin(), slots_.end(), op);
    if (at == slots_.end()) return true;  // impossible for long
    const auto slot = static_cast<int>(at - slots_.begin());
    if (op->outcome == Outcome::kUnknown) return Over(slot);
    return Return(slot);
  }

  // From now on the operation has taken effect, or never will.
  bool Over(int slot) {
    const uint64_t bit = 1ull << slot;
    PossibilitySet after = Applied(slot);
    for (const Possibility& p : possible_) {
      if ((p.applied & bit) == 0) after.Insert(p);
    }
    possible_ = after.All();
    slots_[slot] = nullptr;
    ForgetImpossible();
    return true;
  }

  // Requires that every possibility has applied the operation by now.
  bool Return(int slot) {
    const Operation* op = slots_[slot];
    possible_before_ = std::exchange(possible_, Applied(slot).All());
    if (possible_.empty()) return Fail(Explain(*op));
    slots_[slot] = nullptr;
    if (!OnlyLooks(*op) && WritesAValue(op->kind)) returned_writes_.insert(op->value);
    ForgetImpossible();
    return true;
  }

  // Returns the possibilities in which the operation has taken effect. It is not pending in them.
  PossibilitySet Applied(int slot) const {
    const uint64_t bit = 1ull << slot;
    std::deque<Possibility> work(possible_.begin(), possible_.end());
    PossibilitySet visited;
    PossibilitySet after;
    for (; !work.empty(); work.pop_front()) {
      Possibility p = work.front();
      if ((p.applied & bit) != 0) {
        p.applied &= ~bit;
        after.Insert(p);
        continue;
      }
      std::vector<Possibility> next;
      Expand(p, &next);
      for (const Possibility& n : next) {
        if (visited.Insert(n)) work.push_back(n);
      }
    }
    return after;
  }

  // A compare-and-set of unknown outcome can take effect only while its expected value is there. If
  // that value was certainly written, but is there in no possibility, the compare-and-set will
  // never take effect, because values do not come back. Then its slot is free again.
  void ForgetImpossible() {
    for (int i = 0; i < kSlots; ++i) {
      const Operation* op = slots_[i];
      if (op == nullptr || op->outcome != Outcome::kUnknown) continue;
      if (op->kind == Kind::kReplace) continue;
      if (!returned_writes_.contains(op->expected)) continue;
      const uint64_t bit = 1ull << i;
      bool over = true;
      for (Possibility& p : possible_) {
        if (p.value != op->expected) p.applied |= bit;
        over &= (p.applied & bit) != 0;
      }
      if (!over) continue;
      for (Possibility& p : possible_) p.applied &= ~bit;
      slots_[i] = nullptr;
    }
    PossibilitySet set;
    for (const Possibility& p : possible_) set.Insert(p);
    possible_ = set.All();
  }

  // Finds everything that may take effect next.
  void Expand(const Possibility& p, std::vector<Possibility>* out) const {
    if (evictions_ == Evictions::kAnyTime && p.value != kAbsent) {
      Possibility next = p;
      next.value = kAbsent;
      AddLooked(next, out);
    }
    for (int i = 0; i < kSlots; ++i) {
      if (slots_[i] == nullptr || (p.applied >> i & 1) != 0 || OnlyLooks(*slots_[i])) continue;
      Possibility next = p;
      if (!Apply(*slots_[i], &next.value)) continue;
      next.applied |= 1ull << i;
      AddLooked(next, out);
    }
    for (const UnseenKind kind : {kUnseenPut, kUnseenInsert, kUnseenDelete, kUnseenReplace}) {
      const bool changes = kind == kUnseenPut      ? p.value != kUnseen
                           : kind == kUnseenInsert ? p.value == kAbsent
                           : kind == kUnseenDelete ? p.value != kAbsent
                                                   : p.value != kAbsent && p.value != kUnseen;
      if (p.used[kind] == unseen_[kind] || !changes) continue;
      Possibility next = p;
      ++next.used[kind];
      next.value = kind == kUnseenDelete ? kAbsent : kUnseen;
      AddLooked(next, out);
    }
  }

  // Operations that only look change nothing for the others, so this takes all that fit at once.
  void AddLooked(Possibility p, std::vector<Possibility>* out) const {
    for (int i = 0; i < kSlots; ++i) {
      if (slots_[i] != nullptr && OnlyLooks(*slots_[i]) && Fits(*slots_[i], p.value)) {
        p.applied |= 1ull << i;
      }
    }
    out->push_back(p);
  }

  std::string Explain(const Operation& op) const {
    std::string why = absl::StrCat("no order explains the return of ", ToString(op),
                                   "\nbefore it the key may have been:");
    std::vector<uint64_t> values;
    for (const Possibility& p : possible_before_) values.push_back(p.value);
    std::sort(values.begin(), values.end());
    values.erase(std::unique(values.begin(), values.end()), values.end());
    for (uint64_t value : values) {
      absl::StrAppend(&why, " ", value == kUnseen ? "(a value nobody saw)" : absl::StrCat(value));
    }
    absl::StrAppend(&why, "\npending:");
    for (const Operation* pending : slots_) {
      if (pending != nullptr) absl::StrAppend(&why, "\n  ", ToString(*pending));
    }
    return why;
  }

  const Evictions evictions_;
  std::vector<Operation> operations_;
  std::vector<Event> events_;
  std::array<const Operation*, kSlots> slots_;  // pending operations
  std::vector<Possibility> possible_;
  std::vector<Possibility> possible_before_;       // the last return, for Explain
  UnseenCounts unseen_ = {};                       // called so far
  absl::flat_hash_set<uint64_t> returned_writes_;  // values
  std::string why_;
};

}  // namespace

std::string ToString(const Operation& op) {
  std::string text = absl::StrCat("client ", op.client, ": ");
  switch (op.kind) {
    case Kind::kGet:
      absl::StrAppend(&text, "GET ", op.found ? absl::StrCat(op.value) : "(absent)");
      break;
    case Kind::kPut:
      absl::StrAppend(&text, "PUT ", op.value);
      break;
    case Kind::kDelete:
      absl::StrAppend(&text, "DELETE ", op.found ? "(found)" : "(absent)");
      break;
    case Kind::kReplace:
      absl::StrAppend(&text, "REPLACE ", op.value);
      break;
    case Kind::kCompareAndSet:
      absl::StrAppend(&text, "CAS ", op.expected, " -> ", op.value);
      break;
    case Kind::kCompareAndDelete:
      absl::StrAppend(&text, "DELETE IF ", op.expected);
      break;
    case Kind::kClear:
      absl::StrAppend(&text, "CLEAR");
      break;
  }
  if (op.outcome == Outcome::kRefused) absl::StrAppend(&text, " refused");
  if (op.outcome == Outcome::kUnknown) absl::StrAppend(&text, " unknown");
  absl::StrAppend(&text, " [", op.invoke_ns, ", ");
  if (op.outcome == Outcome::kUnknown) {
    absl::StrAppend(&text, op.until_ns == kNever ? "?]" : absl::StrCat(op.until_ns, "?]"));
  } else {
    absl::StrAppend(&text, op.respond_ns, "]");
  }
  return text;
}

bool Check(std::span<const Operation> history, std::string* why) {
  return Check(history, Evictions::kNone, why);
}

bool Check(std::span<const Operation> history, Evictions evictions, std::string* why) {
  Search search(history, evictions);
  if (search.Run()) return true;
  *why = search.why();
  return false;
}

}  // namespace gannet::linearizability
