#ifndef GANNET_CLIENT_ENGINE_REQUEST_ENCODING_H_
#define GANNET_CLIENT_ENGINE_REQUEST_ENCODING_H_

#include "client/engine/op.h"
#include "client/engine/outcome.h"
#include "common/protocol/message.h"

namespace gannet {

// From an operation to the message that asks the server for it, and from the answer's status back.

// Returns the opcode of the request that the operation sends now.
Opcode RequestOpcode(const Op& op);
// Returns how many bytes the value of a write has.
uint32_t ValueBytesOf(const OpRequest& request);
// Returns the request's header, without sequence number and buffer.
RequestHeader MakeRequestHeader(const Op& op);
// Returns how an operation ends whose request was answered with this status.
Outcome ToOutcome(ReplyStatus status);

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_REQUEST_ENCODING_H_
