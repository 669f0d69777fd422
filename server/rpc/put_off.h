#ifndef GANNET_SERVER_RPC_PUT_OFF_H_
#define GANNET_SERVER_RPC_PUT_OFF_H_

#include "common/protocol/message.h"
#include "server/changes/change_stream.h"
#include "server/store/store.h"

namespace gannet {

// Returns whether the client is to send the request again.
inline bool IsPutOff(const ReplyHeader& reply) {
  return reply.status == static_cast<uint8_t>(ReplyStatus::kTryAgain);
}

// Returns the answer to a write of a store that records its changes. If the write was refused only
// because the disk is behind, the client is told to send it again, which it does until its
// deadline. If a group has too few copies, the client is told that: it may take long. So the write
// holds nothing here meanwhile: no block, no place in the stream, no memory.
inline ReplyHeader PutOffIfBehind(const Store& store, const ChangeStream& changes,
                                  const ReplyHeader& reply) {
  using Takes = ChangeConsumer::Takes;
  const auto status = static_cast<ReplyStatus>(reply.status);
  const bool refused = status == ReplyStatus::kDiskRefuses;
  // An eviction that cannot be recorded makes no room, and one that cannot become safe neither.
  const bool no_room = status == ReplyStatus::kHeapFull || status == ReplyStatus::kTryAgain;
  const bool found_no_room = no_room && store.evicts();
  if (!refused && !found_no_room) return reply;
  const Takes takes = changes.takes();
  if (takes == Takes::kTooFewCopies) {
    return {.opcode = reply.opcode,
            .status = static_cast<uint8_t>(ReplyStatus::kTooFewCopies),
            .sequence = reply.sequence};
  }
  // The stream may have caught up since it refused.
  const bool behind = takes == Takes::kLater || (refused && takes == Takes::kNow);
  if (!behind) return reply;
  return {.opcode = reply.opcode,
          .status = static_cast<uint8_t>(ReplyStatus::kTryAgain),
          .sequence = reply.sequence};
}

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_PUT_OFF_H_
