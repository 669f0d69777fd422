// The servers as a whole: when a client can start, what they are called, and so whose keys are
// whose.

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/engine/engine.h"
#include "client/session/handshake.h"
#include "common/rdma/device.h"

namespace gannet {
namespace {

// Time may mend it. Everything else is for a person to mend, at once.
bool MayPass(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

// Why a server is not connected.
std::string CauseOf(const ClientSession& session) {
  const std::string cause = session.status().ok() ? "no answer within the connect timeout"
                                                  : std::string(session.status().message());
  if (cause.find(session.endpoint()) != std::string::npos) return cause;
  return absl::StrCat(session.endpoint(), ": ", cause);
}

}  // namespace

std::optional<absl::Status> Engine::StartStatus(bool last_call) {
  uint32_t ready = 0;
  uint32_t pending = 0;
  std::vector<std::string> causes;
  for (const Server& server : servers_) {
    const ClientSession& session = *server.session;
    if (session.ready()) {
      ++ready;
      continue;
    }
    if (session.down() && !MayPass(session.status())) return session.status();
    if (!session.down() || session.starting()) ++pending;
    causes.push_back(CauseOf(session));
  }
  if (pending > 0 && !last_call) return std::nullopt;
  if (ready == 0) return absl::UnavailableError(absl::StrJoin(causes, "; "));
  if (router_.status().ok()) started_ = true;
  return router_.status();
}

absl::Status Engine::OnNamed(uint32_t server, std::string_view name) {
  const absl::StatusOr<bool> moved = router_.OnName(server, name);
  if (!moved.ok()) return moved.status();
  for (const Server& each : servers_) each.session->SetServerSet(router_.set_hash());
  if (*moved && started_ && servers() > 1) OnKeysMoved(server);
  return absl::OkStatus();
}

// Server number `server` is not called what it was taken to be.
void Engine::OnKeysMoved(uint32_t server) {
  const std::string why =
      absl::StrCat("the server at ", session(server).endpoint(), " is called ",
                   router_.NameOf(server), ", not as assumed: keys changed their servers");
  if (log_) log_(LogLevel::kWarning, why);
  for (Op& op : ops_) {
    const bool unsent = op.phase == Op::Phase::kWaiting || op.phase == Op::Phase::kHeldBack ||
                        op.phase == Op::Phase::kRequestQueued;
    if (!unsent || StaysWhereItIs(op)) continue;
    CancelRequest(op.number);
    Finish(op.number, Outcome::kUnavailable);
  }
  // Unlocks follow their keys, so they would not find the locks that are held elsewhere now. With
  // the connections those locks go.
  for (const Server& each : servers_) each.session->Break(absl::UnavailableError(why));
}

// Whether an operation that was not sent yet is still meant for its server.
bool Engine::StaysWhereItIs(const Op& op) const {
  if (op.key_bytes == 0 || op.request.type == OpType::kUnlock) return true;
  return router_.status().ok() && ServerOf(op.key()) == op.request.server;
}

// Begun, and over at once: nobody knows which server has its key. REQUIRES: TakeSlot gave it just
// now.
uint32_t Engine::FinishUnrouted(Op& op) {
  fresh_.Pop();
  op.server = &servers_.front();
  op.request.server = 0;
  Finish(op.number, Outcome::kUnrouted);
  return op.number;
}

std::vector<ServerInfo> Engine::Info() const {
  std::vector<ServerInfo> infos;
  for (const Server& server : servers_) {
    const ClientSession* session = server.session.get();
    ServerInfo& info = infos.emplace_back();
    info.endpoint = session->endpoint();
    info.name = router_.NameOf(static_cast<uint32_t>(infos.size()) - 1);
    info.connected = session->ready();
    if (!info.connected) info.why_not = CauseOf(*session);
    info.unreachable = session->down();
    if (!session->was_ready()) continue;
    const Grant& grant = session->grant();
    info.device = session->memory().device.name;
    info.kind = DeviceKindName(session->memory().device.kind);
    info.lock_mode = LockModeName(session->lock_mode());
    info.incarnation = grant.incarnation;
    info.region_bytes = grant.region_bytes;
    info.index_slots = grant.index.slots();
    info.lock_words = grant.lock_words;
    info.protocol_version = grant.version;
    info.session_id = grant.session_id;
    info.read_depth = session->read_depth();
    info.silence_ms = grant.silence_ms;
  }
  return infos;
}

}  // namespace gannet
