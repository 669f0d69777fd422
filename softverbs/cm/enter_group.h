#ifndef SOFTVERBS_CM_ENTER_GROUP_H_
#define SOFTVERBS_CM_ENTER_GROUP_H_

namespace softverbs::cm {

struct QueuedEvent;

// Attaches the id's queue pair to the group when the application hears that it joined. If that
// fails, the event says so. Returns false if the group was left in the meantime. REQUIRES:
// State::mutex is not held.
bool EnterGroup(QueuedEvent* event);

}  // namespace softverbs::cm

#endif  // SOFTVERBS_CM_ENTER_GROUP_H_
