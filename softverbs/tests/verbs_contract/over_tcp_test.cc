// verbs_contract_test --over-tcp is no other name of the run without it, and the run on two hosts
// is no other name of either.
#include <dirent.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdlib>

#include "softverbs/tests/verbs_contract/pair.h"

namespace verbs_contract {
namespace {

// Returns whether a descriptor is a TCP connection as softverbs makes one between the two ends. On
// one host its other end is itself. Between two hosts it is one from an address to another.
bool IsLink(int fd) {
  sockaddr_storage own{}, peer{};
  socklen_t own_size = sizeof(own), peer_size = sizeof(peer);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&own), &own_size) != 0 ||
      getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_size) != 0 ||
      own.ss_family != AF_INET || own_size != peer_size) {
    return false;
  }
  if (!TwoHosts()) return std::memcmp(&own, &peer, own_size) == 0;
  return reinterpret_cast<sockaddr_in&>(own).sin_addr.s_addr !=
         reinterpret_cast<sockaddr_in&>(peer).sin_addr.s_addr;
}

bool HasLinkOverTcp() {
  DIR* const folder = opendir("/proc/self/fd");
  if (folder == nullptr) return false;
  bool found = false;
  while (const dirent* entry = readdir(folder)) found |= IsLink(std::atoi(entry->d_name));
  closedir(folder);
  return found;
}

TEST(OverTcpTest, TheTwoEndsAreConnectedByTcp) {
  if (!TheDevice().over_tcp) GTEST_SKIP() << "without --over-tcp they are not";
  Pair pair;
  ibv_sge sge = pair.client().buffer->Sge(0, 8);
  Buffer& target = *pair.server().buffer;
  EXPECT_EQ(Do(pair.client(), Read(&sge, target.address(), target.rkey())).status, IBV_WC_SUCCESS);
  EXPECT_TRUE(HasLinkOverTcp());
}

}  // namespace
}  // namespace verbs_contract
