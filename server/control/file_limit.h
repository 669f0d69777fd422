#ifndef GANNET_SERVER_CONTROL_FILE_LIMIT_H_
#define GANNET_SERVER_CONTROL_FILE_LIMIT_H_

namespace gannet {

// Raises this process' limit of file descriptors as far as it may, because each connection and
// worker needs some. The limit that shells give is meant for programs that use select(). Logs a
// warning if that fails.
void RaiseFileLimit();

}  // namespace gannet

#endif  // GANNET_SERVER_CONTROL_FILE_LIMIT_H_
