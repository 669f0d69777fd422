#ifndef GANNET_SERVER_SESSION_SESSION_KEY_H_
#define GANNET_SERVER_SESSION_SESSION_KEY_H_

#include <atomic>
#include <utility>

#include "common/auth/auth_key.h"

namespace gannet {

// A key of the server's auth file, which its sessions share. It stays the same object as long as
// its line in the file says the same, so two pointers are equal if the keys are.
//
// Thread safe.
struct SessionKey {
  explicit SessionKey(AuthKey its) : key(std::move(its)) {}

  const AuthKey key;
  // Set by the control thread when the file has this key no longer. Relaxed, here and where workers
  // look: it only matters that they see it soon, and it says nothing about other memory.
  std::atomic<bool> revoked{false};
};

}  // namespace gannet

#endif  // GANNET_SERVER_SESSION_SESSION_KEY_H_
