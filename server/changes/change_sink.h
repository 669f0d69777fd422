#ifndef GANNET_SERVER_CHANGES_CHANGE_SINK_H_
#define GANNET_SERVER_CHANGES_CHANGE_SINK_H_

#include "server/changes/change.h"

namespace gannet {

// Takes the stream of all changes of a store. The store gives it each change under the key's lock,
// after the change was decided and before anybody can see it. So the changes of one key come in the
// order in which they happen.
//
// Thread safety: any thread may call it.
class ChangeSink {
 public:
  virtual ~ChangeSink() = default;
  // Returns false if the change cannot be recorded. Then it must not happen.
  virtual bool Record(const Change& change) = 0;
};

}  // namespace gannet

#endif  // GANNET_SERVER_CHANGES_CHANGE_SINK_H_
