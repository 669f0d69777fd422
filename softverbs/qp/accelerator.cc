#include "softverbs/qp/accelerator.h"

#include "softverbs/base/accelerating.h"
#include "softverbs/base/shared_copy.h"
#include "softverbs/base/stats.h"

namespace softverbs {
namespace {

struct Needs {
  uint64_t target_right;  // 0: not for the accelerator
  uint32_t access;
  bool writable;
};

constexpr Needs kReadNeeds{kTargetRead, IBV_ACCESS_REMOTE_READ, false};
constexpr Needs kNeeds[] = {
    {kTargetWrite, IBV_ACCESS_REMOTE_WRITE, true},    // IBV_WR_RDMA_WRITE
    {0, 0, false},                                    // IBV_WR_RDMA_WRITE_WITH_IMM
    {0, 0, false},                                    // IBV_WR_SEND
    {0, 0, false},                                    // IBV_WR_SEND_WITH_IMM
    kReadNeeds,                                       // IBV_WR_RDMA_READ
    {kTargetAtomic, IBV_ACCESS_REMOTE_ATOMIC, true},  // IBV_WR_ATOMIC_CMP_AND_SWP
    {kTargetAtomic, IBV_ACCESS_REMOTE_ATOMIC, true},  // IBV_WR_ATOMIC_FETCH_AND_ADD
};
static_assert(IBV_WR_ATOMIC_FETCH_AND_ADD == 6);

// Marks the queue pair as in flight for as long as this object lives.
class InFlight {
 public:
  explicit InFlight(SharedQp& shared)
      : word_(shared.in_flight), count_(word_.load(std::memory_order_relaxed)) {
    // A full barrier: if the target revoked something before it looks at this word, we see that
    // below.
    word_.exchange(count_ + 1, std::memory_order_seq_cst);
  }
  // Release: a target that sees the even count knows our accesses are over.
  ~InFlight() { word_.store(count_ + 2, std::memory_order_release); }
  InFlight(const InFlight&) = delete;
  InFlight& operator=(const InFlight&) = delete;

 private:
  std::atomic<uint64_t>& word_;
  const uint64_t count_;
};

// The target's memory that an operation touches.
struct RemoteRange {
  uint64_t addr;
  uint32_t rkey;
  uint32_t length;
};

// Returns where the range is in this process, or null if any check fails. REQUIRES: in flight.
// Inlined, so that constant needs cost nothing.
[[gnu::always_inline]] inline uint8_t* ResolveRemote(const Qp& qp, const SharedTables& tables,
                                                     RemoteRange range, Needs needs)
    SV_REQUIRES(qp.lock) {
  const uint32_t dest = qp.attr.dest_qp_num;
  const uint64_t target = tables.qps[QpIndex(dest)].target.load(std::memory_order_seq_cst);
  const uint64_t required = needs.target_right | kTargetOpen;
  if ((target & (required | kTargetNumber)) != (required | qp.number)) return nullptr;

  const SharedMr& mr = tables.mrs[MrIndex(range.rkey)];
  if (range.rkey == 0 || mr.key.load(std::memory_order_seq_cst) != range.rkey) return nullptr;
  if (mr.pd.load(std::memory_order_relaxed) != target >> 32 ||
      (mr.access.load(std::memory_order_relaxed) & needs.access) == 0) {
    return nullptr;
  }
  const uint64_t offset = range.addr - mr.iova.load(std::memory_order_relaxed);
  const uint64_t size = mr.length.load(std::memory_order_relaxed);
  if (offset > size || range.length > size - offset) return nullptr;

  const ImportedRegions::Region region =
      qp.link->regions().Find(mr.region.load(std::memory_order_relaxed));
  if (region.base == nullptr || (needs.writable && !region.writable)) return nullptr;
  // The checks so far concern only the peer. This bound protects us.
  const uint64_t in_file = mr.region_offset.load(std::memory_order_relaxed) + offset;
  if (in_file > region.size || range.length > region.size - in_file) return nullptr;
  return region.base + in_file;
}

// Returns the peer's tables, or null if the accelerator must not be used.
const SharedTables* UsablePeerTables(const Qp& qp) SV_REQUIRES(qp.lock) {
  // A dead peer's memory and tables are still mapped, but it must not answer.
  const Link& link = *qp.link;
  return Accelerating() && link.state() == Link::State::kUp ? link.peer_tables() : nullptr;
}

[[gnu::always_inline]] inline bool ReadPiece(const Qp& qp, const ibv_sge& sge,
                                             const uint8_t* remote) {
  uint8_t* local =
      qp.nic->memory().Resolve(sge.lkey, sge.addr, sge.length, qp.pd_id, IBV_ACCESS_LOCAL_WRITE);
  if (local == nullptr) return false;
  CopyFromShared(local, remote, sge.length);
  return true;
}

[[gnu::noinline]] bool ReadPieces(const Qp& qp, SgeList list, const uint8_t* remote) {
  for (uint32_t i = 0; i < list.count; ++i) {
    const ibv_sge& sge = list.sges[i];
    // IBTA: the key of an empty element is not checked.
    if (sge.length != 0 && !ReadPiece(qp, sge, remote)) return false;
    remote += sge.length;
  }
  return true;
}

bool Write(const Qp& qp, const RemoteOperation& operation, uint8_t* remote) {
  if (operation.inline_data != nullptr) {
    CopyToShared(remote, operation.inline_data, operation.length);
    return true;
  }
  const MemoryTable& memory = qp.nic->memory();
  for (uint32_t i = 0; i < operation.local.count; ++i) {
    const ibv_sge& sge = operation.local.sges[i];
    if (sge.length == 0) continue;
    const uint8_t* local = memory.Resolve(sge.lkey, sge.addr, sge.length, qp.pd_id, 0);
    if (local == nullptr) return false;
    CopyToShared(remote, local, sge.length);
    remote += sge.length;
  }
  return true;
}

bool Atomic(const Qp& qp, const RemoteOperation& operation, uint8_t* remote) {
  if (reinterpret_cast<uintptr_t>(remote) % 8 != 0 || operation.local.count != 1) return false;
  const ibv_sge& sge = operation.local.sges[0];
  // Checked before the atomic: once executed, it must not be repeated by another path.
  uint8_t* local = qp.nic->memory().Resolve(sge.lkey, sge.addr, sizeof(uint64_t), qp.pd_id,
                                            IBV_ACCESS_LOCAL_WRITE);
  if (local == nullptr) return false;
  auto* word = reinterpret_cast<uint64_t*>(remote);
  uint64_t original = operation.compare_add;
  if (operation.opcode == IBV_WR_ATOMIC_CMP_AND_SWP) {
    __atomic_compare_exchange_n(word, &original, operation.swap, false, __ATOMIC_SEQ_CST,
                                __ATOMIC_SEQ_CST);
  } else {
    original = __atomic_fetch_add(word, operation.compare_add, __ATOMIC_SEQ_CST);
  }
  CopyToShared(local, &original, sizeof(original));
  return true;
}

}  // namespace

bool CanAccelerate(Qp& qp, ibv_wr_opcode opcode, uint32_t rkey, uint32_t length) {
  if (opcode > IBV_WR_ATOMIC_FETCH_AND_ADD) return false;  // SEND with invalidate
  const Needs& needs = kNeeds[opcode];
  if (needs.target_right == 0 || length == 0 || !Accelerating()) return false;
  const SharedTables* tables = qp.link->peer_tables();
  if (tables == nullptr || qp.link->state() != Link::State::kUp) return false;
  const SharedMr& mr = tables->mrs[MrIndex(rkey)];
  const uint32_t region = mr.region.load(std::memory_order_relaxed);
  // Read without being in flight, so it is only a hint. Accelerate looks again.
  if (region == 0 || mr.key.load(std::memory_order_relaxed) != rkey) return false;
  ImportedRegions::Region mapped = qp.link->regions().Find(region);
  if (mapped.base == nullptr) {
    qp.nic->links().RequestRegion(*qp.link, region);
    mapped = qp.link->regions().Find(region);
  }
  return mapped.base != nullptr && (mapped.writable || !needs.writable);
}

bool Accelerate(Qp& qp, const RemoteOperation& operation) {
  if (operation.opcode == IBV_WR_RDMA_READ) {
    return AccelerateRead(qp, operation.remote_addr, operation.rkey, operation.length,
                          operation.local);
  }
  const Needs& needs = kNeeds[operation.opcode];
  if (needs.target_right == 0 || operation.length == 0) return false;
  const SharedTables* tables = UsablePeerTables(qp);
  if (tables == nullptr) return false;
  const InFlight in_flight(*qp.shared);
  const RemoteRange range{operation.remote_addr, operation.rkey, operation.length};
  uint8_t* remote = ResolveRemote(qp, *tables, range, needs);
  if (remote == nullptr) return false;
  const bool executed = operation.opcode == IBV_WR_RDMA_WRITE ? Write(qp, operation, remote)
                                                              : Atomic(qp, operation, remote);
  if (executed) Count(stats.sends[operation.opcode].accelerated);
  return executed;
}

bool AccelerateRead(Qp& qp, uint64_t remote_addr, uint32_t rkey, uint32_t length, SgeList local) {
  const SharedTables* tables = UsablePeerTables(qp);
  if (tables == nullptr || length == 0) return false;
  const InFlight in_flight(*qp.shared);
  const uint8_t* remote = ResolveRemote(qp, *tables, {remote_addr, rkey, length}, kReadNeeds);
  if (remote == nullptr) return false;
  // Mostly there is one element, and without the loop it takes a fifth less.
  const bool executed =
      local.count == 1 ? ReadPiece(qp, local.sges[0], remote) : ReadPieces(qp, local, remote);
  if (executed) Count(stats.sends[IBV_WR_RDMA_READ].accelerated);
  return executed;
}

}  // namespace softverbs
