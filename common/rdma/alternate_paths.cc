// The path of a queue pair is what the connection manager gave it. Which one it goes now follows
// from its migrations: devices need not say it (ibv_query_qp(3)).

#include "common/rdma/alternate_paths.h"

#include <algorithm>
#include <utility>

namespace gannet {

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
  const int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PKEY_INDEX | IBV_QP_TIMEOUT;
  if (ibv_query_qp(qp, &attributes, mask, &init) != 0) return std::nullopt;
  if (attributes.qp_state != IBV_QPS_RTS || attributes.ah_attr.port_num == 0) return std::nullopt;
  return NetworkPath{
      .to = attributes.ah_attr, .pkey_index = attributes.pkey_index, .timeout = attributes.timeout};
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
  Pair(open);
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

bool AlternatePaths::IsSibling(const Connection& one, const Connection& other) {
  const std::optional<NetworkPath>& way = ways_[one.id].home;
  return one.qp->context == other.qp->context && way &&
         way->to.port_num != ways_[other.id].home->to.port_num;
}

void AlternatePaths::Pair(std::span<const Connection> open) {
  for (const Connection& it : open) {
    Way& way = ways_[it.id];
    if (!way.home || way.alternate) continue;
    const auto from = std::ranges::lower_bound(open, it.session, {}, &Connection::session);
    const auto found = std::find_if(from, open.end(), [&](const Connection& other) {
      return other.session != it.session || IsSibling(other, it);
    });
    if (found == open.end() || found->session != it.session) continue;
    way.alternate.emplace(it.qp, *way.home, *ways_[found->id].home);
  }
}

}  // namespace gannet
