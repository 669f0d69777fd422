#include "tests/simulation/tallies.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "absl/strings/str_cat.h"

namespace gannet::simulation {

std::string Tallies::NextPiece() {
  const uint32_t number = ++pieces_;
  std::string piece(sizeof(number), '\0');
  std::memcpy(piece.data(), &number, sizeof(number));
  return piece;
}

std::vector<uint32_t> Tallies::NumbersIn(std::string_view value) {
  std::vector<uint32_t> numbers(value.size() / sizeof(uint32_t));
  if (!numbers.empty()) {
    std::memcpy(numbers.data(), value.data(), numbers.size() * sizeof(uint32_t));
  }
  return numbers;
}

void Tallies::AddAppended(std::string_view piece, int64_t from_tick, int64_t to_tick) {
  appended_.push_back({NumbersIn(piece).front(), from_tick, to_tick});
}

void Tallies::AddRead(std::string_view value, int64_t from_tick, int64_t to_tick) {
  reads_.push_back({NumbersIn(value), from_tick, to_tick});
}

void Tallies::BeginAnew() {
  pieces_ = 0;
  uncertain_ = 0;
  counted_.clear();
  appended_.clear();
  reads_.clear();
  restarts_.clear();
}

size_t Tallies::RunOf(int64_t tick) const {
  return static_cast<size_t>(std::upper_bound(restarts_.begin(), restarts_.end(), tick) -
                             restarts_.begin());
}

void Tallies::Check() {
  for (size_t run = 0; run <= restarts_.size(); ++run) {
    CheckCounter(run);
    CheckValue(run);
  }
}

void Tallies::CheckCounter(size_t run) {
  std::vector<Counted> counted;
  std::copy_if(counted_.begin(), counted_.end(), std::back_inserter(counted),
               [&](const Counted& c) { return IsIn(c, run); });
  std::sort(counted.begin(), counted.end(),
            [](const Counted& a, const Counted& b) { return a.version < b.version; });
  for (size_t i = 1; i < counted.size(); ++i) {
    if (counted[i].number > counted[i - 1].number) continue;
    run_->Fail(Check::kOnce, absl::StrCat("the counter was ", counted[i - 1].number, " and later ",
                                          counted[i].number));
  }
  // Those that span two runs may have happened in either.
  const auto may_have =
      static_cast<uint64_t>(std::count_if(counted_.begin(), counted_.end(), [&](const Counted& c) {
        return RunOf(c.from_tick) <= run && run <= RunOf(c.to_tick);
      }));
  if (counted.empty()) return;
  if (static_cast<uint64_t>(counted.back().number) <= may_have + uncertain_) return;
  run_->Fail(Check::kOnce,
             absl::StrCat("the counter is ", counted.back().number, ", but only ", may_have,
                          " increments were answered, and ", uncertain_, " are uncertain"));
}

void Tallies::CheckValue(size_t run) {
  std::vector<uint32_t> longest;
  for (const Read& read : reads_) {
    if (IsIn(read, run) && read.numbers.size() > longest.size()) longest = read.numbers;
  }
  if (std::set<uint32_t>(longest.begin(), longest.end()).size() != longest.size()) {
    run_->Fail(Check::kOnce, "a piece was appended twice");
  }
  for (const Read& read : reads_) {
    if (!IsIn(read, run)) continue;
    if (!std::equal(read.numbers.begin(), read.numbers.end(), longest.begin())) {
      run_->Fail(Check::kOnce, "two reads of the growing value do not fit together");
    }
    for (const Piece& piece : appended_) {
      if (!IsIn(piece, run) || piece.to_tick >= read.from_tick) continue;
      if (std::find(read.numbers.begin(), read.numbers.end(), piece.number) != read.numbers.end()) {
        continue;
      }
      run_->Fail(Check::kOnce,
                 absl::StrCat("piece ", piece.number, " was appended by tick ", piece.to_tick,
                              ", but was not there at ", read.from_tick));
    }
  }
}

}  // namespace gannet::simulation
