#ifndef SOFTVERBS_QP_REQUESTER_H_
#define SOFTVERBS_QP_REQUESTER_H_

#include <cstdint>

#include "softverbs/nic/packet.h"
#include "softverbs/qp/qp.h"

namespace softverbs {

// The requester: takes posted requests in order, has each executed by the accelerator or sends it
// as packets, and completes them in order. All functions REQUIRE the queue pair's lock.

// Does what can be done now. It is called again whenever that may have changed: after a post, an
// answer, a timer, or new space in the link.
void Transmit(Qp& qp) SV_REQUIRES(qp.lock);

// Handles an acknowledgement, a refusal, or the answer to a READ or atomic.
void HandleAnswer(Qp& qp, const PacketHeader& header, const uint8_t* payload) SV_REQUIRES(qp.lock);

// Handles the end of the peer's queue pair or process while there is work for it. The oldest
// request fails, but only after a while: a real adapter resends until its timers run out, and
// programs depend on that. If two programs end together, each hears of what it waits for before it
// hears of the other's end.
void HandlePeerGone(Qp& qp) SV_REQUIRES(qp.lock);

// Gives up on a link to another host where answers have not come for the time that the queue pair
// waits for them. The link is aborted, with all queue pairs on it. The oldest request fails once
// nothing of the link can be executed any more.
void HandleSilence(Qp& qp) SV_REQUIRES(qp.lock);

// Counts the READs and atomics that are with the peer, from the queue itself. `fetches` must equal
// it, and it must not exceed attr.max_rd_atomic.
uint32_t CountFetchesInFlight(Qp& qp) SV_REQUIRES(qp.lock);

// Completes the oldest request. Signaled and failed requests get a completion.
void CompleteOldest(Qp& qp, ibv_wc_status status) SV_REQUIRES(qp.lock);

// Completes the oldest request with an error; then EnterSendError.
void FailOldest(Qp& qp, ibv_wc_status status) SV_REQUIRES(qp.lock);

// Sends the requests that are under way again after the queue pair's timeout, or fails the oldest
// if its retries are over. REQUIRES: the same; the peer executed none of them.
void HandleNotReached(Qp& qp) SV_REQUIRES(qp.lock);

// Raises IBV_EVENT_SQ_DRAINED if that was asked for and nothing is in progress any more.
void NoteDrained(Qp& qp) SV_REQUIRES(qp.lock);

}  // namespace softverbs

#endif  // SOFTVERBS_QP_REQUESTER_H_
