#include "softverbs/nic/net_key.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "softverbs/base/unique_fd.h"

namespace softverbs {
namespace {

constexpr size_t kKeyBytesMin = 16;
constexpr size_t kKeyBytesMax = 4096;

// The functions of libcrypto that are used, as <openssl/hmac.h> and <openssl/evp.h> declare them.
struct Libcrypto {
  using Digest = const void* (*)();
  using HmacFunction = unsigned char* (*)(const void* digest, const void* key, int key_size,
                                          const unsigned char* data, size_t size,
                                          unsigned char* mac, unsigned int* mac_size);
  Digest sha256 = nullptr;
  HmacFunction hmac = nullptr;
};

struct NetKey {
  std::string bytes;
  Libcrypto crypto;
};

[[noreturn]] void Refuse(const char* path, const char* why) {
  fprintf(stderr, "softverbs[%d]: SOFTVERBS_NET_KEY=%s: %s\n", getpid(), path, why);
  _exit(2);
}

Libcrypto LoadLibcrypto(const char* path) {
  void* library = nullptr;
  for (const char* name : {"libcrypto.so.3", "libcrypto.so.1.1"}) {
    if (library == nullptr) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  }
  if (library == nullptr) Refuse(path, "a key needs libcrypto.so.3 (Debian: libssl3)");
  Libcrypto crypto;
  crypto.sha256 = reinterpret_cast<Libcrypto::Digest>(dlsym(library, "EVP_sha256"));
  crypto.hmac = reinterpret_cast<Libcrypto::HmacFunction>(dlsym(library, "HMAC"));
  if (crypto.sha256 == nullptr || crypto.hmac == nullptr) Refuse(path, "libcrypto has no HMAC");
  // The loop thread may be in libcrypto while the process exits. So libcrypto frees nothing then,
  // unless the application has set it up before.
  const auto initialise =
      reinterpret_cast<int (*)(uint64_t, const void*)>(dlsym(library, "OPENSSL_init_crypto"));
  constexpr uint64_t kNoAtExit = 0x00080000;  // OPENSSL_INIT_NO_ATEXIT, <openssl/crypto.h>
  if (initialise != nullptr) initialise(kNoAtExit, nullptr);
  return crypto;
}

std::string ReadKey(const char* path) {
  const UniqueFd fd(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) Refuse(path, strerror(errno));
  struct stat about;
  if (fstat(fd.get(), &about) != 0 || !S_ISREG(about.st_mode)) Refuse(path, "no ordinary file");
  if ((about.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    Refuse(path, "others may use the file: run chmod 600 on it");
  }
  std::string bytes(kKeyBytesMax + 1, '\0');
  const ssize_t size = read(fd.get(), bytes.data(), bytes.size());
  bytes.resize(size < 0 ? 0 : static_cast<size_t>(size));
  while (!bytes.empty() && (bytes.back() == '\n' || bytes.back() == '\r')) bytes.pop_back();
  if (bytes.size() < kKeyBytesMin || bytes.size() > kKeyBytesMax) {
    Refuse(path, "a key has 16 to 4096 bytes: run head -c 32 /dev/urandom | base64 > FILE");
  }
  return bytes;
}

// Returns the key, or null if there is none.
const NetKey* Key() {
  static const NetKey* key = []() -> const NetKey* {
    const char* path = getenv("SOFTVERBS_NET_KEY");
    if (path == nullptr || *path == '\0') return nullptr;
    return new NetKey{ReadKey(path), LoadLibcrypto(path)};
  }();
  return key;
}

NetBytes Mac(const char* label, const NetOpening& opening, const NetBytes& nonce) {
  NetBytes mac{};
  const NetKey* key = Key();
  if (key == nullptr) return mac;
  std::string text = label;
  text.append(reinterpret_cast<const char*>(&opening), sizeof(opening));
  text.append(reinterpret_cast<const char*>(nonce.data()), nonce.size());
  unsigned int size = 0;
  const unsigned char* made = key->crypto.hmac(
      key->crypto.sha256(), key->bytes.data(), static_cast<int>(key->bytes.size()),
      reinterpret_cast<const unsigned char*>(text.data()), text.size(), mac.data(), &size);
  // A MAC of zeroes would be that of a side without a key.
  if (made == nullptr || size != mac.size()) abort();
  return mac;
}

}  // namespace

void LoadNetKey() { Key(); }

NetBytes ChallengeMac(const NetOpening& opening, const NetBytes& nonce) {
  return Mac("softverbs dialed", opening, nonce);
}

NetBytes ProofMac(const NetOpening& opening, const NetBytes& nonce) {
  return Mac("softverbs dialer", opening, nonce);
}

bool SameMac(const NetBytes& mac, const NetBytes& other) {
  uint8_t difference = 0;
  for (size_t i = 0; i < mac.size(); ++i) difference |= mac[i] ^ other[i];
  return difference == 0;
}

bool FillNonce(NetBytes* nonce) {
  return getrandom(nonce->data(), nonce->size(), 0) == static_cast<ssize_t>(nonce->size());
}

}  // namespace softverbs
