#ifndef GANNET_CLIENT_ENGINE_REQUEST_ENCODING_H_
#define GANNET_CLIENT_ENGINE_REQUEST_ENCODING_H_

#include "client/engine/op.h"
#include "client/engine/outcome.h"
#include "common/protocol/message.h"

namespace gannet {

// From an operation to the message that asks the server for it, and from the answer's status back.

// The opcode of the request that the operation sends now.
Opcode RequestOpcode(const Op& op);
// The bytes of the value of a write.
uint32_t ValueBytesOf(const OpRequest& request);
// The request's header, without sequence number and buffer.
RequestHeader MakeRequestHeader(const Op& op);
// How an operation ends whose request was answered so.
Outcome ToOutcome(ReplyStatus status);

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_REQUEST_ENCODING_H_
