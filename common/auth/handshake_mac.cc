#include "common/auth/handshake_mac.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "common/base/check.h"
#include "common/base/random_source.h"

namespace gannet {
namespace {

constexpr size_t kMacBytes = sizeof(ConnectRequest::mac);
static_assert(kMacBytes == sizeof(Grant::mac));

using Mac = std::array<uint8_t, kMacBytes>;

// Appends the bytes of `more`.
void Append(std::vector<std::byte>* bytes, std::span<const std::byte> more) {
  bytes->insert(bytes->end(), more.begin(), more.end());
}

Mac MacOf(const AuthKey& key, std::span<const std::byte> covered) {
  std::array<uint8_t, EVP_MAX_MD_SIZE> whole;
  unsigned bytes = 0;
  const uint8_t* made =
      HMAC(EVP_sha256(), key.secret.data(), static_cast<int>(key.secret.size()),
           reinterpret_cast<const uint8_t*>(covered.data()), covered.size(), whole.data(), &bytes);
  GANNET_CHECK(made != nullptr && bytes >= kMacBytes, "libcrypto makes no HMAC-SHA-256");
  Mac mac;
  std::copy_n(whole.begin(), kMacBytes, mac.begin());
  return mac;
}

// Takes as long for every mac, so a forger does not learn which byte is the first wrong one.
bool Same(const Mac& right, const uint8_t* given) {
  return CRYPTO_memcmp(right.data(), given, kMacBytes) == 0;
}

// Covers the request up to its mac, which comes last, and the address of the server.
Mac RequestMac(const AuthKey& key, std::span<const std::byte> server,
               const ConnectRequest& request) {
  static_assert(offsetof(ConnectRequest, mac) + kMacBytes == sizeof(ConnectRequest));
  std::vector<std::byte> covered;
  Append(&covered, std::as_bytes(std::span(&request, 1)).first(offsetof(ConnectRequest, mac)));
  Append(&covered, server);
  return MacOf(key, covered);
}

// Covers the grant, with zeroes in place of its mac, and the whole request.
Mac GrantMac(const AuthKey& key, const ConnectRequest& request, std::span<const std::byte> grant) {
  std::vector<std::byte> covered;
  Append(&covered, grant);
  std::memset(covered.data() + offsetof(Grant, mac), 0, kMacBytes);
  Append(&covered, std::as_bytes(std::span(&request, 1)));
  return MacOf(key, covered);
}

}  // namespace

void SignRequest(const AuthKey& key, std::span<const std::byte> server, ConnectRequest* request) {
  request->key_id = key.id;
  const Mac mac = RequestMac(key, server, *request);
  std::ranges::copy(mac, request->mac);
}

bool VerifyRequest(const AuthKey& key, std::span<const std::byte> server,
                   const ConnectRequest& request) {
  return request.key_id == key.id && Same(RequestMac(key, server, request), request.mac);
}

void SignGrant(const AuthKey& key, const ConnectRequest& request, Grant* grant) {
  const Mac mac = GrantMac(key, request, std::as_bytes(std::span(grant, 1)));
  std::ranges::copy(mac, grant->mac);
}

bool VerifyGrant(const AuthKey& key, const ConnectRequest& request,
                 std::span<const std::byte> private_data) {
  if (private_data.size() < sizeof(Grant)) return false;
  // A later version may append fields, which its server covers too. The rest is padding.
  Grant grant;
  std::memcpy(&grant, private_data.data(), sizeof(grant));
  if (grant.length < sizeof(grant) || grant.length > private_data.size()) return false;
  return Same(GrantMac(key, request, private_data.first(grant.length)), grant.mac);
}

uint64_t UnpredictableNonce() { return KernelRandom().Next(); }

}  // namespace gannet
