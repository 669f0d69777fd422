#ifndef GANNET_CLIENT_C_CLIENT_HANDLE_H_
#define GANNET_CLIENT_C_CLIENT_HANDLE_H_

#include <gannet/client.h>
#include <gannet/gannet.h>

#include <cstddef>
#include <memory>

// What C calls a gannet_client. Its functions are in client.cc, client_writes.cc,
// client_locks.cc and observed.cc.
struct gannet_client {
  std::unique_ptr<gannet::Client> client;
  size_t servers = 0;
};

#endif  // GANNET_CLIENT_C_CLIENT_HANDLE_H_
