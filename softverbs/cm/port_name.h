#ifndef SOFTVERBS_CM_PORT_NAME_H_
#define SOFTVERBS_CM_PORT_NAME_H_

#include <rdma/rdma_cma.h>
#include <sys/un.h>

#include <string>
#include <vector>

#include "softverbs/base/unique_fd.h"
#include "softverbs/cm/cm_address.h"

namespace softverbs::cm {

// rdma_cm ports of this host. A port of an address belongs to whoever has bound the abstract UNIX
// name made of both. So the kernel is the registry across processes and users, and a killed process
// leaves nothing behind. The socket that holds the name later listens or connects.
//
//   softverbs/cm/0106/127.0.0.1/7471        port space TCP, one address
//   softverbs/cm/0106/0.0.0.0/7471          all IPv4 addresses
//   softverbs/cm/0106/::/7471               all addresses
//   softverbs/cm/0106/::/7471/v6only        all IPv6 addresses (RDMA_OPTION_ID_AFONLY)

struct UnixName {
  sockaddr_un address;
  socklen_t size;
};

UnixName ToUnix(const std::string& name);

// Returns the names under which a listener for `destination` may be found, the most specific first.
std::vector<std::string> ListenerNames(rdma_port_space ps, const Address& destination);

// Who uses an ephemeral port. Listeners and sources take theirs from different ranges, so that the
// (frequent) choice of a source port need not look for wildcard listeners.
enum class PortUse { kListener, kSource };

// Claims `address`. For port 0, chooses a port and stores it there. On success `*holder` holds the
// name: a non-blocking SOCK_SEQPACKET socket, neither listening nor connected. Returns 0 or an
// errno: EADDRINUSE also if a wildcard claim and a specific one would overlap on a chosen port.
int ClaimPort(rdma_port_space ps, bool v6only, PortUse use, Address* address, UniqueFd* holder);

// Returns such a socket without a name. On failure it is empty, and errno says why.
UniqueFd UnnamedSocket();

}  // namespace softverbs::cm

#endif  // SOFTVERBS_CM_PORT_NAME_H_
