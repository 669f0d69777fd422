// Takes completions from the device. In a group they are believed only under the primary's lease,
// by a clock that is read behind them; until then they are held, but for heartbeats' answers, which
// may bring a lease, for the map, and for failures. Delivering one may break the session, so each
// step looks at the phase anew.

#include "client/session/session_completions.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/data_path_checks.h"
#include "common/protocol/message.h"
#include "common/rdma/status.h"

namespace gannet {

// In Poll itself, which is called for each GET of a caller who waits for it.
template <bool kUnderLease>
[[gnu::always_inline]] inline void SessionCompletions::Take(CompletionQueue& queue,
                                                            int64_t now_ns) {
  constexpr size_t kBatch = 32;
  constexpr uint32_t kBatchesMax = 8;  // then other sessions get their turn
  std::array<ibv_wc, kBatch> completions;
  for (uint32_t batch = 0; batch < kBatchesMax; ++batch) {
    const size_t n = queue.Poll(completions);
    if constexpr (kUnderLease) {
      TakeUnderLease(std::span(completions).first(n), now_ns);
    } else {
      for (size_t i = 0; i < n; ++i) OnCompletion(completions[i], now_ns);
    }
    all_taken_ = n < kBatch;
    if (!all_taken_) continue;
    if (n == 0 && queue.broken()) [[unlikely]]
      OnQueueBroken(queue);
    return;
  }
}

void SessionCompletions::Poll(int64_t now_ns) {
  GANNET_CHECK_DATA_PATH(given_.phase->ready(), "the session is not ready");
  completed_ = 0;
  if (!plain_) [[unlikely]] {
    TakeOtherwise(now_ns);
  } else {
    Take<false>(*(*given_.memory)->first_completions, now_ns);
  }
  if (!std::exchange(receives_used_, false) || !given_.phase->ready()) return;
  if (ClientConnection* const refused = given_.connections->PostReceives()) {
    given_.phase->BreakOne(
        *refused, absl::UnavailableError(
                      absl::StrCat(given_.options->endpoint, ": the device refuses receives")));
  }
}

void SessionCompletions::OnQueueBroken(const CompletionQueue& queue) {
  for (const std::unique_ptr<SessionDevice>& it : (*given_.memory)->devices) {
    if (it->completions.get() != &queue) continue;
    given_.connections->BreakThoseOf(
        it.get(), given_.phase,
        absl::UnavailableError(
            absl::StrCat(given_.options->endpoint, ": the device lost its completions")));
  }
}

// Under a lease, or from several devices.
void SessionCompletions::TakeOtherwise(int64_t now_ns) {
  bool all_taken = true;
  for (const std::unique_ptr<SessionDevice>& it : (*given_.memory)->devices) {
    if (it->lost) continue;
    if (given_.lease->on()) {
      Take<true>(*it->completions, now_ns);
    } else {
      Take<false>(*it->completions, now_ns);
    }
    all_taken &= all_taken_;
  }
  all_taken_ = all_taken;
}

// The clock is read after the completions were taken: then all of them came before.
void SessionCompletions::TakeUnderLease(std::span<const ibv_wc> completions, int64_t now_ns) {
  PrimaryLeaseWatch& lease = *given_.lease;
  if (completions.empty() && !lease.holds()) return;
  const int64_t taken_ns = given_.options->clock.get().MonotonicNs();
  if (!lease.holds() && lease.ValidAt(taken_ns)) [[likely]] {
    for (const ibv_wc& completion : completions) OnCompletion(completion, now_ns);
    return;
  }
  const bool takes_replies = lease.RepliesValidAt(taken_ns);
  const auto is_taken = [&](const ibv_wc& completion) {
    return takes_replies && IsReply(completion);
  };
  // Of a server whose lease is valid, which was primary all along. Then those that came later.
  if (takes_replies && lease.holds()) Deliver(lease.TakeHeld(is_taken), now_ns);
  for (const ibv_wc& completion : completions) {
    if (is_taken(completion) || !HeldUntilBelieved(completion)) {
      // It may bring a lease, or break the connections. Then the others may tell that they are
      // flushed, for which the session waits.
      OnCompletion(completion, now_ns);
    } else if (given_.phase->ready()) {
      lease.Hold(completion);
    }
  }
  if (!lease.holds() || !lease.ValidAt(taken_ns)) return;
  Deliver(lease.TakeHeld([](const ibv_wc&) { return true; }), now_ns);
}

// Delivering may break the connection, which throws away what is held. So it works on a copy.
void SessionCompletions::Deliver(const std::vector<ibv_wc>& held, int64_t now_ns) {
  for (const ibv_wc& completion : held) OnCompletion(completion, now_ns);
}

bool SessionCompletions::IsReply(const ibv_wc& completion) {
  const WrId id = WrId::Unpack(completion.wr_id);
  return completion.status == IBV_WC_SUCCESS &&
         id.kind == static_cast<uint8_t>(ConnectionWork::kReceive);
}

// Heartbeats' replies are never held, because one of them may bring the lease. They tell nothing of
// any item. Nor does the map of a cluster, which any member tells, and without which there may be
// no lease. Nor are failures held, and that a connection was flushed.
bool SessionCompletions::HeldUntilBelieved(const ibv_wc& completion) const {
  const WrId id = WrId::Unpack(completion.wr_id);
  const auto kind = static_cast<ConnectionWork>(id.kind);
  if (completion.status != IBV_WC_SUCCESS || kind == ConnectionWork::kDrain) return false;
  if (kind == ConnectionWork::kSend) return true;
  // The bytes belong to the buffer, whatever the server sent into it.
  ReplyHeader header{};
  const ClientConnection* const connection = given_.connections->Find(id.owner);
  if (connection == nullptr) return false;  // an earlier connection's, which is ignored
  std::memcpy(&header, connection->receive(id.slot),
              std::min<size_t>(completion.byte_len, sizeof(header)));
  if (header.opcode == static_cast<uint8_t>(Opcode::kMap)) return false;
  return header.opcode != static_cast<uint8_t>(Opcode::kHeartbeat) || header.sequence != 0;
}

size_t SessionCompletions::PollDraining(int64_t now_ns) {
  const SessionMemory* const memory = given_.memory->get();
  if (memory == nullptr) return 0;
  std::array<ibv_wc, 32> completions;
  size_t all = 0;
  for (const std::unique_ptr<SessionDevice>& it : memory->devices) {
    const size_t n = it->lost ? 0 : it->completions->Poll(completions);
    TakeDrained({completions.data(), n}, now_ns);
    all += n;
  }
  return all;
}

void SessionCompletions::TakeDrained(std::span<const ibv_wc> completions, int64_t now_ns) {
  const size_t n = completions.size();
  const bool believed = !given_.lease->on() || n == 0 ||
                        given_.lease->ValidAt(given_.options->clock.get().MonotonicNs());
  for (size_t i = 0; i < n; ++i) {
    if (believed || !HeldUntilBelieved(completions[i])) OnCompletion(completions[i], now_ns);
  }
}

void SessionCompletions::OnCompletion(const ibv_wc& completion, int64_t now_ns) {
  const WrId id = WrId::Unpack(completion.wr_id);
  ClientConnection* connection = given_.connections->Find(id.owner);
  if (connection == nullptr) return;  // an earlier connection's
  switch (static_cast<ConnectionWork>(id.kind)) {
    case ConnectionWork::kSend:
      return OnSendCompletion(*connection, id.slot, completion);
    case ConnectionWork::kReceive:
      return OnReceiveCompletion(*connection, id.slot, completion, now_ns);
    case ConnectionWork::kDrain:
      connection->rdma().OnDrained();
      return;
  }
}

void SessionCompletions::OnSendCompletion(ClientConnection& connection, uint32_t position,
                                          const ibv_wc& completion) {
  if (!given_.phase->ready()) return;
  if (completion.status != IBV_WC_SUCCESS) [[unlikely]]
    return BreakBy(connection, completion);
  const bool known = connection.work.Complete(
      position, [&](std::span<const InFlightWork::Work> works, bool signaled) {
        completed_ += works.size();
        given_.reports->OnWorksDone(works, signaled);
      });
  // A READ of a connection that is over may have been posted again before it was believed.
  if (!known && connection.ready())
    given_.phase->Break(absl::InternalError("a completion of nothing that was posted"));
}

void SessionCompletions::OnReceiveCompletion(ClientConnection& connection, uint32_t receive,
                                             const ibv_wc& completion, int64_t now_ns) {
  if (completion.status != IBV_WC_SUCCESS) [[unlikely]] {
    // If it is not ready, it could not join, so its receives were flushed.
    BreakBy(connection, completion);
    return;
  }
  connection.liveness.OnHeard(*given_.watched);
  OnMessage(connection, {connection.receive(receive), completion.byte_len}, now_ns);
  connection.rdma().Recycle(receive);
  receives_used_ = true;
}

void SessionCompletions::OnMessage(ClientConnection& connection, std::span<const std::byte> message,
                                   int64_t now_ns) {
  ReplyView reply;
  if (message.size() > kMessageBytesMax || !DecodeReply(message, &reply)) {
    return given_.phase->Break(
        absl::UnavailableError(absl::StrCat(given_.options->endpoint, " sent what is no reply")));
  }
  if (!given_.requests->TakeAnswer(reply)) given_.heartbeats->OnReply(connection, reply, now_ns);
}

// A connection that is over already was flushed.
void SessionCompletions::BreakBy(ClientConnection& connection, const ibv_wc& completion) {
  if (!connection.ready()) return;
  given_.phase->BreakOne(
      connection,
      CompletionStatus(completion, absl::StrCat(given_.options->endpoint, ": connection broken")));
}

}  // namespace gannet
