#ifndef GANNET_COMMON_AUTH_NEW_AUTH_KEY_H_
#define GANNET_COMMON_AUTH_NEW_AUTH_KEY_H_

#include <cstdint>
#include <optional>
#include <string>

#include "common/auth/auth_key.h"

namespace gannet {

// Returns a key whose secret is random (getrandom(2)). Without an id, that is random too, so that
// keys made at different places can be put into one file.
AuthKey NewAuthKey(std::optional<uint32_t> id, bool read_only, bool replica = false);

// Returns the secret in hexadecimal, as an auth file has it.
std::string HexOf(const AuthKey& key);
// Returns the key's line in an auth file, without the newline.
std::string LineOf(const AuthKey& key);

}  // namespace gannet

#endif  // GANNET_COMMON_AUTH_NEW_AUTH_KEY_H_
