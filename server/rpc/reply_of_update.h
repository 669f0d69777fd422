#ifndef GANNET_SERVER_RPC_REPLY_OF_UPDATE_H_
#define GANNET_SERVER_RPC_REPLY_OF_UPDATE_H_

#include <cstdint>

#include "common/protocol/message.h"
#include "server/memory/store/store.h"

namespace gannet {

// Fills in the reply to an update, which succeeded. clang 14 takes no designator of a union's
// member in a template.
[[gnu::always_inline]] inline void SetReplyOfUpdate(uint64_t sequence, const Store::Update& update,
                                                    ReplyHeader* reply) {
  *reply = {.opcode = static_cast<uint8_t>(Opcode::kPut),
            .status = static_cast<uint8_t>(ReplyStatus::kOk),
            .sequence = sequence,
            .write = {.version = update.version, .slot = update.slot}};
}

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_REPLY_OF_UPDATE_H_
