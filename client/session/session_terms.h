#ifndef GANNET_CLIENT_SESSION_SESSION_TERMS_H_
#define GANNET_CLIENT_SESSION_SESSION_TERMS_H_

#include <cstdint>

#include "common/base/clock.h"
#include "common/lookup/index_view.h"
#include "common/protocol/connect.h"

namespace gannet {

// What a session may do at its server: the grant of the last connection, and what follows from it
// and from the local device.
struct SessionTerms {
  Grant grant{};
  IndexView view;
  uint32_t read_depth = 0;       // READs in flight on one connection
  uint32_t eager_bytes_max = 0;  // the longest message, header and key included
  bool authenticated = false;    // both sides proved that they have the key
  bool lock_by_nic = false;      // both devices can compare and swap; otherwise locks go by RPC
  // The server may keep locks that were taken by RPC when the first connection breaks. Whether it
  // did, the next grant says: then its connection_id is the same.
  bool may_keep_locks = false;

  bool read_only() const { return (grant.features & kGrantReadOnly) != 0; }
  LockMode lock_mode() const {
    const LockMode mode = static_cast<LockMode>(grant.lock_mode);
    return mode == LockMode::kNicCas && !lock_by_nic ? LockMode::kRpcLoopback : mode;
  }
  int64_t silence_ns() const { return grant.silence_ms * kNsPerMs; }
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_SESSION_TERMS_H_
