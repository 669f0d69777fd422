#ifndef SOFTVERBS_NIC_SHARED_TABLES_H_
#define SOFTVERBS_NIC_SHARED_TABLES_H_

#include <atomic>
#include <cstdint>

namespace softverbs {

// The tables that a process publishes to its peers: its queue pairs and memory regions. Only the
// owner writes them. Peers map them read-only. They let an initiator execute a READ, WRITE or
// atomic on mapped memory itself (see accelerator.h), while the target can still revoke that right.

// A queue pair number has 24 bits: the slot of a process, and an index within the process.
constexpr uint32_t kQpIndexBits = 13;
constexpr uint32_t kQpsPerProcess = 1u << kQpIndexBits;
constexpr uint32_t kSlots = 1u << (24 - kQpIndexBits);  // slot 0 is never used
constexpr uint32_t QpSlot(uint32_t qpn) { return qpn >> kQpIndexBits; }
constexpr uint32_t QpIndex(uint32_t qpn) { return qpn & (kQpsPerProcess - 1); }
constexpr uint32_t QpNumber(uint32_t slot, uint32_t index) { return slot << kQpIndexBits | index; }

// A memory key has an index in bits 8-21. The other bits are a count that changes at every
// registration. Of a memory window's key, the application chooses the low byte (IBTA: the key
// portion). So a window has the other bits of the count for itself.
constexpr uint32_t kKeyByteBits = 8;
constexpr uint32_t kMrIndexBits = 14;
constexpr uint32_t kMaxMrs = 1u << kMrIndexBits;
constexpr uint32_t MrIndex(uint32_t key) { return key >> kKeyByteBits & (kMaxMrs - 1); }
constexpr uint32_t WindowOf(uint32_t key) { return key >> kKeyByteBits; }

// SharedQp::target says which peer may access memory through this queue pair, and how. 0 means
// nobody. Bits 0-23 are the number of the peer's queue pair, bits 24-26 the rights below. Bit 28 is
// always set. Bits 32-63 are the protection domain.
constexpr uint64_t kTargetNumber = 0xffffff;
enum TargetRights : uint64_t {
  kTargetWrite = 1u << 24,
  kTargetRead = 1u << 25,
  kTargetAtomic = 1u << 26,
  kTargetOpen = 1u << 28,
};

struct SharedQp {
  alignas(64) std::atomic<uint64_t> target;
  // Odd while this process accesses a peer's memory through this queue pair.
  alignas(64) std::atomic<uint64_t> in_flight;
};

// The fields are valid while `key` is not 0. The owner stores `key` last and clears it first.
struct SharedMr {
  alignas(64) std::atomic<uint32_t> key;
  std::atomic<uint32_t> access;  // enum ibv_access_flags
  std::atomic<uint32_t> pd;
  std::atomic<uint32_t> region;  // id of an exported region; 0: not mapped shared
  std::atomic<uint64_t> iova;    // address of the first byte, as peers give it
  std::atomic<uint64_t> length;
  std::atomic<uint64_t> region_offset;  // offset of the first byte in the region's file
};

// The word SharedTables::sleep. Bit 0 is set if the NIC sleeps and peers must ring. Bits 1-31 count
// the changes. Bits 32-63 are the bell to ring. 0 stands for the loop thread, which a message on
// the link's socket rings.
struct Sleep {
  static constexpr uint64_t kAsleep = 1;
  static constexpr uint64_t kFirst = kAsleep;  // peers assume this until they have the tables
  static constexpr bool Asleep(uint64_t word) { return (word & kAsleep) != 0; }
  static constexpr uint32_t Bell(uint64_t word) { return static_cast<uint32_t>(word >> 32); }
  static constexpr uint64_t Next(uint64_t word, bool asleep, uint32_t bell) {
    const uint32_t count = (static_cast<uint32_t>(word) | 1) + 1;
    return uint64_t{bell} << 32 | count | (asleep ? kAsleep : 0);
  }
};

struct SharedTables {
  // Says whether the process's NIC sleeps, and which bell to ring; see Sleep. Changes whenever the
  // NIC goes to sleep or wakes up.
  alignas(64) std::atomic<uint64_t> sleep;
  SharedQp qps[kQpsPerProcess];
  SharedMr mrs[kMaxMrs];
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);
static_assert(sizeof(SharedQp) == 128 && sizeof(SharedMr) == 64);

}  // namespace softverbs

#endif  // SOFTVERBS_NIC_SHARED_TABLES_H_
