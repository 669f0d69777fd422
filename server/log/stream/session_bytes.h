#ifndef GANNET_SERVER_LOG_STREAM_SESSION_BYTES_H_
#define GANNET_SERVER_LOG_STREAM_SESSION_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "server/log/changes/session_record.h"
#include "server/log/stream/ring_record.h"

namespace gannet {

// How ring_record.cc encodes and decodes what a ring has of sessions. All such records are a
// multiple of eight bytes, so they have no padding.

RingRecordKind RingKindOf(SessionRecord::Kind kind);
size_t SessionBytes(const SessionRecord& record);
// Writes all but the checksum.
void EncodeSession(const SessionRecord& record, const RingRecordStart& start, uint64_t committed,
                   std::span<std::byte> out);
// Returns nullopt if nobody encodes such bytes. Checks all but what RingRecordStart has.
std::optional<SessionRecord> DecodeSession(std::span<const std::byte> bytes, RingRecordKind kind,
                                           uint64_t* committed);

}  // namespace gannet

#endif  // GANNET_SERVER_LOG_STREAM_SESSION_BYTES_H_
