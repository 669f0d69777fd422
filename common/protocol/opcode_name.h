#ifndef GANNET_COMMON_PROTOCOL_OPCODE_NAME_H_
#define GANNET_COMMON_PROTOCOL_OPCODE_NAME_H_

#include <cstdint>

#include "common/protocol/message.h"

namespace gannet {

// Returns what people call a request; "other" if this version does not know it.
inline const char* OpcodeName(uint8_t opcode) {
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
    case Opcode::kHeats:
      return "heats";
    case Opcode::kMap:
      return "map";
    case Opcode::kItemLeases:
      return "item_leases";
  }
  return "other";
}

}  // namespace gannet

#endif  // GANNET_COMMON_PROTOCOL_OPCODE_NAME_H_
