#ifndef GANNET_CLIENT_SESSION_SESSION_OPTIONS_H_
#define GANNET_CLIENT_SESSION_SESSION_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/session/memory_domains.h"
#include "client/session/send_chain.h"
#include "common/auth/auth_file.h"
#include "common/base/client_clock.h"
#include "common/rdma/address.h"
#include "common/rdma/name_lookup.h"

namespace gannet {

// What the owner of a ClientSession wants of it.
struct SessionOptions {
  uint32_t number = 0;   // among the owner's sessions
  std::string endpoint;  // as the user wrote it
  std::vector<SocketAddress> addresses;
  bool group = false;                 // they are those of a group's members
  std::shared_ptr<NameLookup> names;  // that the addresses are of; null: of none
  std::string device;                 // "auto", "soft" or a name
  uint32_t ops = 0;                   // operations whose buffers it has
  uint32_t connections_max = 1;       // for READs: as many as are needed for reads_wanted, at most
  uint32_t reads_wanted = 0;          // in flight
  int64_t connect_timeout_ns = 0;
  bool reconnect = true;
  bool nic_locks = true;                    // false: as if the local device had no atomics
  bool server_clock = true;                 // false: as if nothing were known of the server's clock
  uint32_t rails = 1;                       // of the server, that are used at most
  bool item_leases = false;                 // asks where the server's leases on items are
  uint32_t signal_every = SendChain::kMax;  // work requests, beside the last of a chain
  std::reference_wrapper<const ClientClock> clock;                   // outlives the session
  std::shared_ptr<MemoryDomains> domains = MemoryDomains::Create();  // shared with other sessions
  // Its first key is this client's; null: none. Shared with the owner's other sessions, and read
  // again with each first connection.
  std::shared_ptr<AuthFile> auth_file;
  std::function<void(bool error, const std::string&)> log;

  void Log(bool error, const std::string& line) const {
    if (log) log(error, line);
  }
};

}  // namespace gannet

#endif  // GANNET_CLIENT_SESSION_SESSION_OPTIONS_H_
