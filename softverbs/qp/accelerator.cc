#include "softverbs/qp/accelerator.h"

#include <cstdlib>
#include <cstring>

#include "softverbs/base/shared_copy.h"
#include "softverbs/base/stats.h"

namespace softverbs {
namespace {

struct Needs {
  uint64_t target_right;  // 0: not for the accelerator
  uint32_t access;
  bool writable;
};

constexpr Needs kNeeds[] = {
    {kTargetWrite, IBV_ACCESS_REMOTE_WRITE, true},    // IBV_WR_RDMA_WRITE
    {0, 0, false},                                    // IBV_WR_RDMA_WRITE_WITH_IMM
    {0, 0, false},                                    // IBV_WR_SEND
    {0, 0, false},                                    // IBV_WR_SEND_WITH_IMM
    {kTargetRead, IBV_ACCESS_REMOTE_READ, false},     // IBV_WR_RDMA_READ
    {kTargetAtomic, IBV_ACCESS_REMOTE_ATOMIC, true},  // IBV_WR_ATOMIC_CMP_AND_SWP
    {kTargetAtomic, IBV_ACCESS_REMOTE_ATOMIC, true},  // IBV_WR_ATOMIC_FETCH_AND_ADD
};
static_assert(IBV_WR_ATOMIC_FETCH_AND_ADD == 6);

// Marks the queue pair in flight for as long as it lives.
class InFlight {
 public:
  explicit InFlight(SharedQp& shared)
      : word_(shared.in_flight), count_(word_.load(std::memory_order_relaxed)) {
    // A full barrier: what the target revoked before it looks at this word is seen revoked below.
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

// Read once, before any operation.
const bool enabled = [] {
  const char* value = getenv("SOFTVERBS_ACCELERATE");
  return value == nullptr || strcmp(value, "0") != 0;
}();

// Where the operation's memory is in this process; null when any check fails. REQUIRES: in flight.
uint8_t* ResolveRemote(Qp& qp, const SharedTables& tables, const RemoteOperation& operation,
                       const Needs& needs) {
  const uint32_t dest = qp.attr.dest_qp_num;
  const uint64_t target = tables.qps[QpIndex(dest)].target.load(std::memory_order_seq_cst);
  const uint64_t required = needs.target_right | kTargetOpen;
  if ((target & 0xffffff) != qp.number || (target & required) != required) return nullptr;

  const SharedMr& mr = tables.mrs[MrIndex(operation.rkey)];
  if (operation.rkey == 0 || mr.key.load(std::memory_order_seq_cst) != operation.rkey) {
    return nullptr;
  }
  if (mr.pd.load(std::memory_order_relaxed) != target >> 32 ||
      (mr.access.load(std::memory_order_relaxed) & needs.access) == 0) {
    return nullptr;
  }
  const uint64_t offset = operation.remote_addr - mr.iova.load(std::memory_order_relaxed);
  const uint64_t size = mr.length.load(std::memory_order_relaxed);
  if (offset > size || operation.length > size - offset) return nullptr;

  const ImportedRegions::Region region =
      qp.link->regions().Find(mr.region.load(std::memory_order_relaxed));
  if (region.base == nullptr || (needs.writable && !region.writable)) return nullptr;
  // The peer's numbers are its own affair up to here; this bound protects us.
  const uint64_t in_file = mr.region_offset.load(std::memory_order_relaxed) + offset;
  if (in_file > region.size || operation.length > region.size - in_file) return nullptr;
  return region.base + in_file;
}

bool Read(const Qp& qp, const RemoteOperation& operation, const uint8_t* remote) {
  const MemoryTable& memory = qp.nic->memory();
  for (uint32_t i = 0; i < operation.local.count; ++i) {
    const ibv_sge& sge = operation.local.sges[i];
    if (sge.length == 0) continue;
    uint8_t* local =
        memory.Resolve(sge.lkey, sge.addr, sge.length, qp.pd_id, IBV_ACCESS_LOCAL_WRITE);
    if (local == nullptr) return false;
    CopyFromShared(local, remote, sge.length);
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
  // Before the atomic: once it happened it must not be repeated by another path.
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
  const Needs& needs = kNeeds[opcode];
  if (needs.target_right == 0 || length == 0 || !enabled) return false;
  const SharedTables* tables = qp.link->peer_tables();
  if (tables == nullptr || qp.link->state() != Link::State::kUp) return false;
  const SharedMr& mr = tables->mrs[MrIndex(rkey)];
  const uint32_t region = mr.region.load(std::memory_order_relaxed);
  // Read without being in flight: a hint only, Accelerate looks again.
  if (region == 0 || mr.key.load(std::memory_order_relaxed) != rkey) return false;
  ImportedRegions::Region mapped = qp.link->regions().Find(region);
  if (mapped.base == nullptr) {
    qp.nic->links().RequestRegion(*qp.link, region);
    mapped = qp.link->regions().Find(region);
  }
  return mapped.base != nullptr && (mapped.writable || !needs.writable);
}

bool Accelerate(Qp& qp, const RemoteOperation& operation) {
  const Needs& needs = kNeeds[operation.opcode];
  if (needs.target_right == 0 || operation.length == 0 || !enabled) return false;
  // The memory and the tables of a peer that died are still mapped, but it must not answer.
  if (qp.link->state() != Link::State::kUp) return false;
  const SharedTables* tables = qp.link->peer_tables();
  if (tables == nullptr) return false;
  const InFlight in_flight(*qp.shared);
  uint8_t* remote = ResolveRemote(qp, *tables, operation, needs);
  if (remote == nullptr) return false;
  bool executed;
  switch (operation.opcode) {
    case IBV_WR_RDMA_READ:
      executed = Read(qp, operation, remote);
      break;
    case IBV_WR_RDMA_WRITE:
      executed = Write(qp, operation, remote);
      break;
    default:
      executed = Atomic(qp, operation, remote);
      break;
  }
  if (executed) Count(stats.sends[operation.opcode].accelerated);
  return executed;
}

}  // namespace softverbs
