#include "client/session/rail_reads.h"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace gannet {

ClientConnection* RailReads::Choose(ClientConnection* open, uint64_t bytes,
                                    ClientConnections& connections) {
  ClientConnection* to = nullptr;
  if (open != nullptr && turn_left_ > 0 && MayCarry(*open)) to = open;
  const uint32_t n = connections.size();
  for (uint32_t tried = 0; to == nullptr && tried < n; ++tried) {
    ClientConnection& next = connections[next_ % n];
    next_ = next_ + 1 < n ? next_ + 1 : 0;
    if (!MayCarry(next) || next.work.room() == 0) continue;
    to = &next;
    turn_left_ = ReadsPerTurn();
  }
  if (to == nullptr) return nullptr;
  turn_left_ = bytes >= kStripeBytesMin ? 0 : turn_left_ - 1;  // the next stripe goes elsewhere
  return to;
}

// READs are kept apart from requests on each rail that has another connection.
bool RailReads::MayCarry(const ClientConnection& connection) const {
  if (!connection.ready()) return false;
  if (!apart_ || !connections_->CarriesRequests(connection)) return true;
  return std::ranges::none_of(*connections_, [&](const ClientConnection& it) {
    return it.index != connection.index && it.ready() && it.rail == connection.rail;
  });
}

uint32_t RailReads::StripeBytes(uint32_t value_bytes) const {
  if (!several_ || value_bytes < kStripedBytesMin) return value_bytes;
  const auto n = std::ranges::count_if(*connections_,
                                       [this](const ClientConnection& it) { return MayCarry(it); });
  const auto stripes = static_cast<uint32_t>(std::max<ptrdiff_t>(n, 1));
  return (value_bytes / stripes + kStripeStep) / kStripeStep * kStripeStep;
}

void RailReads::TakeLost(ClientConnection& connection) {
  connection.kept_reads.TakeUnfinished(
      connection.work, [this](KeptReads::Read read) { lost_.push_back(std::move(read)); });
  connection.work = InFlightWork(1);
  connection.told_of = 0;
}

}  // namespace gannet
