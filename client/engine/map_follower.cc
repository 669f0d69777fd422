// Asks for the map of a cluster, and makes servers and routes of it. A newer map is taken in a
// fixed order: groups get sessions, operations whose partition changed are told, and only then may
// sessions count leases for that map. A group that is gone is dropped when no operation is alive,
// because operations know servers by their numbers.

#include "client/engine/map_follower.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/engine/server_maker.h"
#include "client/routing/endpoint.h"
#include "common/base/check.h"
#include "common/protocol/limits.h"

namespace gannet {

MapFollower::MapFollower(Dependencies given, std::vector<Router::Server> listed)
    : given_(std::move(given)),
      readers_(listed.size()),
      listed_(std::move(listed)),
      names_(listed_.size()),
      several_(listed_.size()),
      changes_(kPartitions) {}

void MapFollower::OnReady(uint32_t server, Comeback comeback) {
  if (given_.servers->session(server).grant().history == 0) return;  // in no group
  MapReader& reader = readers_[readers_.size() == 1 ? 0 : server];
  // A group that the map has told of need not tell it again.
  if (comeback == Comeback::kFirst && reader.answered()) return;
  reader.OnConnected(given_.ops->now_ns());
  given_.ops->LookAt(reader.due_ns());
}

void MapFollower::OnLost(uint32_t server) {
  for (MapReader& reader : readers_) reader.OnLost(server, given_.ops->now_ns());
  given_.ops->LookAt(given_.ops->now_ns());
}

void MapFollower::OnReply(uint32_t server, const ReplyView& reply) {
  const uint32_t number = readers_.size() == 1 ? 0 : server;
  MapReader& reader = readers_[number];
  given_.ops->LookAt(given_.ops->now_ns());
  if (reader.OnReply(server, reply, given_.ops->now_ns())) whole_.push_back(number);
}

bool MapFollower::Look() {
  moved_ = false;
  for (const uint32_t number : std::exchange(whole_, {})) {
    if (readers_[number].unchanged()) given_.rerouting->TryAgain();
    if (std::optional<PartitionMap> map = readers_[number].Take()) Take(number, *std::move(map));
  }
  if (drops_ && given_.ops->not_free() == 0) DropGroups();
  if (!leaving_.empty()) EndLeaving();
  for (uint32_t i = 0; i < readers_.size(); ++i) LookAt(i);
  if (drops_) given_.ops->LookAt(given_.ops->now_ns() + kDropNs);
  return moved_;
}

void MapFollower::LookAt(uint32_t number) {
  MapReader& reader = readers_[number];
  const int64_t now_ns = given_.ops->now_ns();
  if (readers_.size() == 1) reader.WantSoon(NeedsMap(), now_ns);
  if (reader.due_ns() <= now_ns) {
    const uint32_t server = WhomToAsk(number);
    if (server != kInvalidOp) {
      given_.servers->AskForMap(server, reader.Ask(server, now_ns));
    } else {
      // As soon as one is connected, OnReady comes. Until then nobody can be asked.
      given_.ops->LookAt(now_ns + MapReader::kPatienceNs);
    }
  }
  if (reader.due_ns() > now_ns) given_.ops->LookAt(reader.due_ns());
}

// Returns kInvalidOp if nobody can be asked now. Of several groups any will do, but rather another
// one than that which has not answered for long.
uint32_t MapFollower::WhomToAsk(uint32_t number) const {
  const ServerSet& servers = *given_.servers;
  const uint32_t silent = readers_[number].silent_server();
  if (readers_.size() > 1) {
    return silent == kInvalidOp && servers.session(number).CanAskForMap() ? number : kInvalidOp;
  }
  const uint32_t teller = readers_[number].teller();
  if (teller != silent && teller < servers.size() && servers.session(teller).CanAskForMap()) {
    return teller;
  }
  for (uint32_t server = 0; server < servers.size(); ++server) {
    if (server != silent && servers.session(server).CanAskForMap()) return server;
  }
  return kInvalidOp;
}

// Returns whether the client cannot do without a newer map.
bool MapFollower::NeedsMap() const {
  if (homeless_ > 0 || given_.rerouting->AnyWaits()) return true;
  for (const EngineServer& server : *given_.servers) {
    if (server.session->heartbeats().map_is_old()) return true;
  }
  return false;
}

void MapFollower::Take(uint32_t number, PartitionMap map) {
  const bool one_group = map.groups.size() == 1 && map.revision == 0;
  if (readers_.size() > 1) return TakeOfOneGroup(number, map);
  if (one_group && !given_.servers->router().has_routes()) {
    names_[0] = map.groups[0].name;
    given_.servers->LearnMembers(0, map.groups[0].addresses, /*only=*/false);
    map_ = std::move(map);
    return given_.rerouting->TryAgain();
  }
  const bool first = !given_.servers->router().has_routes();
  if (!first && map.revision < map_->revision) return;  // a member that learns late told it
  if (first) NameFirst(map);
  if (first || map.revision > map_->revision) readers_[0].OnNewer();
  const bool added = AddGroups(map);
  if (first || added || map.revision > map_->revision) {
    SetRoutes(std::move(map));
  } else {
    given_.rerouting->TryAgain();
    map_ = std::move(map);
  }
  readers_[0].SetKnown(homeless_ == 0 ? map_->revision : 0);
  TellMembers(*map_);
}

// The user listed several servers, of which this is one.
void MapFollower::TakeOfOneGroup(uint32_t server, const PartitionMap& map) {
  const bool alone = map.groups.size() == 1 && map.revision == 0;
  if (!alone && !several_[server]) {
    given_.maker->Warn(absl::StrCat(listed_[server].endpoint,
                                    ": its cluster has changed, so this client cannot use it "
                                    "beside other servers; list one of its members alone"));
  }
  several_[server] = !alone;
  if (map.groups.size() == 1) {
    given_.servers->LearnMembers(server, map.groups[0].addresses, /*only=*/false);
  }
}

// Finds the group that the user listed: the one that the client knew by its name, the only one, or
// the one with the address of the connection. If it is none of them, it will be dropped.
void MapFollower::NameFirst(const PartitionMap& map) {
  const std::string connected = given_.servers->session(0).attempts().address().ToString();
  const auto is_mine = [&](const PartitionMap::Group& group) {
    if (!names_[0].empty()) return group.name == names_[0];
    return map.groups.size() == 1 ||
           std::ranges::find(group.addresses, connected) != group.addresses.end();
  };
  const auto mine = std::ranges::find_if(map.groups, is_mine);
  if (mine == map.groups.end()) return;
  names_[0] = mine->name;
  // Nothing is remembered before the first operation, so the servers can share the memory for that.
  if (given_.ops->not_free() == 0 && !map_) {
    given_.servers->Share(static_cast<uint32_t>(map.groups.size()));
    PointAtServers();
  }
}

// Returns whether a group has a server that it had not before.
bool MapFollower::AddGroups(const PartitionMap& map) {
  const uint32_t before = given_.servers->size();
  for (const PartitionMap::Group& group : map.groups) {
    if (ServerOfGroup(group.name) != kInvalidOp) continue;
    std::vector<SocketAddress> addresses = AddressesOf(group);
    if (addresses.empty()) continue;
    given_.servers->Add(given_.maker->MakeGroup(given_.servers->size(), group.addresses,
                                                std::move(addresses),
                                                static_cast<uint32_t>(map.groups.size())));
    names_.push_back(group.name);
  }
  if (given_.servers->size() == before) return false;
  PointAtServers();
  return true;
}

// Names are looked up in another thread, as DNS may block. The next look at the map comes soon.
std::vector<SocketAddress> MapFollower::AddressesOf(const PartitionMap::Group& group) {
  std::vector<SocketAddress> addresses;
  for (const std::string& text : group.addresses) {
    if (auto address = NumericAddress(text, kDefaultPort)) addresses.push_back(*address);
  }
  if (!addresses.empty() || group.addresses.empty()) return addresses;
  std::shared_ptr<NameLookup>& lookup = lookups_[group.name];
  if (lookup == nullptr) lookup = NamesOf({.addresses = group.addresses, .group = true});
  lookup->Ask();
  std::optional<std::vector<SocketAddress>> found = lookup->Take();
  if (!found) return {};
  lookups_.erase(group.name);
  return *std::move(found);
}

// The user may have listed members of several groups. The first group's session must not take one
// of another group for its own.
void MapFollower::TellMembers(const PartitionMap& map) {
  for (const PartitionMap::Group& group : map.groups) {
    const uint32_t server = ServerOfGroup(group.name);
    if (server != kInvalidOp) {
      given_.servers->LearnMembers(server, group.addresses, /*only=*/true);
    }
  }
}

// Operations are told first: no session must have a lease for the new map before.
void MapFollower::SetRoutes(PartitionMap map) {
  std::vector<Router::Server> servers;
  for (uint32_t i = 0; i < given_.servers->size(); ++i) {
    const ClientSession& session = given_.servers->session(i);
    const std::string name = names_[i].empty() ? session.endpoint() : names_[i];
    servers.push_back({session.endpoint(), name, session.attempts().address().ToString()});
  }
  moved_ = true;
  OpRerouting::Changed changed;
  std::vector<Router::Route> routes(kPartitions);
  homeless_ = 0;
  for (uint32_t p = 0; p < kPartitions; ++p) {
    changed[p] = map.ChangedAt(p) != (map_ ? map_->ChangedAt(p) : 0);
    changes_[p] += changed[p];
    const uint32_t server = ServerOfGroup(map.groups[map.partitions[p]].name);
    homeless_ += server == kInvalidOp;
    routes[p] = {.server = static_cast<uint16_t>(server == kInvalidOp ? 0 : server),
                 .served = server != kInvalidOp && !map.IsClosed(p),
                 .changes = changes_[p]};
  }
  drops_ = std::ranges::any_of(names_, [&](const std::string& name) {
    return std::ranges::none_of(map.groups, [&](const auto& group) { return group.name == name; });
  });
  map_ = std::move(map);
  given_.servers->SetRoutes(std::move(servers), std::move(routes));
  given_.rerouting->OnRoutes(changed, map_->revision);
  given_.servers->SetMapRevision(map_->revision);
}

// REQUIRES: no operation is alive, so nobody knows servers by their numbers.
void MapFollower::DropGroups() {
  GANNET_CHECK(given_.ops->alive() == 0, "operations know servers by their numbers");
  for (uint32_t i = given_.servers->size(); i-- > 0;) {
    const auto is_it = [&](const PartitionMap::Group& group) { return group.name == names_[i]; };
    if (std::ranges::any_of(map_->groups, is_it) || given_.servers->size() == 1) continue;
    leaving_.push_back(given_.servers->Drop(i));
    leaving_.back().session->BeginEnd(given_.ops->now_ns());
    names_.erase(names_.begin() + i);
    readers_[0].ForgetServers(given_.ops->now_ns());
  }
  PointAtServers();
  PartitionMap same = *map_;
  SetRoutes(std::move(same));
}

// Nothing leads to these sessions any more. The server may take its time to hear the last of them,
// and the device to flush their queues, and no operation should wait for that.
void MapFollower::EndLeaving() {
  const int64_t now_ns = given_.ops->now_ns();
  leaving_.remove_if([now_ns](EngineServer& server) { return server.session->PollEnd(now_ns); });
  if (!leaving_.empty()) given_.ops->LookAt(now_ns + kLeaveNs);
}

void MapFollower::PointAtServers() {
  moved_ = true;
  ServerSet& servers = *given_.servers;
  for (Op& op : *given_.ops) {
    if (op.server == servers.waiting_or_null() && op.phase != Op::Phase::kFree) continue;
    const bool free = op.phase == Op::Phase::kFree;
    op.server = &servers[free ? 0 : op.request.server];
    if (free) op.FindBuffers();
  }
}

uint32_t MapFollower::ServerOfGroup(const std::string& name) const {
  const auto it = std::ranges::find(names_, name);
  return it == names_.end() ? kInvalidOp : static_cast<uint32_t>(it - names_.begin());
}

std::optional<absl::Status> MapFollower::StartStatus() const {
  const ServerSet& servers = *given_.servers;
  for (uint32_t i = 0; i < servers.size(); ++i) {
    const bool in_group = servers.session(i).ready() && servers.session(i).grant().history != 0;
    if (in_group && !readers_[readers_.size() == 1 ? 0 : i].answered()) return std::nullopt;
    if (readers_.size() > 1 && several_[i]) {
      return absl::InvalidArgumentError(absl::StrCat(
          servers.session(i).endpoint(),
          " is a group of a cluster of several groups. Name no other servers beside it: one member "
          "is enough to find all"));
    }
  }
  if (homeless_ == 0) return absl::OkStatus();
  return absl::UnavailableError("no member of a group of the cluster has been started yet");
}

}  // namespace gannet
