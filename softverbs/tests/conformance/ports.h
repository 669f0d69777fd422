#ifndef SOFTVERBS_TESTS_CONFORMANCE_PORTS_H_
#define SOFTVERBS_TESTS_CONFORMANCE_PORTS_H_

#include <string>

namespace conformance {

// Return whether a TCP socket, or an id of softverbs' connection manager, listens on the port.
bool TcpListens(int port);
bool RdmaListens(int port);

// Return a multicast address made from a port, and whether anybody is in its group.
std::string GroupOf(int port);
bool GroupHasMember(int port);

}  // namespace conformance

#endif  // SOFTVERBS_TESTS_CONFORMANCE_PORTS_H_
