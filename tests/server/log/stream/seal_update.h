#ifndef GANNET_TESTS_SERVER_LOG_STREAM_SEAL_UPDATE_H_
#define GANNET_TESTS_SERVER_LOG_STREAM_SEAL_UPDATE_H_

#include <cstddef>
#include <cstring>
#include <span>

#include "common/base/hash.h"
#include "server/log/stream/update_record.h"

namespace gannet {

// Gives an update's bytes the checksum that fits them. Returns false if its value is longer than
// the bytes.
inline bool SealUpdate(std::span<std::byte> bytes, const RingRecordPlace& place) {
  UpdateHeader header;
  if (bytes.size() < sizeof(header)) return false;
  std::memcpy(&header, bytes.data(), sizeof(header));
  if (header.value_bytes > bytes.size() - sizeof(header)) return false;
  constexpr size_t kContentAt = offsetof(UpdateHeader, version);
  const size_t key_at = sizeof(header) + header.value_bytes;
  const uint64_t content = Xxh3(bytes.data() + kContentAt, key_at - kContentAt, 0);
  const uint64_t head =
      Xxh3(bytes.data() + 8, kContentAt - 8, Mix64(place.stream_id ^ Mix64(place.lsn)) ^ content);
  const uint64_t checksum = Xxh3(bytes.data() + key_at, bytes.size() - key_at, head);
  std::memcpy(bytes.data(), &checksum, sizeof(checksum));
  return true;
}

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_LOG_STREAM_SEAL_UPDATE_H_
