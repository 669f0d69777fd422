#ifndef GANNET_CLIENT_ENGINE_SERVER_MAKER_H_
#define GANNET_CLIENT_ENGINE_SERVER_MAKER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/engine/engine.h"
#include "client/engine/engine_server.h"
#include "client/routing/endpoint.h"
#include "client/session/client_session.h"
#include "client/session/session_owner.h"
#include "common/auth/auth_file.h"
#include "common/base/server_list.h"
#include "common/rdma/address.h"

namespace gannet {

// Makes an EngineServer for each server, with what all of them share: settings, keys, and the
// user's log. Lives as long as the engine.
class ServerMaker {
 public:
  // `first`: the addresses of the first server of the user's list.
  ServerMaker(const Engine::Settings& settings, ServerAddresses first, uint32_t slots,
              std::shared_ptr<AuthFile> auth_file, SessionOwner* owner)
      : settings_(settings),
        first_(std::move(first)),
        slots_(slots),
        auth_file_(std::move(auth_file)),
        owner_(owner) {}

  // The server is one of `share`, and gets that part of the location cache.
  EngineServer Make(uint32_t number, std::string endpoint, ServerAddresses addresses,
                    uint32_t share) const {
    EngineServer server(settings_.options.location_cache_bytes / share, slots_,
                        std::make_unique<ClientSession>(
                            OptionsOf(number, std::move(endpoint), std::move(addresses)), owner_));
    if (const uint64_t bytes = settings_.options.near_cache_bytes; bytes > 0) {
      server.near_cache = std::make_unique<NearCache>(bytes);
      server.near_cache->Share(share);
    }
    return server;
  }
  // The same for a group with these members, "HOST:PORT" each, and these addresses.
  EngineServer MakeGroup(uint32_t number, const std::vector<std::string>& members,
                         std::vector<SocketAddress> addresses, uint32_t share) const {
    return Make(number, absl::StrCat(std::string(kGroupPrefix), absl::StrJoin(members, ",")),
                {std::move(addresses), true, nullptr}, share);
  }
  // See ServerSet::waiting.
  std::unique_ptr<EngineServer> MakeWaiting() const {
    return std::make_unique<EngineServer>(Make(UINT32_MAX, "", first_, UINT32_MAX));
  }

  // Writes a line to the user's log, if there is one.
  void Warn(std::string_view line) const {
    if (settings_.options.log) settings_.options.log(LogLevel::kWarning, line);
  }

 private:
  ClientSession::Options OptionsOf(uint32_t number, std::string endpoint,
                                   ServerAddresses addresses) const {
    const Options& options = settings_.options;
    return {.number = number,
            .endpoint = std::move(endpoint),
            .addresses = std::move(addresses.all),
            .group = addresses.group,
            .names = std::move(addresses.names),
            .device = options.device,
            .ops = 2 * options.depth,
            .connections_max = settings_.connections_max,
            .reads_wanted = options.depth,
            .connect_timeout_ns = TimeoutNs(options.connect_timeout),
            .reconnect = options.reconnect,
            .nic_locks = settings_.nic_locks,
            .server_clock = settings_.server_clocks,
            .rails = options.rails,
            .item_leases = options.near_cache_bytes > 0,
            .signal_every = settings_.signal_every,
            .clock = settings_.clock,
            .domains = settings_.domains,
            .auth_file = auth_file_,
            .log = SessionLog()};
  }
  std::function<void(bool, const std::string&)> SessionLog() const {
    if (!settings_.options.log) return nullptr;
    return [log = settings_.options.log](bool error, const std::string& line) {
      log(error ? LogLevel::kWarning : LogLevel::kInfo, line);
    };
  }

  const Engine::Settings settings_;
  const ServerAddresses first_;
  const uint32_t slots_;
  const std::shared_ptr<AuthFile> auth_file_;
  SessionOwner* const owner_;
};

}  // namespace gannet

#endif  // GANNET_CLIENT_ENGINE_SERVER_MAKER_H_
