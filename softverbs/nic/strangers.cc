#include "softverbs/nic/strangers.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "softverbs/base/log.h"

namespace softverbs {
namespace {

constexpr size_t kMaxAtLeast = 8;
constexpr size_t kOfOneAddressAtLeast = 4;

}  // namespace

Strangers::Strangers(size_t descriptors)
    : max_(std::clamp(descriptors / 4, kMaxAtLeast, kMax)),
      of_one_address_(std::clamp(max_ / 2, kOfOneAddressAtLeast, kOfOneAddressMax)) {}

Strangers::Id Strangers::Add(const ibv_gid& from, int64_t now_ns, std::function<void()> leave) {
  Address address;
  std::copy(std::begin(from.raw), std::end(from.raw), address.begin());
  if (!MakeRoom(address, now_ns)) return 0;
  ++counts_[address];
  const Id id = ++last_id_;
  strangers_.emplace(id, Stranger{address, now_ns, std::move(leave)});
  return id;
}

// Returns false if there is none for the newcomer.
bool Strangers::MakeRoom(const Address& newcomer, int64_t now_ns) {
  const auto found = counts_.find(newcomer);
  const size_t own = found == counts_.end() ? 0 : found->second;
  if (own < of_one_address_ && strangers_.size() < max_) return true;
  const Address most = AddressWithMost();
  if (own < counts_.at(most)) {
    Drop(OldestOf(most));
    return true;
  }
  const Iterator oldest = OldestOf(newcomer);
  if (now_ns - oldest->second.since_ns < kGraceNs) return false;
  Drop(oldest);
  return true;
}

void Strangers::Remove(Id id) {
  const auto found = strangers_.find(id);
  // What the closure holds may end with it, and call Remove.
  if (found != strangers_.end()) const std::function<void()> doomed = Take(found);
}

bool Strangers::DropOne() {
  if (strangers_.empty()) return false;
  Drop(OldestOf(AddressWithMost()));
  return true;
}

// Among several addresses with the most, the one whose oldest connection is the oldest.
Strangers::Address Strangers::AddressWithMost() const {
  const auto most =
      std::max_element(counts_.begin(), counts_.end(), [](const auto& a, const auto& b) {
        return a.second < b.second;
      })->second;
  const auto oldest = std::find_if(strangers_.begin(), strangers_.end(), [&](const auto& each) {
    return counts_.at(each.second.from) == most;
  });
  return oldest->second.from;
}

Strangers::Iterator Strangers::OldestOf(const Address& from) {
  return std::find_if(strangers_.begin(), strangers_.end(),
                      [&](const auto& each) { return each.second.from == from; });
}

void Strangers::Drop(Iterator stranger) {
  Report("dropped a connection of another host that has not proven the key: others want its place");
  Take(stranger)();
}

std::function<void()> Strangers::Take(Iterator stranger) {
  const auto count = counts_.find(stranger->second.from);
  if (--count->second == 0) counts_.erase(count);
  std::function<void()> leave = std::move(stranger->second.leave);
  strangers_.erase(stranger);
  return leave;
}

}  // namespace softverbs
