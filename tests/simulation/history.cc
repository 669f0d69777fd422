#include "tests/simulation/history.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "absl/strings/str_cat.h"
#include "common/base/hash.h"
#include "tests/simulation/simulated_client.h"

namespace gannet::simulation {
namespace {

using linearizability::Kind;

constexpr uint32_t kPatternShifts = 4096;

// Values are pieces of one text without repetitions, which makes them cheap to create and compare.
const std::string& Pattern() {
  static const std::string pattern = [] {
    std::string text(History::kValueBytesMax + kPatternShifts, '\0');
    for (size_t i = 0; i + 8 <= text.size(); i += 8) {
      const uint64_t word = Mix64(i + 1);
      std::memcpy(text.data() + i, &word, sizeof(word));
    }
    return text;
  }();
  return pattern;
}

std::string_view PieceOf(uint32_t id, uint32_t bytes) {
  return std::string_view(Pattern()).substr(Mix64(id) % kPatternShifts, bytes);
}

}  // namespace

std::string History::ValueOf(uint32_t id, uint32_t bytes) {
  return std::string(PieceOf(id, bytes));
}

void History::CheckValue(uint32_t id, uint32_t bytes, std::string_view value) {
  if (id == 0 || id > writes_) {
    return run_->Fail(Check::kValues, absl::StrCat("an item of write ", id, ", which nobody made"));
  }
  if (bytes > kValueBytesMax || value != PieceOf(id, bytes).substr(0, value.size())) {
    run_->Fail(Check::kValues, absl::StrCat("the value of write ", id, ", ", bytes,
                                            " bytes, is not what was written"));
  }
}

bool History::Begin(uint32_t key, bool write) {
  Key& of = keys_[key];
  if (key < checked_) {
    if (write && (of.writes == kWritesAtOnceMax || of.unknown >= kUnknownMax)) return false;
    if (of.writes + of.others == kOperationsAtOnceMax) return false;
  }
  ++(write ? of.writes : of.others);
  return true;
}

void History::End(uint32_t key, bool write) {
  Key& of = keys_[key];
  --(write ? of.writes : of.others);
}

void History::AddApplied(uint32_t client, uint32_t key, uint64_t number, uint64_t version,
                         uint32_t id) {
  keys_[key].applied[client].push_back({number, version});
  AddVersion(key, version, id);
}

void History::AddVersion(uint32_t key, uint64_t version, uint32_t id) {
  version_of_id_[id] = version;
  const auto [known, first] = id_of_version_.try_emplace({several_groups_ ? key : 0, version}, id);
  if (!first && known->second != id) {
    run_->Fail(Check::kVersionsUnique, absl::StrCat("version ", version, " is of write ",
                                                    known->second, " and of write ", id));
  }
}

void History::AddExpiry(uint32_t key, uint32_t id, int64_t not_before_tick) {
  Add(key, {.kind = Kind::kCompareAndDelete,
            .expected = id,
            .invoke_ns = not_before_tick,
            .outcome = linearizability::Outcome::kUnknown});
}

void History::AddEviction(std::string_view key, uint32_t id, bool expires) {
  for (uint32_t i = 0; i < checked_; ++i) {
    if (KeyName(i) != key) continue;
    run_->Note(absl::StrCat("key ", i, " is evicted, of write ", id));
    const int64_t tick = run_->Tick();
    if (expires) return AddExpiry(i, id, tick);
    Add(i, {.kind = Kind::kCompareAndDelete,
            .expected = id,
            .found = true,
            .invoke_ns = tick,
            .respond_ns = run_->Tick()});
  }
}

void History::CheckAlive(uint32_t id, int64_t tick) {
  const auto death = death_of_id_.find(id);
  if (death == death_of_id_.end() || tick <= death->second) return;
  run_->Fail(Check::kExpiry, absl::StrCat("write ", id, " was read at tick ", tick,
                                          ", but was past its time to live at ", death->second));
}

void History::AddRestart(int64_t from_tick, int64_t to_tick) {
  restarts_.push_back(from_tick);
  tallies_.AddRestart(from_tick);
  for (uint32_t key = 0; key < checked_; ++key) {
    Add(key, {.kind = Kind::kClear, .invoke_ns = from_tick, .respond_ns = to_tick});
  }
}

size_t History::AddAcquired(uint32_t key, uint32_t client, uint64_t word, int64_t asked,
                            int64_t told) {
  acquisitions_.push_back({key, client, word, asked, told, told, false});
  return acquisitions_.size() - 1;
}

void History::AddHeldUntil(size_t acquisition, int64_t tick) {
  Acquisition& held = acquisitions_[acquisition];
  held.until = std::max(held.until, tick);
  held.held = true;
}

// With many writes under way at once there are too many orders to try. But the versions give the
// order in which the server applied them, so each write took effect before any later one returned.
std::vector<Operation> History::Prepared(uint32_t key) const {
  std::vector<Operation> operations = keys_[key].operations;
  std::set<uint64_t> seen;
  for (const Operation& op : operations) {
    if (op.outcome != linearizability::Outcome::kDone) continue;
    if (op.kind == Kind::kGet && op.found) seen.insert(op.value);
    if (op.expected != linearizability::kAbsent) seen.insert(op.expected);
  }
  std::map<std::pair<size_t, uint64_t>, Operation*> by_version;
  for (Operation& op : operations) {
    const bool unknown = op.outcome == linearizability::Outcome::kUnknown;
    if (unknown && op.kind == Kind::kCompareAndDelete && !seen.contains(op.expected) &&
        !version_of_id_.contains(static_cast<uint32_t>(op.expected))) {
      // The expiry of a write that nobody saw, and that may not have happened.
      op = {.kind = Kind::kDelete,
            .invoke_ns = op.invoke_ns,
            .outcome = linearizability::Outcome::kUnknown};
    }
    const bool writes =
        op.kind == Kind::kPut || op.kind == Kind::kCompareAndSet || op.kind == Kind::kReplace;
    if (unknown || !writes) continue;
    const auto run_of = [this](int64_t tick) {
      return std::lower_bound(restarts_.begin(), restarts_.end(), tick) - restarts_.begin();
    };
    const auto version = version_of_id_.find(static_cast<uint32_t>(op.value));
    if (op.outcome != linearizability::Outcome::kDone || version == version_of_id_.end()) continue;
    if (run_of(op.invoke_ns) != run_of(op.respond_ns)) continue;
    by_version[{run_of(op.invoke_ns), version->second}] = &op;
  }
  size_t run = 0;
  int64_t limit = 0;
  for (auto it = by_version.rbegin(); it != by_version.rend(); ++it) {
    Operation& op = *it->second;
    if (it == by_version.rbegin() || it->first.first != run) limit = op.respond_ns;
    run = it->first.first;
    limit = std::min(limit, op.respond_ns);
    op.respond_ns = std::max(limit, op.invoke_ns);
  }
  return operations;
}

void History::Check() {
  for (uint32_t key = 0; key < keys_.size(); ++key) {
    std::string why;
    if (!linearizability::Check(Prepared(key), &why)) {
      run_->Fail(Check::kLinearizable, absl::StrCat("key ", key, ": ", why));
    }
    CheckOrder(key);
  }
  CheckLocks();
  tallies_.Check();
}

void History::BeginPiece(std::span<const uint32_t> ids) {
  for (uint32_t key = 0; key < keys_.size(); ++key) {
    Key& of = keys_[key];
    of.operations.clear();
    of.unknown = 0;
    for (auto& [client, applied] : of.applied) {
      if (applied.size() > 1) applied.erase(applied.begin(), applied.end() - 1);  // sorted by Check
    }
    if (ids[key] == 0) continue;
    const int64_t tick = run_->Tick();
    Add(key,
        {.kind = Kind::kPut, .value = ids[key], .invoke_ns = tick, .respond_ns = run_->Tick()});
  }
}

void History::CheckOrder(uint32_t key) {
  for (auto& [client, applied] : keys_[key].applied) {
    std::sort(applied.begin(), applied.end(),
              [](const Applied& a, const Applied& b) { return a.number < b.number; });
    for (size_t i = 1; i < applied.size(); ++i) {
      if (applied[i].version > applied[i - 1].version) continue;
      run_->Fail(Check::kWritesInOrder,
                 absl::StrCat("client ", client, "'s write ", applied[i].number, " of key ", key,
                              " has version ", applied[i].version, ", its write ",
                              applied[i - 1].number, " before it ", applied[i - 1].version));
    }
  }
}

// Clients know acquisitions by their places, so the order stays.
void History::CheckLocks() {
  std::vector<Acquisition> acquisitions = acquisitions_;
  std::sort(acquisitions.begin(), acquisitions.end(),
            [](const Acquisition& a, const Acquisition& b) { return a.from < b.from; });
  std::map<uint32_t, Acquisition> last;  // by key: the acquisition held longest so far
  for (const Acquisition& acquired : acquisitions) {
    const auto before = last.find(acquired.key);
    // One that was not held later was acquired while another was held if all of its time is there.
    const bool excluded = before != last.end() && before->second.until > acquired.from &&
                          (acquired.held || before->second.from < acquired.asked);
    if (excluded) {
      run_->Fail(
          Check::kLocksExclude,
          absl::StrCat("key ", acquired.key, " was locked by client ", acquired.client, " at ",
                       acquired.from, " while client ", before->second.client, " held it, from ",
                       before->second.from, " to ", before->second.until));
    }
    if (!acquired.held) continue;
    if (before == last.end() || acquired.until >= before->second.until) {
      last[acquired.key] = acquired;
    }
  }
}

}  // namespace gannet::simulation
