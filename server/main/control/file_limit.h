#ifndef GANNET_SERVER_MAIN_CONTROL_FILE_LIMIT_H_
#define GANNET_SERVER_MAIN_CONTROL_FILE_LIMIT_H_

namespace gannet {

// Raises this process' limit of file descriptors as far as it may, because each connection and
// worker needs some. The limit that shells give is meant for programs that use select(). Logs a
// warning if that fails.
void RaiseFileLimit();

// So many descriptors are not for clients' connections, but for what has to go on without them: the
// journal's next segment, links between members, etcd, pages over HTTP.
inline constexpr int kReservedDescriptors = 64;
// Returns whether more than those are left.
bool HasDescriptorsForClients();

}  // namespace gannet

#endif  // GANNET_SERVER_MAIN_CONTROL_FILE_LIMIT_H_
