#include "client/session/session_rails.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace gannet {

void SessionRails::Learn(const RailsReply& told) {
  const bool known = rails_.several();
  rails_.Learn(told, given_.options->rails);
  if (known) return;
  if (!rails_.several()) return given_.attempts->LearnRails({});
  given_.sends->UseRails();
  given_.requests->UseRails();
  given_.attempts->LearnRails(rails_.Addresses());
}

// Nothing of what the connection had in flight is posted again before it is flushed.
bool SessionRails::GiveUpOne(ClientConnection& connection, const absl::Status& why) {
  if (connection.index == 0 || !rails_.several()) return false;
  if (!connection.ready()) return true;
  given_.options->Log(false, absl::StrCat(std::string(why.message()), "; the rail ",
                                          connection.to.ToString(), " is tried again"));
  given_.sends->DropChainOf(connection);
  connection.over_ns = given_.options->clock.get().MonotonicNs();
  connection.BeginDrain();
  given_.waits->LookAtConnections();
  return true;
}

void SessionRails::Poll(int64_t now_ns) {
  if (!rails_.several()) return;
  for (ClientConnection& connection : *given_.connections) {
    if (connection.over_ns == 0) continue;
    const bool late = now_ns > connection.over_ns + kDrainNsMax;
    // Without READs nothing may still arrive. With them only the drain's completion tells that.
    const bool idle = connection.work.in_flight() == 0;
    const bool nothing_more = idle && given_.completions->all_taken();
    if (!connection.rdma().LookDrained(nothing_more, late && idle)) {
      if (!late) continue;
      return given_.phase->Break(absl::UnavailableError(absl::StrCat(
          given_.options->endpoint, ": the device does not flush a broken connection")));
    }
    connection.over_ns = 0;
    rails_[connection.rail].works += connection.work.posted();
    given_.requests->TakeLost(connection);  // whose work knows what is done
    given_.sends->rail_reads().TakeLost(connection);
    given_.heartbeats->OnReadsMoved();
  }
  given_.sends->RepostLost();
  if (now_ns >= paths_due_ns_) LookAtPaths(now_ns);
}

// A connection by a port of this device may go by the other one, too, if the server's device has
// two as well: the two ends of another connection say how.
void SessionRails::LookAtPaths(int64_t now_ns) {
  paths_due_ns_ = now_ns + kLookAtPathsNs;
  std::vector<AlternatePaths::Connection> open;
  for (const ClientConnection& it : *given_.connections) {
    if (it.ready() && HasPaths(it.qp()->context)) open.push_back({.id = it.id, .qp = it.qp()});
  }
  for (const AlternatePaths::Moved& moved : paths_.Look(std::move(open), true)) {
    const auto it = std::ranges::find(*given_.connections, moved.id, &ClientConnection::id);
    ++rails_[it->rail].moves;
    given_.options->Log(false, absl::StrCat(given_.options->endpoint, ": the connection to ",
                                            it->to.ToString(), " goes by port ", moved.port, " of ",
                                            it->qp()->context->device->name, " now"));
  }
}

bool SessionRails::HasPaths(ibv_context* verbs) {
  const auto [it, is_new] = have_paths_.try_emplace(verbs, false);
  if (is_new) it->second = HasAlternatePaths(verbs);
  return it->second;
}

SessionRails::Use SessionRails::UseOf(uint32_t rail) const {
  Use use{.works = rails_[rail].works, .moves = rails_[rail].moves};
  for (const ClientConnection& it : *given_.connections) {
    if (it.rail != rail || !it.ready()) continue;
    use.connected = true;
    use.armed = use.armed && paths_.armed(it.id);
    use.works += it.work.posted();
  }
  return use;
}

}  // namespace gannet
