// A bitmap, and a tree above it that knows the longest free run of each part. Taking and freeing
// change the bits, and then the nodes above them (UpdateTree).

#include "server/memory/heap/run_allocator.h"

#include <glog/logging.h>

#include <algorithm>
#include <bit>

#include "common/base/align.h"

namespace gannet {
namespace {

// For a run with an alignment, this many free runs are looked at. If it fits none of them, it gets
// one that is so long that it fits anyway.
constexpr int kRunsTried = 16;

// The bits of a range that are in one word of a bitmap.
struct WordBits {
  uint64_t word;
  uint64_t mask;
};

// Takes the bits of the first word off the range. REQUIRES: the range is not empty.
WordBits TakeWord(uint64_t* first, uint64_t* bits) {
  const uint64_t in_word = *first % 64;
  const uint64_t n = std::min(64 - in_word, *bits);
  const WordBits taken{*first / 64, ~uint64_t{0} >> (64 - n) << in_word};
  *first += n;
  *bits -= n;
  return taken;
}

// Keeps the bits at which `run` set bits begin. REQUIRES: 1 <= run <= 64.
uint64_t BeginsOfRuns(uint64_t word, uint64_t run) {
  for (uint64_t have = 1; have < run && word != 0;) {
    const uint64_t more = std::min(have, run - have);
    word &= word >> more;
    have += more;
  }
  return word;
}

uint32_t LongestRun(uint64_t word) {
  if (word == ~uint64_t{0}) return 64;
  if (word == 0) return 0;
  // `word` keeps the bits at which runs of n begin. A run of n + more, with more <= n, begins where
  // one of n begins and another one `more` bits behind it.
  uint32_t n = 1;
  for (uint64_t longer; (longer = word & word >> n) != 0; n *= 2) word = longer;
  for (uint32_t more = n / 2; more > 0; more /= 2) {
    const uint64_t longer = word & word >> more;
    if (longer == 0) continue;
    word = longer;
    n += more;
  }
  return n;
}

}  // namespace

RunAllocator::RunAllocator(uint64_t units)
    : units_(units),
      leaves_(std::bit_ceil((units + kWordBits - 1) / kWordBits)),
      free_(leaves_),
      ends_(leaves_),
      tree_(2 * leaves_) {
  CHECK_LT(units, uint64_t{1} << 32);
  MutexLock lock(mutex_);
  if (units > 0) Mark(0, units, /*free=*/true);
}

std::optional<uint64_t> RunAllocator::Take(uint64_t units, uint64_t alignment, uint64_t end,
                                           bool also_kept) {
  CHECK(units > 0 && std::has_single_bit(alignment)) << "no run of units";
  MutexLock lock(mutex_);
  if (!also_kept && free_units_ < units + kept_units_) return std::nullopt;
  const auto first = alignment == 1 ? Find(units, 0) : FindAligned(units, alignment);
  if (!first || *first >= end) return std::nullopt;
  Mark(*first, units, /*free=*/false);
  return first;
}

bool RunAllocator::TakeAt(uint64_t first, uint64_t units) {
  if (units == 0 || units > units_ || first > units_ - units) return false;
  MutexLock lock(mutex_);
  for (uint64_t at = first, rest = units; rest > 0;) {
    const WordBits bits = TakeWord(&at, &rest);
    if ((free_[bits.word] & bits.mask) != bits.mask) return false;
  }
  Mark(first, units, /*free=*/false);
  return true;
}

void RunAllocator::Free(uint64_t first, uint64_t units) {
  MutexLock lock(mutex_);
  Mark(first, units, /*free=*/true);
}

uint64_t RunAllocator::Shrink(uint64_t first, uint64_t units) {
  MutexLock lock(mutex_);
  const uint64_t before = RunEnd(first) - first;
  if (units == before) return before;
  Mark(first + units, before - units, /*free=*/true);
  const uint64_t last = first + units - 1;
  ends_[last / kWordBits] |= uint64_t{1} << (last % kWordBits);
  return before;
}

uint64_t RunAllocator::UnitsAt(uint64_t first) const {
  MutexLock lock(mutex_);
  return RunEnd(first) - first;
}

uint64_t RunAllocator::RunEnd(uint64_t unit) const {
  uint64_t word = unit / kWordBits;
  uint64_t ends = ends_[word] & ~uint64_t{0} << (unit % kWordBits);
  while (ends == 0 && ++word < leaves_) ends = ends_[word];
  return word == leaves_ ? units_
                         : word * kWordBits + static_cast<uint64_t>(std::countr_zero(ends)) + 1;
}

RunAllocator::Range RunAllocator::WholeRuns(uint64_t unit, uint64_t units) const {
  MutexLock lock(mutex_);
  uint64_t begin = unit;
  while (begin > 0 && !IsFree(begin - 1) && !IsEnd(begin - 1)) --begin;
  while (begin > 0 && IsFree(begin - 1)) --begin;
  uint64_t end = begin;
  while (end < units_ && (end <= unit || end - begin < units)) {
    end = IsFree(end) ? FreeEnd(end) : RunEnd(end);
  }
  return {begin, end};
}

uint64_t RunAllocator::free_units() const {
  MutexLock lock(mutex_);
  return free_units_;
}

uint64_t RunAllocator::longest_free() const {
  MutexLock lock(mutex_);
  return tree_[1].longest;
}

std::optional<uint64_t> RunAllocator::Find(uint64_t units, uint64_t from) const {
  return from == 0 ? FindLowest(units) : FindIn(1, 0, leaves_ * kWordBits, units, from);
}

// What FindIn returns for the whole memory. Without a `from`, a part that has a long enough run
// has one that counts, so there is no way back up.
std::optional<uint64_t> RunAllocator::FindLowest(uint64_t units) const {
  if (tree_[1].longest < units) return std::nullopt;
  uint64_t node = 1;
  uint64_t begin = 0;
  for (uint64_t half = leaves_ * kWordBits / 2; node < leaves_; half /= 2) {
    const Node& left = tree_[2 * node];
    node *= 2;
    if (left.longest >= units) continue;
    if (left.last + tree_[node + 1].first >= units) return begin + half - left.last;
    ++node;
    begin += half;
  }
  return begin +
         static_cast<uint64_t>(std::countr_zero(BeginsOfRuns(free_[node - leaves_], units)));
}

std::optional<uint64_t> RunAllocator::FindIn(uint64_t node, uint64_t begin, uint64_t length,
                                             uint64_t units, uint64_t from) const {
  if (tree_[node].longest < units || begin + length <= from) return std::nullopt;
  if (node >= leaves_) {
    uint64_t begins = BeginsOfRuns(free_[node - leaves_], units);
    if (from > begin) begins &= ~uint64_t{0} << (from - begin);
    if (begins == 0) return std::nullopt;
    return begin + static_cast<uint64_t>(std::countr_zero(begins));
  }
  const uint64_t half = length / 2;
  if (const auto left = FindIn(2 * node, begin, half, units, from)) return left;
  const Node& left = tree_[2 * node];
  if (left.last + tree_[2 * node + 1].first >= units && begin + half - left.last >= from) {
    return begin + half - left.last;
  }
  return FindIn(2 * node + 1, begin + half, half, units, from);
}

std::optional<uint64_t> RunAllocator::FindAligned(uint64_t units, uint64_t alignment) const {
  uint64_t from = 0;
  for (int i = 0; i < kRunsTried; ++i) {
    const auto run = Find(units, from);
    if (!run) return std::nullopt;
    const uint64_t first = AlignUp(*run, alignment);
    // Does not look further than the run has to be: the rest of the memory may be free.
    from = FreeEnd(*run, first + units);
    if (first + units <= from) return first;
  }
  const auto run = Find(units + alignment - 1, 0);
  return run ? std::optional(AlignUp(*run, alignment)) : std::nullopt;
}

uint64_t RunAllocator::FreeEnd(uint64_t unit, uint64_t far_enough) const {
  uint64_t word = unit / kWordBits;
  uint64_t taken = ~free_[word] & ~uint64_t{0} << (unit % kWordBits);
  while (taken == 0 && ++word < leaves_ && word * kWordBits < far_enough) taken = ~free_[word];
  if (taken == 0) return std::min(word * kWordBits, units_);
  return word * kWordBits + static_cast<uint64_t>(std::countr_zero(taken));
}

void RunAllocator::Mark(uint64_t first, uint64_t units, bool free) {
  for (uint64_t at = first, rest = units; rest > 0;) {
    const WordBits bits = TakeWord(&at, &rest);
    DCHECK_EQ(free_[bits.word] & bits.mask, free ? 0 : bits.mask);
    free_[bits.word] ^= bits.mask;
    if (free) ends_[bits.word] &= ~bits.mask;
  }
  const uint64_t last = first + units - 1;
  if (!free) ends_[last / kWordBits] |= uint64_t{1} << (last % kWordBits);
  free_units_ += free ? units : -units;
  UpdateTree(first / kWordBits, last / kWordBits);
}

void RunAllocator::UpdateTree(uint64_t first_word, uint64_t last_word) {
  for (uint64_t word = first_word; word <= last_word; ++word) {
    tree_[leaves_ + word] = {static_cast<uint32_t>(std::countr_one(free_[word])),
                             static_cast<uint32_t>(std::countl_one(free_[word])),
                             LongestRun(free_[word])};
  }
  uint64_t lowest = (leaves_ + first_word) / 2;
  uint64_t highest = (leaves_ + last_word) / 2;
  // Mostly a few levels suffice: in larger parts there is a longer run elsewhere.
  bool changed = true;
  for (uint64_t half = kWordBits; changed && lowest > 0; lowest /= 2, highest /= 2, half *= 2) {
    changed = false;
    for (uint64_t node = lowest; node <= highest; ++node) {
      const Node& left = tree_[2 * node];
      const Node& right = tree_[2 * node + 1];
      const Node now = {left.first == half ? static_cast<uint32_t>(half) + right.first : left.first,
                        right.last == half ? static_cast<uint32_t>(half) + left.last : right.last,
                        std::max({left.longest, right.longest, left.last + right.first})};
      changed |= now != tree_[node];
      tree_[node] = now;
    }
  }
}

}  // namespace gannet
