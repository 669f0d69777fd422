// How ClientSession keeps to the lease of a group's primary. docs/group.md says why.

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "client/session/client_session.h"

namespace gannet {

// The clock is read after the completions were taken: then all of them came before.
void ClientSession::TakeUnderLease(std::span<const ibv_wc> completions, int64_t now_ns) {
  if (completions.empty() && !lease_.holds()) return;
  const int64_t taken_ns = options_.clock->MonotonicNs();
  if (!lease_.holds() && lease_.ValidAt(taken_ns)) [[likely]] {
    for (const ibv_wc& completion : completions) OnCompletion(completion, now_ns);
    return;
  }
  for (const ibv_wc& completion : completions) {
    if (HeldUntilBelieved(completion)) {
      lease_.Hold(completion);
    } else {
      OnCompletion(completion, now_ns);  // it may bring a lease
      if (!ready()) return;
    }
  }
  if (!lease_.holds()) return;
  if (!lease_.ValidAt(taken_ns)) return LookAtConnections();  // the next Poll asks
  // Delivering may break the connection, which throws away the rest. So it works on a copy.
  const std::vector<ibv_wc> held(lease_.held().begin(), lease_.held().end());
  lease_.ForgetHeld();
  for (const ibv_wc& completion : held) OnCompletion(completion, now_ns);
}

// Heartbeats' replies are never held, because one of them may bring the lease. They tell nothing of
// any item. Nor are failures, and that a connection was flushed.
bool ClientSession::HeldUntilBelieved(const ibv_wc& completion) const {
  const WrId id = WrId::Unpack(completion.wr_id);
  const auto kind = static_cast<ConnectionWork>(id.kind);
  if (completion.status != IBV_WC_SUCCESS || kind == ConnectionWork::kDrain) return false;
  if (kind == ConnectionWork::kSend) return true;
  // The bytes belong to the buffer, whatever the server sent into it.
  ReplyHeader header{};
  std::memcpy(&header, memory_->receive(id.slot),
              std::min<size_t>(completion.byte_len, sizeof(header)));
  return header.opcode != static_cast<uint8_t>(Opcode::kHeartbeat) || header.sequence != 0;
}

// Call it before the completions are taken: what is posted next comes under the lease that is asked
// for now.
void ClientSession::LookAtLease(int64_t now_ns) {
  if (!lease_.AskDue(now_ns, HasWork())) return;
  ClientConnection& first = connections_[0];
  lease_.OnAsked(now_ns);
  if (first.work.room() == 0 || !first.liveness.MayAsk()) return;  // those on their way will tell
  memory_->SetIndexKnown(index_watch_.known());
  AddMessage(first, memory_->heartbeat(), sizeof(RequestHeader), now_ns);
  first.liveness.OnHeartbeatSent(now_ns);
  index_watch_.OnHeartbeatSent();
}

// Returns whether operations are under way.
bool ClientSession::HasWork() const {
  if (lease_.holds() || completed_ > 0 || !chain_.empty() || !window_.empty() || !reads_.empty()) {
    return true;
  }
  return std::ranges::any_of(connections_, [](const ClientConnection& it) {
    return it.ready() && it.work.HasOtherThanMessages();
  });
}

}  // namespace gannet
