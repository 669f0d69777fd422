#include "tests/support/fake_hosts.h"

#include <dlfcn.h>
#include <netdb.h>

#include <map>
#include <mutex>
#include <optional>
#include <utility>

namespace test_support {
namespace {

struct Hosts {
  std::mutex mutex;
  std::map<std::string, std::vector<std::string>> addresses;
};

Hosts& TheHosts() {
  static Hosts hosts;
  return hosts;
}

// nullopt: it is none of the names.
std::optional<std::vector<std::string>> Find(const char* name) {
  if (name == nullptr) return std::nullopt;
  Hosts& hosts = TheHosts();
  const std::scoped_lock lock(hosts.mutex);
  const auto it = hosts.addresses.find(name);
  if (it == hosts.addresses.end()) return std::nullopt;
  return it->second;
}

}  // namespace

void SetFakeHost(const std::string& name, std::vector<std::string> addresses) {
  Hosts& hosts = TheHosts();
  const std::scoped_lock lock(hosts.mutex);
  hosts.addresses[name] = std::move(addresses);
}

}  // namespace test_support

extern "C" __attribute__((visibility("default"))) int getaddrinfo(const char* name,
                                                                  const char* service,
                                                                  const addrinfo* hints,
                                                                  addrinfo** result) {
  using Function = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "getaddrinfo"));
  const auto addresses = test_support::Find(name);
  if (!addresses) return real(name, service, hints, result);
  if (addresses->empty()) return EAI_NONAME;
  // One list of all of them, each entry made by the system, whose freeaddrinfo frees it.
  addrinfo** end = result;
  for (const std::string& address : *addresses) {
    if (const int error = real(address.c_str(), service, hints, end)) return error;
    while (*end != nullptr) end = &(*end)->ai_next;
  }
  return 0;
}
