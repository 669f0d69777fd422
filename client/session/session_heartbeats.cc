// Sends heartbeats that are due, with what the client has to tell, and takes the answers: the
// server's time, the lease, and news of the index. An index is adopted here only; lookups that are
// under way notice it by their checksums.

#include "client/session/session_heartbeats.h"

#include <cstring>
#include <optional>

#include "common/protocol/index_news.h"

namespace gannet {

void SessionHeartbeats::Restart(int64_t now_ns) {
  const SessionTerms& terms = *given_.terms;
  ClientConnection& first = given_.connections->first();
  index_watch_.Restart(terms.grant.index);
  leases_from_ = 0;
  server_time_.Forget();
  if (given_.options->server_clock) LearnTime(terms.grant.time_ms, first.asked_ns);
  given_.news->Restart(terms.grant, now_ns, Liveness::HeartbeatNs(terms.silence_ns()));
}

void SessionHeartbeats::SendDue(int64_t now_ns) {
  LookAtIndex();
  if (given_.news->CanSend(given_.connections->first(), now_ns)) SendNews(now_ns);
  for (ClientConnection& connection : *given_.connections) {
    const bool first = connection.index == 0;
    const bool due = connection.ready() && (connection.liveness.HeartbeatDue(now_ns) ||
                                            (first && index_watch_.HeartbeatDue()));
    if (!due || connection.work.room() == 0 || !connection.liveness.MayAsk()) continue;
    Send(connection, now_ns);
    given_.sends->Post();
  }
}

void SessionHeartbeats::AskForLease(int64_t now_ns, bool busy) {
  if (!given_.lease->AskDue(now_ns, busy)) return;
  ClientConnection& first = given_.connections->first();
  given_.lease->OnAsked(now_ns);
  if (first.work.room() == 0 || !first.liveness.MayAsk()) return;  // those on their way will tell
  Send(first, now_ns);
}

void SessionHeartbeats::Send(ClientConnection& connection, int64_t now_ns) {
  const SessionMemory& memory = **given_.memory;
  memory.SetIndexKnown(index_watch_.known());
  given_.sends->AddMessage(connection, memory.heartbeat(), sizeof(RequestHeader), now_ns);
  connection.liveness.OnHeartbeatSent(now_ns);
  if (connection.index == 0) index_watch_.OnHeartbeatSent();
}

// Sends a heartbeat with news. REQUIRES: they can be sent.
void SessionHeartbeats::SendNews(int64_t now_ns) {
  const SessionMemory& memory = **given_.memory;
  ClientConnection& first = given_.connections->first();
  memory.SetIndexKnown(index_watch_.known());
  RequestHeader heartbeat;
  std::memcpy(&heartbeat, memory.heartbeat(), sizeof(heartbeat));
  std::byte* const message = memory.news_message();
  const uint32_t bytes =
      given_.news->Take(now_ns, {given_.connections->begin(), given_.connections->end()}, heartbeat,
                        {message, kMessageBytesMax});
  given_.sends->AddMessage(first, message, bytes, now_ns);
  first.liveness.OnHeartbeatSent(now_ns);
  given_.news->OnSent(first.liveness.heartbeats_sent());
  given_.sends->Post();
}

// READs that are queued may be of an older index than those that follow.
void SessionHeartbeats::LookAtIndex() {
  if (!index_watch_.WaitsForReads() || given_.sends->queued() > 0) return;
  given_.sends->Post();
  if (given_.phase->ready()) {
    index_watch_.LookAt({given_.connections->begin(), given_.connections->end()});
  }
}

void SessionHeartbeats::OnReply(ClientConnection& connection, const ReplyView& reply,
                                int64_t now_ns) {
  if (reply.header.opcode != static_cast<uint8_t>(Opcode::kHeartbeat)) return;
  const std::optional<int64_t> asked_ns = connection.liveness.OnHeartbeatAnswered();
  const uint64_t time_ms = reply.header.clock.time_ms;
  if (given_.lease->on() && asked_ns.has_value()) OnLease(reply.header, *asked_ns, now_ns);
  if (connection.index == 0) index_watch_.OnHeartbeatAnswered();
  if (!reply.value.empty()) AdoptIndex(reply.value);
  if (!asked_ns.has_value() || time_ms == 0 || !given_.options->server_clock) return;
  LearnTime(time_ms, *asked_ns);
}

// The clock is read after the answer was taken. If a client that was stopped in between took the
// time of its Poll, it would take the server's clock to be further, and items for over.
void SessionHeartbeats::LearnTime(uint64_t time_ms, int64_t asked_ns) {
  const int64_t heard_ns = given_.options->clock.get().MonotonicNs();
  server_time_.OnTold(ServerTime::FromMs(time_ms), asked_ns, heard_ns);
}

// If the server's group does not serve all that the owner's map says, there is no lease for it.
void SessionHeartbeats::OnLease(const ReplyHeader& reply, int64_t asked_ns, int64_t now_ns) {
  leases_from_ = reply.clock.leases_from;
  if (!map_is_old()) return given_.lease->OnTold(reply.primary_lease_ms, asked_ns, now_ns);
  if (reply.primary_lease_ms > 0) given_.lease->OnToldOthers(reply.primary_lease_ms, asked_ns);
  given_.reports->OnOldMap();
}

void SessionHeartbeats::SetMapRevision(uint64_t revision) {
  const bool was_old = map_is_old();
  map_revision_ = revision;
  if (was_old && !map_is_old()) given_.lease->AskAnew();
}

// Lookups that are under way notice it by the checksums, which include the generation.
void SessionHeartbeats::AdoptIndex(std::string_view bytes) {
  IndexView& view = given_.terms->view;
  const std::optional<IndexNews> news = IndexNews::Decode(bytes, view.region_bytes);
  if (!news || news->index.generation < view.index.generation) return;
  view.index = news->index;
  view.next = news->next;
  index_watch_.OnNews(*news);
}

}  // namespace gannet
