#ifndef SOFTVERBS_NIC_SHARED_TABLES_H_
#define SOFTVERBS_NIC_SHARED_TABLES_H_

#include <atomic>
#include <cstdint>

namespace softverbs {

// What a process publishes to those it has links with: its queue pairs and memory regions. Only
// the owner writes it; peers map it read only. With it an initiator may execute a READ, WRITE or
// atomic on mapped memory itself (see accelerator.h) and the target can still revoke that right.

// Queue pair numbers, 24 bits: the slot of a process and an index within it.
constexpr uint32_t kQpIndexBits = 13;
constexpr uint32_t kQpsPerProcess = 1u << kQpIndexBits;
constexpr uint32_t kSlots = 1u << (24 - kQpIndexBits);  // slot 0 is never used
constexpr uint32_t QpSlot(uint32_t qpn) { return qpn >> kQpIndexBits; }
constexpr uint32_t QpIndex(uint32_t qpn) { return qpn & (kQpsPerProcess - 1); }
constexpr uint32_t QpNumber(uint32_t slot, uint32_t index) { return slot << kQpIndexBits | index; }

// Memory keys: an index, and above it a count that changes at every registration.
constexpr uint32_t kMrIndexBits = 14;
constexpr uint32_t kMaxMrs = 1u << kMrIndexBits;
constexpr uint32_t MrIndex(uint32_t key) { return key & (kMaxMrs - 1); }

// SharedQp::target: who may do what through this queue pair. 0 = nobody. Bits 0-23 the number of
// the peer's queue pair, 24-27 the rights below, 28 set, 32-63 the protection domain.
constexpr uint64_t kTargetNumber = 0xffffff;
enum TargetRights : uint64_t {
  kTargetWrite = 1u << 24,
  kTargetRead = 1u << 25,
  kTargetAtomic = 1u << 26,
  kTargetOpen = 1u << 28,
};

struct SharedQp {
  alignas(64) std::atomic<uint64_t> target;
  // Odd while this process executes an operation on another's memory through this queue pair.
  alignas(64) std::atomic<uint64_t> in_flight;
};

// The fields are valid while `key` is not 0, which is stored last and cleared first.
struct SharedMr {
  alignas(64) std::atomic<uint32_t> key;
  std::atomic<uint32_t> access;  // enum ibv_access_flags
  std::atomic<uint32_t> pd;
  std::atomic<uint32_t> region;  // id of an exported region, 0 = not mapped shared
  std::atomic<uint64_t> iova;    // address of the first byte, as peers give it
  std::atomic<uint64_t> length;
  std::atomic<uint64_t> region_offset;  // of the first byte in the region's file
};

// SharedTables::sleep. Bit 0: the NIC sleeps and wants to be rung; bits 1-31 count; bits 32-63 the
// bell to ring, 0: the loop thread, by a message on the link's socket.
struct Sleep {
  static constexpr uint64_t kAsleep = 1;
  static constexpr uint64_t kFirst = kAsleep;  // and what to think before the tables came
  static constexpr bool Asleep(uint64_t word) { return (word & kAsleep) != 0; }
  static constexpr uint32_t Bell(uint64_t word) { return static_cast<uint32_t>(word >> 32); }
  static constexpr uint64_t Next(uint64_t word, bool asleep, uint32_t bell) {
    const uint32_t count = (static_cast<uint32_t>(word) | 1) + 1;
    return uint64_t{bell} << 32 | count | (asleep ? kAsleep : 0);
  }
};

struct SharedTables {
  // Whether the process's NIC sleeps, and whom to ring then; see Sleep. Changes at every sleep and
  // wake.
  alignas(64) std::atomic<uint64_t> sleep;
  SharedQp qps[kQpsPerProcess];
  SharedMr mrs[kMaxMrs];
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);
static_assert(sizeof(SharedQp) == 128 && sizeof(SharedMr) == 64);

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_SHARED_TABLES_H_
