#ifndef SOFTVERBS_QP_RESPONDER_H_
#define SOFTVERBS_QP_RESPONDER_H_

#include <cstdint>

#include "softverbs/nic/packet.h"
#include "softverbs/qp/qp.h"

namespace softverbs {

// The responder: executes requests in the order they arrive and answers in that order. An
// acknowledgement is handed to the link before the receive's completion becomes visible, so that
// whatever the application sends in reaction follows it. Both functions REQUIRE the queue pair's
// lock.

// A request packet; nothing in it has been checked.
void HandleRequest(Qp& qp, Link& link, const PacketHeader& header, const uint8_t* payload);

// Sends the answers owed; false when some remain: the link is full, or a READ is being torn.
bool SendAnswers(Qp& qp);

}  // namespace softverbs

#endif  // SOFTVERBS_QP_RESPONDER_H_
