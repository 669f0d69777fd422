#ifndef GANNET_SERVER_RPC_PUT_OFF_H_
#define GANNET_SERVER_RPC_PUT_OFF_H_

#include "common/protocol/message.h"
#include "server/log/changes/change_stream.h"
#include "server/memory/store/store.h"

namespace gannet {

// Returns whether the client is to send the request again.
inline bool IsPutOff(const ReplyHeader& reply) {
  return reply.status == static_cast<uint8_t>(ReplyStatus::kTryAgain);
}

// Returns the answer to a write that the stream of changes refused, or for which a store that
// evicts found no room: an eviction that cannot be recorded makes none, and one that cannot become
// safe neither. If the stream is only behind, the client is told to send the write again, which it
// does until its deadline. If a group has too few copies, or a person has to mend the disk, the
// client is told that: it may take long. So the write holds nothing here meanwhile: no block, no
// place in the stream, no memory.
inline ReplyHeader PutOffIfBehind(const Store& store, const ChangeStream& changes,
                                  const ReplyHeader& reply) {
  using Takes = ChangeConsumer::Takes;
  const bool refused = reply.status == static_cast<uint8_t>(ReplyStatus::kDiskRefuses);
  const bool found_no_room = IsPutOff(reply) && store.evicts() && reply.words[kPutOffMsWord] == 0;
  if ((!refused && !found_no_room) || !store.records()) return reply;
  const auto with = [&reply](ReplyStatus status) {
    return ReplyHeader{
        .opcode = reply.opcode, .status = static_cast<uint8_t>(status), .sequence = reply.sequence};
  };
  switch (changes.takes()) {
    case Takes::kNow:  // it may have caught up since it refused
    case Takes::kLater:
      return with(ReplyStatus::kTryAgain);
    case Takes::kNot:
      return with(ReplyStatus::kDiskRefuses);
    case Takes::kTooFewCopies:
      return with(ReplyStatus::kTooFewCopies);
  }
  return reply;
}

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_PUT_OFF_H_
