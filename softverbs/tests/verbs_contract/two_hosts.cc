#include "softverbs/tests/verbs_contract/two_hosts.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#undef ibv_get_device_list  // a macro of verbs.h

namespace verbs_contract {
namespace {

struct Instance {
  void* library = nullptr;
  int network = -1;  // its namespace
};
Instance instances[2];

thread_local Host current = Host::kClients;
const ibv_device* servers_device = nullptr;

[[noreturn]] void Fail(const std::string& why) {
  std::fprintf(stderr, "verbs_contract: %s\n", why.c_str());
  std::exit(1);
}

int OpenNamespace(const char* file) {
  const int fd = open(file, O_RDONLY | O_CLOEXEC);
  if (fd < 0) Fail(std::string("no namespace ") + file);
  return fd;
}

void Enter(Host host) {
  if (std::exchange(current, host) == host) return;
  const int network = instances[static_cast<int>(host)].network;
  if (setns(network, CLONE_NEWNET) != 0) Fail("cannot enter the other namespace");
}

// Loads the library that is loaded as `library` once more. The loader takes it for another one,
// because its file is another one.
void* LoadCopy(void* library) {
  Dl_info info;
  if (dladdr(dlsym(library, "ibv_get_device_list"), &info) == 0) Fail("no softverbs");
  std::ifstream original(info.dli_fname, std::ios::binary);
  const std::string bytes(std::istreambuf_iterator<char>(original), {});
  const int fd = memfd_create("softverbs of the other host", MFD_CLOEXEC);
  if (write(fd, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
    Fail("cannot copy softverbs");
  }
  void* copy = dlopen(("/proc/self/fd/" + std::to_string(fd)).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (copy == nullptr) Fail(dlerror());
  close(fd);
  return copy;
}

// Returns where the file is loaded to which the function belongs.
const void* LoadedAt(const void* function) {
  Dl_info info;
  return dladdr(function, &info) == 0 ? nullptr : info.dli_fbase;
}

// An instance reads its address when it is first used.
void OpenAt(Host host, const char* address) {
  const AtHost at(host);
  setenv("SOFTVERBS_NET", getenv(address), 1);
  int count = 0;
  ibv_device** list = CALL_AT(host, ibv_get_device_list, &count);
  ibv_context* verbs = count == 0 ? nullptr : CALL_AT(host, ibv_open_device, *list);
  if (verbs == nullptr) Fail(std::string("no device at ") + getenv(address));
  if (HostOf(verbs) != host) Fail("the device is one of the other host");
  if (host == Host::kServers) servers_device = verbs->device;
  CALL_AT(host, ibv_close_device, verbs);
  CALL_AT(host, ibv_free_device_list, list);
}

}  // namespace

Host CurrentHost() { return current; }

void* FindFunction(Host host, const char* name) {
  void* found = dlsym(instances[static_cast<int>(host)].library, name);
  if (found == nullptr) Fail(std::string("softverbs has no ") + name);
  return found;
}

Host HostOf(const ibv_context* context) {
  static const void* const servers = LoadedAt(FindFunction(Host::kServers, "ibv_open_device"));
  const auto* function = reinterpret_cast<const void*>(context->ops.poll_cq);
  return LoadedAt(function) == servers ? Host::kServers : Host::kClients;
}

Host HostOfDevice(const ibv_device* device) {
  return device == servers_device ? Host::kServers : Host::kClients;
}

AtHost::AtHost(Host host) : before_(current) { Enter(host); }
AtHost::~AtHost() { Enter(before_); }

std::string MakeHosts() {
  const char* const servers_network = getenv("TWO_HOSTS_B_NET");
  if (servers_network == nullptr) Fail("runs by tests/support/two_hosts.py");
  instances[0] = {dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL),
                  OpenNamespace("/proc/self/ns/net")};
  if (instances[0].library == nullptr) Fail(dlerror());
  instances[1] = {LoadCopy(instances[0].library), OpenNamespace(servers_network)};
  OpenAt(Host::kServers, "TWO_HOSTS_B");
  OpenAt(Host::kClients, "TWO_HOSTS_A");
  return getenv("TWO_HOSTS_B");
}

bool TwoHosts() { return true; }

}  // namespace verbs_contract
