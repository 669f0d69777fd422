#ifndef GANNET_COMMON_PROTOCOL_LIMITS_H_
#define GANNET_COMMON_PROTOCOL_LIMITS_H_

#include <cstdint>

#include "common/protocol/versions.h"

namespace gannet {

inline constexpr uint8_t kProtocolVersionMin = kProtocolVersions.min;
inline constexpr uint8_t kProtocolVersionMax = kProtocolVersions.max;
inline constexpr uint16_t kDefaultPort = 7471;

// A message (header, key, eager value) never exceeds this, so receives have one size.
inline constexpr uint32_t kMessageBytesMax = 4096;
// How many requests of a session may be unanswered at once, without heartbeats.
inline constexpr uint16_t kCreditsDefault = 32;

// A peer counts as dead after so much silence, unless the server sets another value. On a machine
// whose threads wait for cores, one that is alive may not run for more than a second.
inline constexpr uint16_t kSilenceMsDefault = 5000;
// A client sends a message at least so many times within the silence. So the time for which it may
// stand still is nearly all of it: the last message before is at most a tenth of it old.
inline constexpr int64_t kMessagesPerSilence = 10;
inline constexpr uint16_t kSilenceMsMin = 30;
inline constexpr uint8_t kRetryCount = 6;  // 7 means for ever on Soft-RoCE
inline constexpr uint8_t kRnrRetryCount = 6;

// Leases on items: how many there may be, and how long they last at most. A server that begins
// takes no client for so long, as there may be clients with leases of the one before.
inline constexpr uint32_t kLeasedItemsMax = 65536;
inline constexpr uint32_t kItemLeaseMsMax = 100;

// The longest value that an append or a prepend makes. Making it copies the whole value.
inline constexpr uint32_t kAppendedBytesMax = 1 << 20;

// The longest server name, without the NULs behind it.
inline constexpr uint32_t kServerNameBytesMax = 32;
// The longest time to live of values and of leases. Now plus this still fits the 48 bits of an
// item's expiry.
inline constexpr uint64_t kTtlMsMax = 1ull << 47;

}  // namespace gannet

#endif  // GANNET_COMMON_PROTOCOL_LIMITS_H_
