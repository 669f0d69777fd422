#include "softverbs/nic/port_folder.h"

#include <sys/epoll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "softverbs/base/devices.h"
#include "softverbs/nic/loop.h"
#include "softverbs/nic/ports.h"

namespace softverbs {

void PortFolder::Follow() {
  const char* const path = getenv("SOFTVERBS_PORTS");
  if (path == nullptr || *path == '\0' || Loop::Get().Simulated()) return;
  path_ = path;
  changes_ = UniqueFd(inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  const uint32_t kChanges = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR;
  if (inotify_add_watch(changes_.get(), path, kChanges) < 0) {
    fprintf(stderr, "softverbs[%d]: SOFTVERBS_PORTS: cannot watch the folder %s: %m\n", getpid(),
            path);
    _exit(2);
  }
  Obey();
  Loop::Get().Add(changes_.get(), EPOLLIN, [this](uint32_t) { OnChange(); });
}

// What the events say is not looked at: the folder says it.
void PortFolder::OnChange() {
  char events[4096];
  while (read(changes_.get(), events, sizeof(events)) > 0 || errno == EINTR) {
  }
  Obey();
}

void PortFolder::Obey() {
  for (int device = 0; device < DeviceCount(); ++device) {
    if (Has(device, "dead")) ports_->Kill(device);
  }
  for (int port = 0; port < PortCount(); ++port) ports_->Set(port, !Has(port, "down"));
}

bool PortFolder::Has(int number, const char* what) const {
  return access((path_ + "/" + std::to_string(number) + "." + what).c_str(), F_OK) == 0;
}

}  // namespace softverbs
