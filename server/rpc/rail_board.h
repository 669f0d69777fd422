#ifndef GANNET_SERVER_RPC_RAIL_BOARD_H_
#define GANNET_SERVER_RPC_RAIL_BOARD_H_

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "common/protocol/rails_reply.h"

namespace gannet {

// What a server last saw of the ports of its rails, and how many connections each has. Thread safe:
// one thread writes what was seen, any reads and counts. All accesses are relaxed: nothing else
// depends on them.
class RailBoard {
 public:
  struct Seen {
    uint32_t mbit_per_second = 0;  // 0: unknown
    uint16_t mtu_bytes = 0;        // 0: unknown
    RailState state = RailState::kUp;
    bool lost = false;  // its device is, for ever
  };

  void Show(size_t rail, const Seen& seen) {
    seen_[rail].store(std::bit_cast<uint64_t>(seen), std::memory_order_relaxed);
  }
  Seen Of(size_t rail) const {
    return std::bit_cast<Seen>(seen_[rail].load(std::memory_order_relaxed));
  }

  // So many connections took their alternate path, which is by this rail, and so many of this rail
  // could not.
  void Moved(size_t rail, uint64_t moved, uint64_t not_moved) {
    moved_[rail].fetch_add(moved, std::memory_order_relaxed);
    not_moved_[rail].fetch_add(not_moved, std::memory_order_relaxed);
  }
  uint64_t MovedTo(size_t rail) const { return moved_[rail].load(std::memory_order_relaxed); }
  uint64_t NotMovedFrom(size_t rail) const {
    return not_moved_[rail].load(std::memory_order_relaxed);
  }

  // Alternate paths are to be looked at: a connection or a port changed.
  void ChangePaths() { path_changes_.fetch_add(1, std::memory_order_relaxed); }
  uint32_t path_changes() const { return path_changes_.load(std::memory_order_relaxed); }

  // A connection by this rail was made, or is gone.
  void Came(size_t rail) { connections_[rail].fetch_add(1, std::memory_order_relaxed); }
  void Went(size_t rail) { connections_[rail].fetch_sub(1, std::memory_order_relaxed); }
  uint32_t ConnectionsOf(size_t rail) const {
    return connections_[rail].load(std::memory_order_relaxed);
  }

 private:
  static_assert(sizeof(Seen) == sizeof(uint64_t));
  std::array<std::atomic<uint64_t>, kRailsMax> seen_{};
  std::array<std::atomic<uint32_t>, kRailsMax> connections_{};
  std::atomic<uint32_t> path_changes_{0};
  std::array<std::atomic<uint64_t>, kRailsMax> moved_{};
  std::array<std::atomic<uint64_t>, kRailsMax> not_moved_{};
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_RAIL_BOARD_H_
