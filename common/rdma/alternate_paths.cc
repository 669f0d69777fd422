// The path of a queue pair is what the connection manager gave it. Which one it goes now follows
// from its migrations: devices need not say it (ibv_query_qp(3)).

#include "common/rdma/alternate_paths.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace gannet {
namespace {

bool IsSame(const ibv_ah_attr& one, const ibv_ah_attr& other) {
  return one.port_num == other.port_num && one.dlid == other.dlid &&
         one.is_global == other.is_global &&
         (one.is_global == 0 || std::memcmp(&one.grh.dgid, &other.grh.dgid, sizeof(ibv_gid)) == 0);
}

}  // namespace

bool HasAlternatePaths(ibv_context* verbs) {
  ibv_device_attr device{};
  if (ibv_query_device(verbs, &device) != 0) return false;
  if ((device.device_cap_flags & IBV_DEVICE_AUTO_PATH_MIG) == 0) return false;
  int ports = 0;
  for (uint8_t number = 1; number <= device.phys_port_cnt; ++number) {
    ibv_port_attr port{};
    if (ibv_query_port(verbs, number, &port) != 0) continue;
    ports += port.link_layer == IBV_LINK_LAYER_INFINIBAND;
  }
  return ports > 1;
}

std::optional<NetworkPath> PathOf(ibv_qp* qp) {
  ibv_qp_attr attributes{};
  ibv_qp_init_attr init{};
  const int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PKEY_INDEX | IBV_QP_TIMEOUT | IBV_QP_PATH_MTU;
  if (ibv_query_qp(qp, &attributes, mask, &init) != 0) return std::nullopt;
  if (attributes.qp_state != IBV_QPS_RTS || attributes.ah_attr.port_num == 0) return std::nullopt;
  return NetworkPath{.to = attributes.ah_attr,
                     .pkey_index = attributes.pkey_index,
                     .timeout = attributes.timeout,
                     .mtu = attributes.path_mtu};
}

std::optional<NetworkPath> OtherOfTwo(std::span<const NetworkPath> ways, const NetworkPath& own) {
  std::optional<NetworkPath> other;
  for (const NetworkPath& way : ways) {
    if (IsSame(way.to, own.to)) continue;
    if (other && !IsSame(way.to, other->to)) return std::nullopt;
    other = way;
  }
  const bool fits = other && other->to.port_num != own.to.port_num && other->mtu == own.mtu;
  return fits ? other : std::nullopt;
}

NetworkPath PathToItself(ibv_context* verbs, uint8_t port, const NetworkPath& like) {
  NetworkPath path = like;
  ibv_port_attr attributes{};
  ibv_query_port(verbs, port, &attributes);
  path.to = {.dlid = attributes.lid, .sl = like.to.sl, .port_num = port};
  return path;
}

bool AlternatePath::Modify(const ibv_qp_attr& attributes, int mask) {
  ibv_qp_attr copy = attributes;
  return ibv_modify_qp(qp_, &copy, mask) == 0;
}

// Once loaded, only a migration makes it MIGRATED.
bool AlternatePath::AskWhetherMoved() {
  ibv_qp_attr attributes{};
  ibv_qp_init_attr init{};
  if (ibv_query_qp(qp_, &attributes, IBV_QP_PATH_MIG_STATE, &init) != 0) return false;
  if (attributes.path_mig_state == IBV_MIG_MIGRATED) {
    state_ = State::kNotLoaded;
    at_home_ = !at_home_;
    home_was_down_ = false;
    return true;
  }
  state_ = attributes.path_mig_state == IBV_MIG_ARMED ? State::kArmed : State::kLoaded;
  return false;
}

// If its port was not down, something else on its way was, and may still be.
void AlternatePath::GoHomeIfItWasDown() {
  if (at_home_ || !home_was_down_ || state_ != State::kArmed) return;
  ibv_qp_attr attributes{};
  attributes.path_mig_state = IBV_MIG_MIGRATED;
  Modify(attributes, IBV_QP_PATH_MIG_STATE);
}

bool AlternatePath::Look() {
  bool moved = state_ != State::kNotLoaded && AskWhetherMoved();
  GoHomeIfItWasDown();
  const NetworkPath& next = at_home_ ? other_ : home_;
  const bool up = LookAtPort(qp_->context, next.to.port_num).up;
  if (!at_home_ && !up) home_was_down_ = true;
  if (state_ != State::kNotLoaded || !up) return moved;
  ibv_qp_attr attributes{};
  attributes.alt_ah_attr = next.to;
  attributes.alt_port_num = next.to.port_num;
  attributes.alt_pkey_index = next.pkey_index;
  attributes.alt_timeout = next.timeout;
  attributes.path_mig_state = IBV_MIG_REARM;
  if (Modify(attributes, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE)) state_ = State::kLoaded;
  return moved;
}

std::vector<AlternatePaths::Moved> AlternatePaths::Look(std::vector<Connection> open,
                                                        bool changed) {
  std::ranges::sort(open, {}, &Connection::session);
  ++looks_;
  for (const Connection& it : open) {
    Way& way = ways_[it.id];
    way.seen = looks_;
    way.due |= changed;
    if (!way.home) way.home = PathOf(it.qp);
  }
  std::erase_if(ways_, [this](const auto& way) { return way.second.seen != looks_; });
  for (auto from = open.begin(); from != open.end();) {
    const auto to =
        std::ranges::upper_bound(from, open.end(), from->session, {}, &Connection::session);
    Pair({from, to});
    from = to;
  }
  return Ask();
}

// Goes round, so that none waits for ever.
std::vector<AlternatePaths::Moved> AlternatePaths::Ask() {
  std::vector<Moved> moved;
  size_t asked = 0;
  auto at = ways_.lower_bound(next_);
  for (size_t left = ways_.size(); left > 0 && asked < kAsksMax; --left, ++at) {
    if (at == ways_.end()) at = ways_.begin();
    Way& way = at->second;
    if (!way.alternate || !way.due) continue;
    ++asked;
    if (way.alternate->Look()) moved.push_back({at->first, way.alternate->port()});
    way.due = !way.alternate->settled();
  }
  next_ = at == ways_.end() ? 0 : at->first;
  return moved;
}

void AlternatePaths::Pair(std::span<const Connection> connections) {
  for (const Connection& it : connections) {
    Way& way = ways_[it.id];
    if (!way.home || way.alternate) continue;
    std::vector<NetworkPath> ways;
    for (const Connection& other : connections) {
      const std::optional<NetworkPath>& its = ways_[other.id].home;
      if (its && other.qp->context == it.qp->context) ways.push_back(*its);
    }
    if (const auto other = OtherOfTwo(ways, *way.home)) {
      way.alternate.emplace(it.qp, *way.home, *other);
    }
  }
}

}  // namespace gannet
