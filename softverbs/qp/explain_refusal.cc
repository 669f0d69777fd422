#include "softverbs/qp/explain_refusal.h"

#include <cinttypes>

#include "softverbs/base/log.h"
#include "softverbs/nic/nic.h"

namespace softverbs {
namespace {

struct RefusedOperation {
  const char* name;
  const char* right;  // as verbs call it
  unsigned access;
};

RefusedOperation OperationOf(PacketType type) {
  switch (type) {
    case PacketType::kWrite:
      return {"WRITE", "IBV_ACCESS_REMOTE_WRITE", IBV_ACCESS_REMOTE_WRITE};
    case PacketType::kRead:
      return {"READ", "IBV_ACCESS_REMOTE_READ", IBV_ACCESS_REMOTE_READ};
    case PacketType::kSend:
      return {"SEND with invalidation", "IBV_ACCESS_MW_BIND", 0};
    default:
      return {"atomic", "IBV_ACCESS_REMOTE_ATOMIC", IBV_ACCESS_REMOTE_ATOMIC};
  }
}

const char* Reason(const Qp& qp, const PacketHeader& request, const RefusedOperation& operation,
                   uint64_t length) SV_REQUIRES(qp.lock) {
  if (request.type == PacketType::kSend) return "the window cannot be invalidated";
  if ((qp.attr.qp_access_flags & operation.access) == 0) {
    return "the queue pair (qp_access_flags) lacks the right";
  }
  switch (qp.nic->memory().Judge(request.rkey, request.remote_addr, length, qp.pd_id,
                                 operation.access)) {
    case MemoryTable::Verdict::kNoKey:
      return "no region has this key, and no bound window allows it";
    case MemoryTable::Verdict::kOtherDomain:
      return "the key is of another protection domain than the queue pair";
    case MemoryTable::Verdict::kNoRight:
      return "the region lacks the right";
    case MemoryTable::Verdict::kOutside:
      return "the range is not inside of the region";
    case MemoryTable::Verdict::kGood:
      break;
  }
  return "the address is not a multiple of 8, or the region went away";
}

}  // namespace

void ExplainRefusal(const Qp& qp, const PacketHeader& request) {
  if (!Verbose()) return;
  const RefusedOperation operation = OperationOf(request.type);
  const bool atomic = operation.access == IBV_ACCESS_REMOTE_ATOMIC;
  const uint64_t length = atomic ? sizeof(uint64_t) : request.message_bytes;
  const uint32_t key = request.type == PacketType::kSend ? request.imm : request.rkey;
  Report("queue pair 0x%x refused a %s of queue pair 0x%x: %s; key 0x%x, %" PRIu64
         " bytes at 0x%" PRIx64 ", %s",
         qp.number, operation.name, request.from_qpn, Reason(qp, request, operation, length), key,
         length, request.remote_addr, operation.right);
}

}  // namespace softverbs
