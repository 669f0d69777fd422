#ifndef GANNET_COMMON_PROTOCOL_HEARTBEATS_H_
#define GANNET_COMMON_PROTOCOL_HEARTBEATS_H_

#include <cstdint>

namespace gannet {

// So many heartbeats of a connection may be unanswered, beside as many requests as it has credits.
// While a server stands still its clients go on sending heartbeats, a tenth of the time of silence
// apart, until so many are unanswered.
inline constexpr uint32_t kHeartbeatsUnansweredMax = 4;

}  // namespace gannet

#endif  // GANNET_COMMON_PROTOCOL_HEARTBEATS_H_
