#include "server/rpc/slow_requests.h"

#include <cstring>

namespace gannet {

void SlowRequests::NoteIfSlow(const ServerConnection& connection, const RequestHeader& header,
                              std::string_view key, int64_t ns) const {
  if (log_ == nullptr || !log_->IsSlow(ns)) return;
  const auto holder = connection_ids_.HolderOf(connection.id);
  std::string_view peer;
  if (holder) peer = {holder->peer.data(), strnlen(holder->peer.data(), holder->peer.size())};
  SlowEntry entry = MakeSlowEntry(header, key, peer, ns);
  entry.time_ms = now_.server_time.ms();
  entry.session_id = connection.session->id();
  log_->Add(entry);
}

}  // namespace gannet
