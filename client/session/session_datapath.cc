// The data path of ClientSession: no allocation, lock, log or system call per operation.

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/session/client_session.h"
#include "common/rdma/status.h"

namespace gannet {

template <bool kUnderLease>
void ClientSession::PollCompletions(int64_t now_ns) {
  constexpr size_t kBatch = 32;
  constexpr uint32_t kBatchesMax = 8;  // then other sessions get their turn
  completed_ = 0;
  std::array<ibv_wc, kBatch> completions;
  for (uint32_t batch = 0; batch < kBatchesMax; ++batch) {
    const size_t n = memory_->completions->Poll(completions);
    if constexpr (kUnderLease) {
      TakeUnderLease(std::span(completions).first(n), now_ns);
    } else {
      for (size_t i = 0; i < n; ++i) OnCompletion(completions[i], now_ns);
    }
    all_read_ = n < kBatch;
    if (!all_read_) continue;
    if (n == 0 && memory_->completions->broken()) [[unlikely]] {
      Break(absl::UnavailableError(absl::StrCat(endpoint(), ": the device lost its completions")));
    }
    break;
  }
  for (ClientConnection& connection : connections_) {
    if (!connection.used_receives.empty() && ready() && !connection.PostReceives(*memory_)) {
      Break(absl::UnavailableError(absl::StrCat(endpoint(), ": the device refuses receives")));
    }
  }
}

template void ClientSession::PollCompletions<false>(int64_t);
template void ClientSession::PollCompletions<true>(int64_t);

ClientConnection* ClientSession::FindConnection(uint32_t id) {
  for (ClientConnection& connection : connections_) {
    if (connection.id == id) return &connection;
  }
  return nullptr;
}

// Also called while draining: answers that came in time count, everything else was flushed.
void ClientSession::OnCompletion(const ibv_wc& completion, int64_t now_ns) {
  const WrId id = WrId::Unpack(completion.wr_id);
  ClientConnection* connection = FindConnection(id.owner);
  if (connection == nullptr) return;  // an earlier connection's
  switch (static_cast<ConnectionWork>(id.kind)) {
    case ConnectionWork::kSend:
      return OnSendCompletion(*connection, id.slot, completion);
    case ConnectionWork::kReceive:
      return OnReceiveCompletion(*connection, id.slot, completion, now_ns);
    case ConnectionWork::kDrain:
      connection->phase = ClientConnection::Phase::kDrained;
      return;
  }
}

void ClientSession::OnSendCompletion(ClientConnection& connection, uint32_t position,
                                     const ibv_wc& completion) {
  if (!ready()) return;
  if (completion.status != IBV_WC_SUCCESS) [[unlikely]] {
    return Break(CompletionStatus(completion, absl::StrCat(endpoint(), ": connection broken")));
  }
  const bool known = connection.work.Complete(
      position, [&](std::span<const InFlightWork::Work> works, bool signaled) {
        completed_ += works.size();
        owner_->OnWorksDone(options_.number, works, signaled);
      });
  if (!known) Break(absl::InternalError("a completion of nothing that was posted"));
}

void ClientSession::OnReceiveCompletion(ClientConnection& connection, uint32_t receive,
                                        const ibv_wc& completion, int64_t now_ns) {
  if (completion.status != IBV_WC_SUCCESS) [[unlikely]] {
    if (!connection.ready()) return;  // it could not join, so its receives were flushed
    return Break(CompletionStatus(completion, absl::StrCat(endpoint(), ": connection broken")));
  }
  connection.liveness.OnHeard(watched_);
  OnMessage(connection, {memory_->receive(receive), completion.byte_len}, now_ns);
  connection.used_receives.push_back(receive);
}

void ClientSession::OnMessage(ClientConnection& connection, std::span<const std::byte> message,
                              int64_t now_ns) {
  ReplyView reply;
  if (message.size() > kMessageBytesMax || !DecodeReply(message, &reply)) {
    return Break(absl::UnavailableError(absl::StrCat(endpoint(), " sent what is no reply")));
  }
  RequestWindow::Entry* entry = window_.Find(reply.header.sequence);
  if (entry == nullptr) {  // of a heartbeat, or the second one of a request that was sent twice
    if (reply.header.opcode == static_cast<uint8_t>(Opcode::kHeartbeat)) {
      OnHeartbeatReply(connection, reply, now_ns);
    }
    return;
  }
  request_watch_.OnAnswer(watched_);
  RequestWindow::Entry answered = *entry;
  window_.End(*entry);
  if (answered.op != kInvalidOp) owner_->OnReply(&answered, reply);
  memory_->ReturnLent(answered);
}

void ClientSession::OnHeartbeatReply(ClientConnection& connection, const ReplyView& reply,
                                     int64_t now_ns) {
  const std::optional<int64_t> asked_ns = connection.liveness.OnHeartbeatAnswered();
  const uint64_t time_ms = reply.header.clock.time_ms;
  if (lease_.on() && asked_ns.has_value())
    lease_.OnTold(reply.header.primary_lease_ms, *asked_ns, now_ns);
  if (connection.index == 0) index_watch_.OnHeartbeatAnswered();
  if (!reply.value.empty()) AdoptIndex(reply.value);
  if (!asked_ns.has_value() || time_ms == 0 || !options_.server_clock) return;
  server_time_.OnTold(time_ms, *asked_ns, now_ns);
}

// Lookups that are under way notice it by the checksums, which include the generation.
void ClientSession::AdoptIndex(std::string_view bytes) {
  const std::optional<IndexNews> news = IndexNews::Decode(bytes, terms_.view.region_bytes);
  if (!news || news->index.generation < terms_.view.index.generation) return;
  terms_.view.index = news->index;
  terms_.view.next = news->next;
  index_watch_.OnNews(*news);
}

// Posts everything queued, in as few calls into the device as there are connections to use.
void ClientSession::Flush(bool may_wait) {
  while (!reads_.empty() && (chain_.TakesRead() || OpenReads(reads_.front().op))) {
    chain_.AddRead(reads_.front());
    reads_.Pop();
  }
  if (chain_.empty()) return;
  if (!may_wait || !OthersWillJoin()) PostChain();
}

bool ClientSession::TryReadInto(uint32_t op, uint64_t offset, std::span<const LocalPiece> pieces) {
  if (!chain_.empty() && !chain_.TakesPieces(static_cast<uint32_t>(pieces.size()))) PostChain();
  if (!ready() || (!chain_.TakesRead() && !OpenReads(op))) return false;
  chain_.AddReadInto(op, offset, pieces);
  return true;
}

// Returns whether more work completed in this Poll than READs follow from it. Then operations
// ended, and a caller who keeps many in flight begins others in their place. The next Poll begins
// by posting, and so posts both with one doorbell. Otherwise the operations in flight would part
// into those that READ windows and those that READ items, and stay apart, with a doorbell and a
// completion for each part.
bool ClientSession::OthersWillJoin() const {
  const bool keeps_many = options_.signal_every < SendChain::kMax;
  return keeps_many && chain_.TakesRead() &&
         chain_.size() < std::min<size_t>(completed_, options_.signal_every);
}

// Opens the chain for READs, beginning with one of `op`, on the connection whose turn it is. A
// connection has only so many READs in flight, however many are posted to it. So more of them are
// spread over several connections, as long as each doorbell is worth it. Returns false if no
// connection has room.
bool ClientSession::OpenReads(uint32_t op) {
  const uint32_t n = static_cast<uint32_t>(connections_.size());
  const uint32_t share = n == 1 ? SendChain::kMax : std::max(terms_.read_depth, kReadsPerPost);
  const bool apart = n > 1 && mixes_ && connections_[1].ready();
  for (uint32_t tried = 0; tried < n && ready(); ++tried) {
    ClientConnection& connection = connections_[next_read_connection_];
    next_read_connection_ = next_read_connection_ + 1 < n ? next_read_connection_ + 1 : 0;
    if (apart && connection.index == 0) continue;
    if (!connection.ready() || connection.work.room() == 0 || !OpenChain(connection)) continue;
    if (chain_.empty()) owner_->OnDoorbell(op);
    chain_.AllowReads(share);
    return true;
  }
  return false;
}

// Makes room in the chain for one more work request on `connection`. If the chain is another
// connection's, posts it first. Returns false if that failed. REQUIRES: the connection's send queue
// has room.
bool ClientSession::OpenChain(ClientConnection& connection) {
  if (!chain_.empty() && (chain_.connection() != &connection || chain_.size() == SendChain::kMax)) {
    PostChain();
  }
  if (!ready()) return false;
  chain_.Open(&connection);
  chain_end_request_ = nullptr;
  return true;
}

void ClientSession::SendOrdered(const OrderedWork& work) {
  if (!OpenChain(connections_[0])) return;
  if (chain_.empty()) owner_->OnDoorbell(work.op);
  const ibv_sge sge = {reinterpret_cast<uint64_t>(work.local), work.bytes, work.lkey};
  const uint64_t address =
      work.offset + (work.of_locks ? grant().lock_address : grant().region_address);
  const uint32_t rkey = work.of_locks ? grant().lock_rkey : grant().region_rkey;
  const ibv_send_wr request =
      work.kind == InFlightWork::Kind::kRead
          ? ReadRequest(0, nullptr, address, rkey, 0)
          : CompareAndSwapRequest(0, nullptr, address, rkey, work.expected, work.desired, 0);
  if (work.kind != InFlightWork::Kind::kRead) news_.usage().PostedOther();
  chain_.Add({work.op, work.kind}, request, sge);
}

void ClientSession::SendReadOf(uint64_t address, uint32_t rkey, const QueuedRead& read) {
  if (!OpenChain(connections_[0])) return;
  if (chain_.empty()) owner_->OnDoorbell(read.op);
  const ibv_sge sge = {reinterpret_cast<uint64_t>(read.local), read.bytes, read.lkey.value_or(0)};
  chain_.Add({read.op, InFlightWork::Kind::kRead},
             ReadRequest(0, nullptr, address + read.offset, rkey, 0), sge);
}

uint64_t ClientSession::SendRequest(RequestView request, RequestWindow::Entry entry,
                                    int64_t now_ns) {
  request.header.sequence = entry.sequence = window_.next();
  std::byte* const message = memory_->request(window_.IndexOf(entry.sequence));
  entry.bytes = static_cast<uint32_t>(
      EncodeRequest(request.header, request.key, request.value, {message, kMessageBytesMax}));
  request_watch_.OnSend(window_, watched_);
  AddRequest(window_.Begin(entry), now_ns);
  return entry.sequence;
}

// Adds a request that is in the window, for the first time or again.
void ClientSession::AddRequest(RequestWindow::Entry& entry, int64_t now_ns) {
  ClientConnection& connection = connections_[0];
  if (!OpenChain(connection)) return;
  const bool signaled = chain_.NextIsSignaled();
  entry.posts += chain_.empty();
  entry.completions += signaled;
  ++entry.sends;
  AddMessage(connection, memory_->request(window_.IndexOf(entry.sequence)), entry.bytes, now_ns);
  if (!signaled) chain_end_request_ = &entry;  // signaled after all if it stays the last
}

void ClientSession::AddMessage(ClientConnection& connection, std::byte* data, uint32_t bytes,
                               int64_t now_ns) {
  if (!OpenChain(connection)) return;
  const unsigned inline_flag = bytes <= connection.inline_bytes() ? unsigned{IBV_SEND_INLINE} : 0u;
  chain_.Add({0, InFlightWork::Kind::kMessage},  // its operation goes on with the reply
             gannet::SendRequest(0, nullptr, inline_flag | connection.send_flags()),
             {reinterpret_cast<uint64_t>(data), bytes, memory_->requests.lkey()});
  news_.usage().PostedOther();
  connection.liveness.OnSent(now_ns, watched_);
}

// Rings one doorbell for the whole chain.
void ClientSession::PostChain() {
  RequestWindow::Entry* const end = std::exchange(chain_end_request_, nullptr);
  if (chain_.empty() || !ready()) return chain_.Clear();
  if (end != nullptr) ++end->completions;
  if (chain_.Post() != PostResult::kPosted) [[unlikely]] {
    Break(absl::UnavailableError(absl::StrCat(endpoint(), ": the device refused a chain")));
  }
}

// Sends one on each connection that had nothing else to send, or had no heartbeat for long.
void ClientSession::SendHeartbeats(int64_t now_ns) {
  LookAtIndex();
  if (news_.CanSend(connections_[0], now_ns)) SendNews(now_ns);
  for (ClientConnection& connection : connections_) {
    const bool first = connection.index == 0;
    const bool due = connection.ready() && (connection.liveness.HeartbeatDue(now_ns) ||
                                            (first && index_watch_.HeartbeatDue()));
    if (!due || connection.work.room() == 0 || !connection.liveness.MayAsk()) continue;
    memory_->SetIndexKnown(index_watch_.known());
    AddMessage(connection, memory_->heartbeat(), sizeof(RequestHeader), now_ns);
    connection.liveness.OnHeartbeatSent(now_ns);
    if (first) index_watch_.OnHeartbeatSent();
    PostChain();
  }
}

void ClientSession::SendNews(int64_t now_ns) {
  ClientConnection& first = connections_[0];
  memory_->SetIndexKnown(index_watch_.known());
  RequestHeader heartbeat;
  std::memcpy(&heartbeat, memory_->heartbeat(), sizeof(heartbeat));
  std::byte* const message = memory_->news_message();
  const uint32_t bytes = news_.Take(now_ns, connections_, heartbeat, {message, kMessageBytesMax});
  AddMessage(first, message, bytes, now_ns);
  first.liveness.OnHeartbeatSent(now_ns);
  news_.OnSent(first.liveness.heartbeats_sent());
  PostChain();
}

// READs that are queued may be of an older index than those that follow.
void ClientSession::LookAtIndex() {
  if (!index_watch_.WaitsForReads() || !reads_.empty()) return;
  PostChain();
  if (ready()) index_watch_.LookAt(connections_);
}

}  // namespace gannet
