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

// Returns where the address is, which is added if it is new. It never takes the place of the
// current one: there is room for more than one.
size_t AddressOrder::IndexOf(const SocketAddress& address) {
  const std::string text = address.ToString();
  for (size_t i = 0; i < addresses_.size(); ++i) {
    if (addresses_[i].ToString() == text) return i;
  }
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
