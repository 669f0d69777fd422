#ifndef GANNET_COMMON_PROTOCOL_LIMITS_H_
#define GANNET_COMMON_PROTOCOL_LIMITS_H_

#include <cstdint>

namespace gannet {

inline constexpr uint8_t kProtocolVersionMin = 1;
inline constexpr uint8_t kProtocolVersionMax = 1;
inline constexpr uint16_t kDefaultPort = 7471;

// A message (header, key, eager value) never exceeds this, so receives have one size.
inline constexpr uint32_t kMessageBytesMax = 4096;
// Requests of a session that may be unanswered at once, heartbeats aside.
inline constexpr uint16_t kCreditsDefault = 32;

inline constexpr uint32_t kHeartbeatMs = 500;        // the client SENDs at least this often
inline constexpr uint32_t kPeerSilenceMsMax = 1500;  // then the peer is dead
inline constexpr uint8_t kRetryCount = 6;            // 7 means for ever on Soft-RoCE
inline constexpr uint8_t kRnrRetryCount = 6;

}  // namespace gannet

#endif  // GANNET_COMMON_PROTOCOL_LIMITS_H_
