// The data path of ClientSession: no allocation, lock, log or system call per operation.

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/session/client_session.h"
#include "common/rdma/status.h"

namespace gannet {

void ClientSession::PollCompletions(int64_t now_ns) {
  constexpr size_t kBatch = 32;
  constexpr uint32_t kBatchesMax = 8;  // then other sessions get their turn
  completed_ = 0;
  std::array<ibv_wc, kBatch> completions;
  for (uint32_t batch = 0; batch < kBatchesMax; ++batch) {
    const size_t n = memory_->completions->Poll(completions);
    for (size_t i = 0; i < n; ++i) OnCompletion(completions[i], now_ns);
    all_read_ = n < kBatch;
    if (all_read_) break;
  }
  if (memory_->completions->broken()) {
    Break(absl::UnavailableError(absl::StrCat(endpoint(), ": the device lost its completions")));
  }
  for (ClientConnection& connection : connections_) {
    if (!connection.used_receives.empty() && ready() && !connection.PostReceives(*memory_)) {
      Break(absl::UnavailableError(absl::StrCat(endpoint(), ": the device refuses receives")));
    }
  }
}

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
    if (chain_.empty()) owner_->OnPosted(op, SessionOwner::kDoorbell);
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
  chain_end_request_ = kInvalidOp;
  return true;
}

void ClientSession::SendOrdered(const OrderedWork& work) {
  if (!OpenChain(connections_[0])) return;
  if (chain_.empty()) owner_->OnPosted(work.op, SessionOwner::kDoorbell);
  const ibv_sge sge = {reinterpret_cast<uint64_t>(work.local), work.bytes, work.lkey};
  const uint64_t address =
      work.offset + (work.of_locks ? grant().lock_address : grant().region_address);
  const uint32_t rkey = work.of_locks ? grant().lock_rkey : grant().region_rkey;
  const ibv_send_wr request =
      work.kind == InFlightWork::Kind::kRead
          ? ReadRequest(0, nullptr, address, rkey, 0)
          : CompareAndSwapRequest(0, nullptr, address, rkey, work.expected, work.desired, 0);
  if (work.kind != InFlightWork::Kind::kRead) usage_.PostedOther();
  chain_.Add({work.op, work.kind}, request, sge);
}

void ClientSession::SendReadOf(uint64_t address, uint32_t rkey, const QueuedRead& read) {
  if (!OpenChain(connections_[0])) return;
  if (chain_.empty()) owner_->OnPosted(read.op, SessionOwner::kDoorbell);
  const ibv_sge sge = {reinterpret_cast<uint64_t>(read.local), read.bytes, read.lkey.value_or(0)};
  chain_.Add({read.op, InFlightWork::Kind::kRead},
             ReadRequest(0, nullptr, address + read.offset, rkey, 0), sge);
}

void ClientSession::SendRequest(const RequestWindow::Entry& entry, int64_t now_ns) {
  std::byte* const message = next_message();
  request_watch_.OnSend(window_, watched_);
  window_.Begin(entry);
  AddMessage(connections_[0], entry.op, message, entry.bytes, now_ns);
}

// `op` is kInvalidOp for a message that nobody waits for.
void ClientSession::AddMessage(ClientConnection& connection, uint32_t op, std::byte* data,
                               uint32_t bytes, int64_t now_ns) {
  if (!OpenChain(connection)) return;
  if (op != kInvalidOp) {
    const bool signaled = chain_.NextIsSignaled();
    if (!signaled) chain_end_request_ = op;  // signaled after all if it stays the last
    const uint32_t doorbell = chain_.empty() ? SessionOwner::kDoorbell : 0;
    owner_->OnPosted(op, SessionOwner::kSend | doorbell | (signaled ? SessionOwner::kSignaled : 0));
  }
  const unsigned inline_flag = bytes <= connection.inline_bytes() ? unsigned{IBV_SEND_INLINE} : 0u;
  chain_.Add({0, InFlightWork::Kind::kMessage},  // its operation goes on with the reply
             gannet::SendRequest(0, nullptr, inline_flag | connection.send_flags()),
             {reinterpret_cast<uint64_t>(data), bytes, memory_->requests.lkey()});
  usage_.PostedOther();
  connection.liveness.OnSent(now_ns, watched_);
}

// Rings one doorbell for the whole chain.
void ClientSession::PostChain() {
  if (chain_.empty() || !ready()) return chain_.Clear();
  if (chain_end_request_ != kInvalidOp)
    owner_->OnPosted(chain_end_request_, SessionOwner::kSignaled);
  chain_end_request_ = kInvalidOp;
  if (chain_.Post() != PostResult::kPosted) [[unlikely]] {
    Break(absl::UnavailableError(absl::StrCat(endpoint(), ": the device refused a chain")));
  }
}

// Sends one on each connection that had nothing else to send, or had no heartbeat for long.
void ClientSession::SendHeartbeats(int64_t now_ns) {
  LookAtIndex();
  if (CanSendNews(now_ns)) SendNews(now_ns);
  for (ClientConnection& connection : connections_) {
    const bool first = connection.index == 0;
    const bool due = connection.ready() && (connection.liveness.HeartbeatDue(now_ns) ||
                                            (first && index_watch_.HeartbeatDue()));
    if (!due || connection.work.room() == 0 || !connection.liveness.MayAsk()) continue;
    memory_->SetIndexKnown(index_watch_.known());
    AddMessage(connection, kInvalidOp, memory_->heartbeat(), sizeof(RequestHeader), now_ns);
    connection.liveness.OnHeartbeatSent(now_ns);
    if (first) index_watch_.OnHeartbeatSent();
    PostChain();
  }
}

// Touches go out with the heartbeat that is due, or before it if there are many; a report when it
// is due. There is one buffer for them, which is in use until the server answered. So a slow server
// is told less.
bool ClientSession::CanSendNews(int64_t now_ns) const {
  const ClientConnection& first = connections_[0];
  const Liveness& liveness = first.liveness;
  const bool reports = usage_.Due(now_ns);
  if (touches_.touches().empty() && !reports) return false;
  if (!first.ready() || first.work.room() == 0) return false;
  if (static_cast<int32_t>(liveness.heartbeats_answered() - news_message_) < 0) return false;
  if (liveness.heartbeats_sent() - liveness.heartbeats_answered() == Liveness::kHeartbeatsMax) {
    return false;
  }
  return reports || touches_.worth_a_message() || liveness.HeartbeatDue(now_ns);
}

// Touches that do not fit beside a report are dropped, as any that find no room.
void ClientSession::SendNews(int64_t now_ns) {
  ClientConnection& first = connections_[0];
  const std::span message(memory_->news_message(), kMessageBytesMax);
  const std::span payload = message.subspan(sizeof(RequestHeader));
  // Work requests are counted anyway, so READs cost nothing more.
  for (ClientConnection& it : connections_) {
    usage_.Posted(it.work.posted() - std::exchange(it.told_of, it.work.posted()));
  }
  const size_t report = usage_.Due(now_ns) ? usage_.Take(now_ns, payload) : 0;
  std::span<const std::byte> touches = std::as_bytes(touches_.touches());
  touches = touches.first(std::min(touches.size(), payload.size() - report));
  std::copy(touches.begin(), touches.end(), payload.begin() + report);
  RequestHeader header;
  memory_->SetIndexKnown(index_watch_.known());
  std::memcpy(&header, memory_->heartbeat(), sizeof(header));
  header.heartbeat.report_bytes = static_cast<uint32_t>(report);
  header.value_bytes = static_cast<uint32_t>(report + touches.size());
  std::memcpy(message.data(), &header, sizeof(header));
  AddMessage(first, kInvalidOp, message.data(),
             static_cast<uint32_t>(sizeof(header) + header.value_bytes), now_ns);
  touches_.Clear();
  first.liveness.OnHeartbeatSent(now_ns);
  news_message_ = first.liveness.heartbeats_sent();
  PostChain();
}

// READs that are queued may be of an older index than those that follow.
void ClientSession::LookAtIndex() {
  if (!index_watch_.WaitsForReads() || !reads_.empty()) return;
  PostChain();
  if (ready()) index_watch_.LookAt(connections_);
}

}  // namespace gannet
