#include "softverbs/cm/remote.h"

#include <errno.h>
#include <sys/socket.h>

#include <cstring>
#include <string>
#include <utility>

#include "softverbs/base/gid.h"
#include "softverbs/base/gid_table.h"
#include "softverbs/base/net_config.h"
#include "softverbs/cm/peer_socket.h"
#include "softverbs/cm/port_name.h"
#include "softverbs/nic/net_exchange.h"
#include "softverbs/nic/remote_links.h"

namespace softverbs::cm {
namespace {

Address ToAddress(const ibv_gid& gid, uint16_t port) {
  sockaddr_storage storage;
  ToSocketAddress(gid, port, &storage);
  return *Address::From(reinterpret_cast<const sockaddr*>(&storage));
}

bool PassDescriptor(int listener, int fd) {
  Message message = MakeMessage(MessageKind::kHandOver);
  iovec data{&message, sizeof(message)};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
  header.msg_iov = &data;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof(control);
  cmsghdr* rights = CMSG_FIRSTHDR(&header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(rights), &fd, sizeof(fd));
  return sendmsg(listener, &header, MSG_NOSIGNAL | MSG_DONTWAIT) ==
         static_cast<ssize_t>(sizeof(message));
}

// Hands another host's connection to the listener that it asks for, or refuses it.
void HandToListener(uint32_t space, uint16_t port, UniqueFd socket) {
  const auto own = OwnGid(socket.get());
  if (!own) return;  // it has hung up
  const Address destination = ToAddress(*own, port);
  const UniqueFd listener = UnnamedSocket();
  for (const std::string& name : ListenerNames(static_cast<rdma_port_space>(space), destination)) {
    const UnixName to = ToUnix(name);
    if (connect(listener.get(), reinterpret_cast<const sockaddr*>(&to.address), to.size) == 0) {
      const bool passed =
          PeerSocket::PeerIsTrusted(listener.get()) && PassDescriptor(listener.get(), socket.get());
      if (!passed) RefuseCaller(socket.get(), NetStatus::kNobody);
      return;
    }
    if (errno != ECONNREFUSED) return RefuseCaller(socket.get(), NetStatus::kBusy);
  }
  RefuseCaller(socket.get(), NetStatus::kNobody);
}

[[maybe_unused]] const bool handler_set = [] {
  RemoteLinks::SetServiceHandler(HandToListener);
  return true;
}();

}  // namespace

std::optional<Address> SourceForHost(const Address& destination) {
  const NetConfig* net = Net();
  const ibv_gid to = destination.Unmapped().ToGid();
  const bool reached = net != nullptr && IsSocketAddress(to) && !StaysOnThisHost(to) &&
                       IsMappedIpv4(to) == IsMappedIpv4(net->gid());
  if (!reached) return std::nullopt;
  return ToAddress(net->Nearest(to), 0);
}

}  // namespace softverbs::cm
