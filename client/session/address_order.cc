// Addresses that the user listed stay. Those that are learned have a bounded number of places of
// their own, where a newer one takes the place of the oldest, but never of the current one.

#include "client/session/address_order.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "common/base/check.h"

namespace gannet {

AddressOrder::AddressOrder(std::vector<SocketAddress> listed)
    : listed_(listed.size()),
      addresses_(std::move(listed)),
      tried_(addresses_.size()),
      last_(SIZE_MAX) {
  GANNET_CHECK(listed_ > 0, "no address");
}

void AddressOrder::Replace(std::vector<SocketAddress> listed) {
  GANNET_CHECK(!listed.empty(), "no address");
  const auto is_new = [this](const SocketAddress& it) { return Find(it) == addresses_.size(); };
  const auto first_new = std::ranges::find_if(listed, is_new);
  if (first_new == listed.end()) return;
  const std::vector<SocketAddress> learned(addresses_.begin() + static_cast<ptrdiff_t>(listed_),
                                           addresses_.end());
  current_ = static_cast<size_t>(first_new - listed.begin());
  listed_ = listed.size();
  addresses_ = std::move(listed);
  for (const SocketAddress& it : learned) {
    if (Find(it) == addresses_.size()) addresses_.push_back(it);
  }
  learned_ = addresses_.size() - listed_;
  tried_.assign(addresses_.size(), false);
  last_ = SIZE_MAX;
}

void AddressOrder::Learn(const std::vector<SocketAddress>& members) {
  for (size_t i = addresses_.size(); i-- > listed_;) {
    const std::string text = addresses_[i].ToString();
    const auto same = [&text](const SocketAddress& it) { return it.ToString() == text; };
    if (i != current_ && i != last_ && std::ranges::none_of(members, same)) Forget(i);
  }
  for (const SocketAddress& member : members) IndexOf(member);
}

// REQUIRES: it is neither the current nor the last one.
void AddressOrder::Forget(size_t index) {
  GANNET_CHECK(index != current_ && index != last_, "the address is in use");
  addresses_.erase(addresses_.begin() + static_cast<ptrdiff_t>(index));
  tried_.erase(tried_.begin() + static_cast<ptrdiff_t>(index));
  current_ -= current_ > index;
  if (last_ != SIZE_MAX) last_ -= last_ > index;
}

void AddressOrder::Begin() { std::fill(tried_.begin(), tried_.end(), false); }

void AddressOrder::BeginBehind() {
  Begin();
  last_ = current_;
  current_ = (current_ + 1) % addresses_.size();
}

bool AddressOrder::GoOn() {
  tried_[current_] = true;
  for (size_t i = 1; i < addresses_.size(); ++i) {
    const size_t next = (current_ + i) % addresses_.size();
    if (tried_[next] || next == last_) continue;
    current_ = next;
    return true;
  }
  if (last_ < addresses_.size() && !tried_[last_]) {
    current_ = last_;
    return true;
  }
  Begin();
  current_ = (current_ + 1) % addresses_.size();
  return false;
}

bool AddressOrder::GoOnTo(const SocketAddress& named) {
  tried_[current_] = true;
  const size_t index = IndexOf(named);
  if (tried_[index] || index == last_) return false;
  current_ = index;
  return true;
}

size_t AddressOrder::Find(const SocketAddress& address) const {
  const std::string text = address.ToString();
  const auto same = [&text](const SocketAddress& it) { return it.ToString() == text; };
  return static_cast<size_t>(std::ranges::find_if(addresses_, same) - addresses_.begin());
}

// Returns where the address is, which is added if it is new. It never takes the place of the
// current one: there is room for more than one.
size_t AddressOrder::IndexOf(const SocketAddress& address) {
  if (const size_t there = Find(address); there < addresses_.size()) return there;
  if (addresses_.size() < listed_ + kLearnedMax) {
    ++learned_;
    addresses_.push_back(address);
    tried_.push_back(false);
    return addresses_.size() - 1;
  }
  size_t index = listed_ + learned_++ % kLearnedMax;
  if (index == current_) index = listed_ + learned_++ % kLearnedMax;
  if (index == last_) last_ = SIZE_MAX;
  addresses_[index] = address;
  tried_[index] = false;
  return index;
}

}  // namespace gannet
