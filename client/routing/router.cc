// Names of servers, and which of them has a key. All that depends on names is computed in Update
// when a server told one, so a key is routed without looking at them.

#include "client/routing/router.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/hash.h"
#include "common/protocol/partition_map.h"

namespace gannet {
namespace {

// Servers compare this hash, too: docs/protocol.md.
constexpr uint64_t kHashOfOneServer = 1;

absl::Status SameName(const std::string& name, const std::string& a, const std::string& b) {
  return absl::InvalidArgumentError(
      absl::StrCat("the servers at ", a, " and ", b, " are both called ", name,
                   "; list each server once, and give each a --name of its own"));
}

absl::Status WrongName(const Router::Server& server, const std::string& name) {
  if (name.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(server.endpoint, ": the server at ", server.address,
                     " has no name; start it with --name=", server.name));
  }
  return absl::FailedPreconditionError(absl::StrCat(server.endpoint, ": the server at ",
                                                    server.address, " calls itself ", name,
                                                    ", not ", server.name));
}

}  // namespace

absl::StatusOr<Router> Router::Create(std::vector<Server> servers) {
  Router router(std::move(servers));
  absl::Status status = router.CheckNames();
  if (!status.ok()) return status;
  return router;
}

Router::Router(std::vector<Server> servers)
    : servers_(std::move(servers)), told_(servers_.size()), rendezvous_({}) {
  Update();
}

void Router::SetRoutes(std::vector<Server> servers, std::vector<Route> routes) {
  GANNET_CHECK(routes.size() == kPartitions, "there is a route for each partition");
  servers_ = std::move(servers);
  routes_ = std::move(routes);
  told_.assign(servers_.size(), std::nullopt);
  Update();
}

uint32_t Router::ServerOfSeveral(std::string_view key) const {
  return has_routes() ? RouteOf(PartitionOf(key)).server : rendezvous_.ServerOf(key);
}

const std::string& Router::CurrentName(uint32_t server) const {
  const Server& it = servers_[server];
  if (!it.name.empty()) return it.name;
  const std::optional<std::string>& told = told_[server];
  return told.has_value() && !told->empty() ? *told : it.address;
}

absl::Status Router::CheckNames() const {
  for (uint32_t a = 0; a < servers_.size(); ++a) {
    for (uint32_t b = a + 1; b < servers_.size(); ++b) {
      if (CurrentName(a) == CurrentName(b)) {
        return SameName(CurrentName(a), servers_[a].endpoint, servers_[b].endpoint);
      }
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> Router::OnName(uint32_t server, std::string_view name) {
  if (has_routes()) return false;
  const Server& it = servers_[server];
  if (!it.name.empty() && it.name != name) return WrongName(it, std::string(name));
  std::optional<std::string> before = std::exchange(told_[server], std::string(name));
  if (absl::Status status = CheckNames(); !status.ok()) {
    told_[server] = std::move(before);
    return status;
  }
  const std::vector<std::string> names = names_;
  Update();
  return names != names_;
}

uint64_t Router::HashOfSet() const {
  if (servers_.size() == 1) return kHashOfOneServer;
  std::vector<uint64_t> hashes;
  for (uint32_t i = 0; i < servers_.size(); ++i) {
    if (servers_[i].name.empty() && !told_[i].has_value()) return 0;
    hashes.push_back(Xxh3(names_[i].data(), names_[i].size(), 0));
  }
  std::ranges::sort(hashes);
  return std::max<uint64_t>(Xxh3(hashes.data(), hashes.size() * sizeof(hashes[0]), 0), 1);
}

// Computes everything that depends on the names that servers told.
void Router::Update() {
  names_.clear();
  one_ = servers_.size() == 1 && !has_routes();
  std::optional<uint32_t> named;
  std::optional<uint32_t> unreached;
  for (uint32_t i = 0; i < servers_.size(); ++i) {
    names_.push_back(CurrentName(i));
    if (told_[i].has_value() && !told_[i]->empty()) named = i;
    if (!told_[i].has_value() && servers_[i].name.empty()) unreached = i;
  }
  rendezvous_ = Rendezvous(names_);
  set_hash_ = HashOfSet();
  status_ = absl::OkStatus();
  if (!named.has_value() || !unreached.has_value()) return;
  const std::string& endpoint = servers_[*unreached].endpoint;
  status_ = absl::UnavailableError(absl::StrCat(
      "the server at ", endpoint, " was not reached yet, so its name is not known; as ",
      servers_[*named].endpoint, " is called ", names_[*named],
      ", names decide which server has a key: write NAME@", endpoint, " to use the others"));
}

}  // namespace gannet
