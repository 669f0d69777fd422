#ifndef SOFTVERBS_CM_STEPS_H_
#define SOFTVERBS_CM_STEPS_H_

#include <cstdint>
#include <memory>

#include "softverbs/base/thread_annotations.h"
#include "softverbs/cm/state.h"
#include "softverbs/cm/wire.h"

namespace softverbs::cm {

class CmId;
class PeerSocket;

// The steps of the protocol for what arrives, in the order of their files: request.cc, reply.cc,
// reject.cc, disconnect.cc, service.cc. All REQUIRE State::mutex and run on the loop thread. A
// message that does not fit the id's state is ignored.

// How long the peer's answer may take. The real CM gives up after about a minute too: 16 tries of
// 4.3 seconds.
inline constexpr int64_t kAnswerTimeoutNs = 68'000'000'000;
// How long an id stays in kTimeWait. There are no late packets on one host; the time is just long
// enough to be seen.
inline constexpr int64_t kTimeWaitNs = 100'000'000;

// A REQ arrived at `listening`, on a socket of its own.
void OnRequest(CmId* listening, std::shared_ptr<PeerSocket> peer, const Message& request)
    SV_REQUIRES(state_mutex);
void OnReply(CmId* id, const Message& reply) SV_REQUIRES(state_mutex);
void OnReadyToUse(CmId* id) SV_REQUIRES(state_mutex);
void OnReject(CmId* id, const Message& reject) SV_REQUIRES(state_mutex);
void OnDisconnectRequest(CmId* id) SV_REQUIRES(state_mutex);
void OnDisconnectReply(CmId* id) SV_REQUIRES(state_mutex);
void OnServiceReply(CmId* id, const Message& reply) SV_REQUIRES(state_mutex);
// The socket ended because the peer's id was destroyed or its process died. After the connection
// was established, this is OnConnectionLost.
void OnPeerGone(CmId* id) SV_REQUIRES(state_mutex);
void OnConnectionLost(CmId* id) SV_REQUIRES(state_mutex);

// Tells the application that the connection was refused, and ends the id. `data` has kRejectDataMax
// bytes; null means zeroes.
void PushRejected(CmId* id, RejectReason reason, const uint8_t* data) SV_REQUIRES(state_mutex);

}  // namespace softverbs::cm

#endif  // SOFTVERBS_CM_STEPS_H_
