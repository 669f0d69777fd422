#ifndef GANNET_CLIENT_ENGINE_CALLER_MEMORY_H_
#define GANNET_CLIENT_ENGINE_CALLER_MEMORY_H_

#include <gannet/registered_memory.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "client/session/send_chain.h"
#include "common/protocol/message.h"

namespace gannet {

// Functions over the spans of registered memory that a caller gives to an operation.

uint64_t BytesOf(std::span<const RegisteredSpan> spans);

// Fills in pieces for the bytes of the spans from `from` on, up to `end`, as far as there is room
// for pieces. Returns how many pieces there are. REQUIRES: from < end <= BytesOf(spans).
size_t PiecesOf(std::span<const RegisteredSpan> spans, uint64_t from, uint64_t end,
                std::span<LocalPiece> pieces);

// Returns the spans as a server knows them that uses this domain. REQUIRES: out is as long as
// `spans`.
std::span<const ValueSegment> SegmentsOf(std::span<const RegisteredSpan> spans, uint32_t domain,
                                         std::span<ValueSegment> out);

// Returns whether the CPU can write to all of them.
bool HasCpuAddresses(std::span<const RegisteredSpan> spans);

// Copies as much of the value as the spans have room for. Returns false if the CPU cannot.
bool CopyTo(std::span<const RegisteredSpan> spans, std::string_view value);

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_CALLER_MEMORY_H_
