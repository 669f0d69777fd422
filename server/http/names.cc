#include "common/protocol/message.h"
#include "server/http/snapshot.h"

namespace gannet {

const char* OpcodeName(uint8_t opcode) {
  switch (static_cast<Opcode>(opcode)) {
    case Opcode::kHeartbeat:
      return "heartbeat";
    case Opcode::kGet:
      return "get";
    case Opcode::kPut:
      return "put";
    case Opcode::kDelete:
      return "delete";
    case Opcode::kLock:
      return "lock";
    case Opcode::kUnlock:
      return "unlock";
    case Opcode::kStats:
      return "stats";
    case Opcode::kPing:
      return "ping";
    case Opcode::kExtendLock:
      return "extend_lock";
    case Opcode::kListLocks:
      return "list_locks";
    case Opcode::kAppend:
      return "append";
    case Opcode::kPrepend:
      return "prepend";
    case Opcode::kIncrement:
      return "increment";
    case Opcode::kTouch:
      return "touch";
    case Opcode::kFlush:
      return "flush";
    case Opcode::kStorage:
      return "storage";
    case Opcode::kListClients:
      return "list_clients";
    case Opcode::kSlowLog:
      return "slow_log";
  }
  return "other";
}

const char* LatencyKindName(size_t kind) {
  constexpr const char* kNames[kLatencyKinds] = {"get", "write", "other"};
  return kind < kLatencyKinds ? kNames[kind] : "other";
}

}  // namespace gannet
