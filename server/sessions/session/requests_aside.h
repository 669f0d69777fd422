#ifndef GANNET_SERVER_SESSIONS_SESSION_REQUESTS_ASIDE_H_
#define GANNET_SERVER_SESSIONS_SESSION_REQUESTS_ASIDE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/base/boot_time.h"
#include "common/protocol/limits.h"

namespace gannet {

// Requests of a session that came before those before them, over another connection. Each waits
// until its number is the next one (docs/rails.md, "Requests by several rails").
//
// 1. Each copy of a request is kept, with the connection that it came by, as that one is to answer
//    it. No connection has two of a number.
// 2. There are at most two copies for each credit: a client sends what it gives up once more. And
//    their bytes are at most one message for each credit.
//
// Owner thread only.
class RequestsAside {
 public:
  struct Copy {
    uint32_t connection = 0;
    BootTime since;
    std::vector<std::byte> message;
  };
  enum class Keeping : uint8_t {
    kDone,
    kTwice,    // the connection has a copy of it here
    kTooMany,  // there would be more copies, or bytes, than there may be
  };

  explicit RequestsAside(uint16_t credits) : credits_(credits) {}

  bool empty() const { return copies_.empty(); }
  size_t size() const { return copies_.size(); }

  Keeping Keep(uint64_t sequence, Copy copy) {
    const auto [begin, end] = copies_.equal_range(sequence);
    if (std::any_of(begin, end,
                    [&](const auto& it) { return it.second.connection == copy.connection; }))
      return Keeping::kTwice;
    const size_t bytes = bytes_ + copy.message.size();
    if (copies_.size() >= 2u * credits_ || bytes > size_t{credits_} * kMessageBytesMax)
      return Keeping::kTooMany;
    bytes_ = bytes;
    copies_.emplace(sequence, std::move(copy));
    return Keeping::kDone;
  }
  // Takes a copy of the lowest number, the oldest first, if that is at most `next`.
  std::optional<Copy> Take(uint64_t next) {
    const auto first = copies_.begin();
    if (first == copies_.end() || first->first > next) return std::nullopt;
    Copy copy = std::move(first->second);
    bytes_ -= copy.message.size();
    copies_.erase(first);
    return copy;
  }
  // The connection closes.
  void DropThoseOf(uint32_t connection) {
    std::erase_if(copies_, [&](const auto& it) {
      if (it.second.connection != connection) return false;
      bytes_ -= it.second.message.size();
      return true;
    });
  }
  size_t CountOf(uint32_t connection) const {
    return static_cast<size_t>(std::ranges::count_if(
        copies_, [&](const auto& it) { return it.second.connection == connection; }));
  }
  // Returns since when a copy that came by this connection waits; Never() if none does.
  BootTime WaitsSince(uint32_t connection) const {
    BootTime since = BootTime::Never();
    for (const auto& [sequence, copy] : copies_) {
      if (copy.connection == connection) since = std::min(since, copy.since);
    }
    return since;
  }

 private:
  const uint16_t credits_;
  std::multimap<uint64_t, Copy> copies_;  // by number
  size_t bytes_ = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_SESSIONS_SESSION_REQUESTS_ASIDE_H_
