#ifndef GANNET_SERVER_SESSIONS_SESSION_SESSION_KEY_H_
#define GANNET_SERVER_SESSIONS_SESSION_SESSION_KEY_H_

#include <atomic>
#include <utility>

#include "common/auth/auth_key.h"

namespace gannet {

// A key of the server's auth file, which its sessions share. It stays the same object as long as
// its line in the file does not change, so two keys are equal if their pointers are.
//
// Thread safe.
struct SessionKey {
  explicit SessionKey(AuthKey its) : key(std::move(its)) {}

  const AuthKey key;
  // Set by the control thread when the file no longer has this key. Relaxed, here and where workers
  // look: they only have to see it soon, and it says nothing about other memory.
  std::atomic<bool> revoked{false};
};

}  // namespace gannet

#endif  // GANNET_SERVER_SESSIONS_SESSION_SESSION_KEY_H_
