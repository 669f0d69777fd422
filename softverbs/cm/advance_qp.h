#ifndef SOFTVERBS_CM_ADVANCE_QP_H_
#define SOFTVERBS_CM_ADVANCE_QP_H_

#include "softverbs/cm/cm_id.h"

namespace softverbs::cm {

// Move the queue pair of an id through the states of a connection, with what the peers agreed on.
// All do nothing for an id without a queue pair. They return 0 or an errno. REQUIRES: State::mutex
// is not held.

// To INIT; a queue pair for datagrams, which needs no peer, to RTS.
int Prepare(CmId* id, ibv_qp* qp);
// INIT again (only now the access rights are known), RTR, RTS.
int ToReadyToSend(CmId* id);
int ToError(CmId* id);

}  // namespace softverbs::cm

#endif  // SOFTVERBS_CM_ADVANCE_QP_H_
