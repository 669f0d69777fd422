#ifndef SOFTVERBS_QP_RESPONDER_H_
#define SOFTVERBS_QP_RESPONDER_H_

#include <cstdint>

#include "softverbs/nic/packet.h"
#include "softverbs/qp/qp.h"

namespace softverbs {

// The responder: executes requests in the order they arrive and answers in that order. An
// acknowledgement is handed to the link before the receive's completion becomes visible, or, if
// more packets wait to be executed, at their end (LateAcks). Whatever the application sends over
// the queue pair in reaction follows it: Transmit sends the answers first. All functions REQUIRE
// the queue pair's lock.

// Handles a request packet. Nothing in it has been checked yet.
void HandleRequest(Qp& qp, Link& link, const PacketHeader& header, const uint8_t* payload)
    SV_REQUIRES(qp.lock);

// Sends the answers owed. Returns false if some remain because the link is full or a READ is being
// torn.
bool SendAnswers(Qp& qp) SV_REQUIRES(qp.lock);

// Stops answering: the oldest answer owed becomes a refusal, so that the peer does not wait for it
// for ever. SendAnswers sends it, at once or when the link has space.
void RefuseAnswers(Qp& qp) SV_REQUIRES(qp.lock);

// The same if the queue pair forgets its link: the refusal is left to the link. REQUIRES: the
// engine's progress lock too.
void HandRefusalToLink(Qp& qp) SV_REQUIRES(qp.lock);

}  // namespace softverbs

#endif  // SOFTVERBS_QP_RESPONDER_H_
