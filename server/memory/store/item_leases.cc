// Leases begin, end, and are renewed under one mutex; clients READ the header and the words
// without it. TakeOut has the order that makes a change safe: the word goes, the generation grows,
// the end is read.

#include "server/memory/store/item_leases.h"

#include <algorithm>
#include <atomic>

#include "common/base/check.h"
#include "common/base/words.h"
#include "common/protocol/limits.h"

namespace gannet {
namespace {

// A key that was changed is barred for so many leases at first, and twice as long if it is changed
// again soon.
constexpr uint64_t kBarLeases = 10;
constexpr uint64_t kBarMsMax = 10'000;
// Bars that are over are forgotten when there are so many for each word.
constexpr uint64_t kBarsPerWord = 4;

}  // namespace

ItemLeases::ItemLeases(const Options& options)
    : options_(options),
      words_(static_cast<uint32_t>((options.memory.size() - sizeof(ItemLeaseHeader)) /
                                   sizeof(uint64_t))),
      popular_(words_) {
  GANNET_CHECK(options.lease_ms > 0 && options.lease_ms <= kItemLeaseMsMax,
               "a lease of an item has 1 to 100 ms");
  WordMutexLock lock(mutex_);
  free_.reserve(words_);
  for (uint32_t place = words_; place > 0; --place) free_.push_back(place - 1);
}

void ItemLeases::Start(uint64_t incarnation) {
  incarnation_ = incarnation;
  WordMutexLock lock(mutex_);
  StoreHeader();
}

// Release: whoever READs this header finds no word that was taken out before.
void ItemLeases::StoreHeader() {
  header_.checksum = ItemLeaseChecksum(header_, incarnation_);
  std::atomic_thread_fence(std::memory_order_release);
  StoreWords(options_.memory.data(), &header_, sizeof(header_));
}

std::byte* ItemLeases::WordAt(uint32_t place) const {
  return options_.memory.data() + ItemLeaseBytes(place);
}

bool ItemLeases::Begin(KeyHash hash, uint64_t word, uint64_t item_bytes, ServerTime now) {
  WordMutexLock lock(mutex_);
  if (free_.empty()) return false;
  const auto bar = bars_.find(hash.value());
  if (bar != bars_.end() && now < bar->second.until) return false;
  if (marks_.contains(hash.value()) || !marked_.Add(hash)) return false;
  const Mark& mark =
      marks_[hash.value()] = {.word = word, .place = free_.back(), .item_bytes = item_bytes};
  free_.pop_back();
  leased_.emplace(word, hash.value());
  leased_bytes_ += item_bytes;
  StoreWord(WordAt(mark.place), word);
  return true;
}

bool ItemLeases::Announce(KeyHash hash) {
  WordMutexLock lock(mutex_);
  return marked_.Add(hash);
}

void ItemLeases::Retract(KeyHash hash) {
  WordMutexLock lock(mutex_);
  marked_.Remove(hash);
}

// The word goes, then the generation grows, and then the end is read. A READ of the words that has
// this word still counts under a header that ends by then: the mutex keeps Renew out meanwhile.
void ItemLeases::TakeOut(Mark* mark) {
  StoreWord(WordAt(mark->place), 0);
  grows_ = true;
  free_.push_back(mark->place);
  leased_.erase(mark->word);
  leased_bytes_ -= mark->item_bytes;
  *mark = {.end = ServerTime::FromMs(header_.end_ms)};
}

void ItemLeases::Erase(Marks::iterator mark) {
  marked_.Remove(KeyHash(mark->first));
  marks_.erase(mark);
}

uint64_t ItemLeases::Change(KeyHash hash, ServerTime now) {
  WordMutexLock lock(mutex_);
  const auto it = marks_.find(hash.value());
  if (it == marks_.end()) return 0;
  Mark& mark = it->second;
  if (mark.word != 0) {
    TakeOut(&mark);
    SetBar(hash, std::max(now, mark.end));
    if (now < mark.end) {
      ++changes_;
      waited_ms_ += mark.end - now;
    }
  }
  if (now < mark.end) return mark.end - now;
  Erase(it);
  return 0;
}

// Whoever changes a key again and again would otherwise wait again and again.
void ItemLeases::SetBar(KeyHash hash, ServerTime from) {
  if (bars_.size() >= kBarsPerWord * words_) {
    absl::erase_if(
        bars_, [from](const auto& it) { return it.second.until + it.second.length_ms <= from; });
  }
  const uint64_t first_ms = std::min<uint64_t>(kBarLeases * options_.lease_ms, kBarMsMax);
  const auto [it, made] = bars_.try_emplace(hash.value(), Bar{from + first_ms, first_ms});
  if (made) return;
  Bar& bar = it->second;
  const bool soon = from < bar.until + bar.length_ms;
  bar.length_ms = soon ? std::min(2 * bar.length_ms, kBarMsMax) : first_ms;
  bar.until = from + bar.length_ms;
}

bool ItemLeases::IsMarked(KeyHash hash) const {
  WordMutexLock lock(mutex_);
  return marks_.contains(hash.value());
}

void ItemLeases::Drop(KeyHash hash) {
  if (!MayHave(hash)) return;
  WordMutexLock lock(mutex_);
  const auto it = marks_.find(hash.value());
  if (it == marks_.end()) return;
  if (it->second.word != 0) TakeOut(&it->second);
  Erase(it);
}

// Clients that have the old word still answer from their copies, whose content is the same, until
// the end. So the generation need not grow.
void ItemLeases::Moved(uint64_t from, uint64_t to) {
  WordMutexLock lock(mutex_);
  const auto it = leased_.find(from);
  if (it == leased_.end()) return;
  const uint64_t hash = it->second;
  leased_.erase(it);
  leased_.emplace(to, hash);
  Mark& mark = marks_.find(hash)->second;
  mark.word = to;
  StoreWord(WordAt(mark.place), to);
}

void ItemLeases::End(uint64_t word) {
  WordMutexLock lock(mutex_);
  const auto it = leased_.find(word);
  if (it != leased_.end()) TakeOut(&marks_.find(it->second)->second);
}

void ItemLeases::EndAll() {
  WordMutexLock lock(mutex_);
  for (auto& [hash, mark] : marks_) {
    if (mark.word != 0) TakeOut(&mark);
  }
}

std::vector<KeyHash> ItemLeases::Over(ServerTime now) const {
  std::vector<KeyHash> over;
  WordMutexLock lock(mutex_);
  if (marks_.size() == leased_.size()) return over;
  for (const auto& [hash, mark] : marks_) {
    if (mark.word == 0 && mark.end <= now) over.emplace_back(hash);
  }
  return over;
}

bool ItemLeases::Renew(ServerTime now) {
  WordMutexLock lock(mutex_);
  if (leased_.empty()) return false;
  header_.generation += grows_;
  grows_ = false;
  header_.end_ms = std::max(header_.end_ms, (now + options_.lease_ms).ms());
  StoreHeader();
  return true;
}

ServerTime ItemLeases::end() const {
  WordMutexLock lock(mutex_);
  return ServerTime::FromMs(header_.end_ms);
}

bool ItemLeases::IsLeased(uint64_t word) const {
  WordMutexLock lock(mutex_);
  return leased_.contains(word);
}

std::vector<uint64_t> ItemLeases::LeasedWords() const {
  std::vector<uint64_t> words;
  WordMutexLock lock(mutex_);
  words.reserve(leased_.size());
  for (const auto& [word, hash] : leased_) words.push_back(word);
  return words;
}

ItemLeases::Counts ItemLeases::counts() const {
  WordMutexLock lock(mutex_);
  return {.leased = leased_.size(),
          .leased_bytes = leased_bytes_,
          .changes = changes_,
          .waited_ms = waited_ms_};
}

}  // namespace gannet
