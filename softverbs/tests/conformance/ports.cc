#include "softverbs/tests/conformance/ports.h"

#include <cstdio>
#include <fstream>

namespace conformance {

bool TcpListens(int port) {
  constexpr unsigned kListen = 0x0a;
  for (const char* list : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream in(list);
    for (std::string line; std::getline(in, line);) {
      unsigned local_port = 0, state = 0;
      if (sscanf(line.c_str(), "%*s %*[^:]:%x %*s %x", &local_port, &state) == 2 &&
          state == kListen && local_port == static_cast<unsigned>(port)) {
        return true;
      }
    }
  }
  return false;
}

bool RdmaListens(int port) {
  constexpr unsigned kAcceptsConnections = 0x10000;
  const std::string slash_port = "/" + std::to_string(port);
  std::ifstream in("/proc/net/unix");
  for (std::string line; std::getline(in, line);) {
    unsigned flags = 0;
    if (line.find("@softverbs/cm/") == std::string::npos) continue;
    if (!line.ends_with(slash_port) && !line.ends_with(slash_port + "/v6only")) continue;
    if (sscanf(line.c_str(), "%*s %*s %*s %x", &flags) == 1 && (flags & kAcceptsConnections)) {
      return true;
    }
  }
  return false;
}

std::string GroupOf(int port) {
  return "239.77." + std::to_string(port >> 8) + "." + std::to_string(port & 0xff);
}

bool GroupHasMember(int port) {
  char name[64];
  snprintf(name, sizeof(name), "@softverbs/mcast/00000000000000000000ffffef4d%04x/", port);
  std::ifstream in("/proc/net/unix");
  for (std::string line; std::getline(in, line);) {
    if (line.find(name) != std::string::npos) return true;
  }
  return false;
}

}  // namespace conformance
