#ifndef GANNET_COMMON_AUTH_AUTH_KEY_H_
#define GANNET_COMMON_AUTH_AUTH_KEY_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace gannet {

// A pre-shared key: whoever has it may connect.
struct AuthKey {
  // A shorter secret could be guessed. A longer one than SHA-256's block would only be hashed.
  static constexpr size_t kSecretBytesMin = 16;
  static constexpr size_t kSecretBytesMax = 64;

  uint32_t id = 0;  // names the key in the handshake; never 0
  bool read_only = false;
  bool replica = false;  // of a group's server, which may follow the primary, and READ as a client
  std::string secret;    // bytes, not text

  friend bool operator==(const AuthKey&, const AuthKey&) = default;
};

}  // namespace gannet

#endif  // GANNET_COMMON_AUTH_AUTH_KEY_H_
