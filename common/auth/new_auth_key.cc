#include "common/auth/new_auth_key.h"

#include <sys/random.h>

#include <cstddef>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace gannet {
namespace {

constexpr size_t kSecretBytes = 32;  // the length of the HMAC's hash

// `bytes` is at most 256: then the call neither fails nor is cut short once the kernel has booted.
void FillRandom(void* out, size_t bytes) {
  const bool whole = getrandom(out, bytes, 0) == static_cast<ssize_t>(bytes);
  GANNET_CHECK(whole, "the kernel has no random numbers");
}

uint32_t RandomId() {
  uint32_t id = 0;
  while (id == 0) FillRandom(&id, sizeof(id));
  return id;
}

}  // namespace

AuthKey NewAuthKey(std::optional<uint32_t> id, bool read_only, bool replica) {
  AuthKey key{.id = id ? *id : RandomId(), .read_only = read_only || replica, .replica = replica};
  key.secret.resize(kSecretBytes);
  FillRandom(key.secret.data(), key.secret.size());
  return key;
}

std::string HexOf(const AuthKey& key) { return absl::BytesToHexString(key.secret); }

std::string LineOf(const AuthKey& key) {
  const char* const right = key.replica ? " replica" : key.read_only ? " read" : "";
  return absl::StrCat(key.id, " ", HexOf(key), right);
}

}  // namespace gannet
