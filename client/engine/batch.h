#ifndef GANNET_CLIENT_ENGINE_BATCH_H_
#define GANNET_CLIENT_ENGINE_BATCH_H_

#include <cstdint>

#include "client/engine/engine.h"

namespace gannet {

// Counts the operations that one caller began together and waits for together, and says when the
// caller has to take those that ended: copy what they brought, and release them.
//
// An operation that ended may keep a long buffer until it is released (engine.h, invariant 5). So a
// caller that took nothing before all were over could wait for an operation of its own that waits
// for such a buffer, and two callers could wait for each other.
class Batch {
 public:
  void Begin(uint32_t ops) { under_way_ = ops; }
  void OnEnded() {
    --under_way_;
    ++ended_;
  }
  void OnTaken() { ended_ = 0; }

  // Returns true if all operations have ended. Those that were not taken are to be taken now.
  bool over() const { return under_way_ == 0; }
  // Returns true if some have ended and were not taken.
  bool has_ended() const { return ended_ > 0; }
  // Returns true if the caller must not wait any longer before it takes what ended.
  bool HasToTake(const Engine& engine) const {
    return over() || (has_ended() && engine.wants_buffer());
  }

 private:
  uint32_t under_way_ = 0;
  uint32_t ended_ = 0;  // operations that have ended and were not taken
};

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_BATCH_H_
