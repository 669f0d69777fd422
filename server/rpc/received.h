#ifndef GANNET_SERVER_RPC_RECEIVED_H_
#define GANNET_SERVER_RPC_RECEIVED_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "server/memory/store/store.h"
#include "server/rpc/server_connection.h"

namespace gannet {

// A request that arrived in this Poll of a worker and is not served yet.
struct Received {
  ServerConnection* connection;
  const std::byte* data;
  uint32_t bytes;
  Store::Guess guess;  // for requests with a key

  std::span<const std::byte> message() const { return {data, bytes}; }
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_RECEIVED_H_
