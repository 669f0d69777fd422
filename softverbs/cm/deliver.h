#ifndef SOFTVERBS_CM_DELIVER_H_
#define SOFTVERBS_CM_DELIVER_H_

namespace softverbs::cm {

class CmId;

// The active side's part after a REP: moves the queue pair to RTS and sends RTU to the peer.
// Returns 0 or an errno; then the queue pair is in the error state. REQUIRES: State::mutex is not
// held.
int FinishConnect(CmId* id);

}  // namespace softverbs::cm

#endif  // SOFTVERBS_CM_DELIVER_H_
