// The data path of ClientSession: no allocation, lock, log or system call per operation.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/session/client_session.h"
#include "common/rdma/status.h"

namespace gannet {
void ClientSession::PollCompletions(int64_t now_ns) {
  constexpr size_t kBatch = 32;
  constexpr uint32_t kBatchesMax = 8;  // then others get their turn
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
  for (Link& link : links_) {
    if (!link.used_receives.empty() && ready() && !PostReceives(link)) {
      Break(absl::UnavailableError(absl::StrCat(endpoint(), ": the device refuses receives")));
    }
  }
}

Link* ClientSession::LinkOf(uint32_t owner) {
  for (Link& link : links_) {
    if (link.owner == owner) return &link;
  }
  return nullptr;
}

// Also while draining: answers that came in time count, all else is flushed.
void ClientSession::OnCompletion(const ibv_wc& completion, int64_t now_ns) {
  const WrId id = WrId::Unpack(completion.wr_id);
  Link* link = LinkOf(id.owner);
  if (link == nullptr) return;  // of an earlier connection
  switch (static_cast<LinkWork>(id.kind)) {
    case LinkWork::kSend:
      return OnSendCompletion(*link, id.slot, completion);
    case LinkWork::kReceive:
      return OnReceiveCompletion(*link, id.slot, completion, now_ns);
    case LinkWork::kDrain:
      link->phase = Link::Phase::kDrained;
      return;
  }
}

void ClientSession::OnSendCompletion(Link& link, uint32_t position, const ibv_wc& completion) {
  if (!ready()) return;
  if (completion.status != IBV_WC_SUCCESS) [[unlikely]] {
    return Break(CompletionStatus(completion, absl::StrCat(endpoint(), ": connection broken")));
  }
  const bool known =
      link.work.Complete(position, [&](std::span<const InFlightWork::Work> works, bool signaled) {
        completed_ += works.size();
        owner_->OnWorksDone(options_.number, works, signaled);
      });
  if (!known) Break(absl::InternalError("a completion of nothing that was posted"));
}

void ClientSession::OnReceiveCompletion(Link& link, uint32_t receive, const ibv_wc& completion,
                                        int64_t now_ns) {
  if (completion.status != IBV_WC_SUCCESS) [[unlikely]] {
    return Break(CompletionStatus(completion, absl::StrCat(endpoint(), ": connection broken")));
  }
  link.liveness.OnHeard(watched_);
  HandleReply(link, {memory_->receive(receive), completion.byte_len}, now_ns);
  link.used_receives.push_back(receive);
}

void ClientSession::HandleReply(Link& link, std::span<const std::byte> message, int64_t now_ns) {
  ReplyView reply;
  if (message.size() > kMessageBytesMax || !DecodeReply(message, &reply)) {
    return Break(absl::UnavailableError(absl::StrCat(endpoint(), " sent what is no reply")));
  }
  RequestWindow::Entry* entry = window_.Find(reply.header.sequence);
  if (entry == nullptr) {  // a heartbeat's, or the second of a request sent twice
    if (reply.header.opcode == static_cast<uint8_t>(Opcode::kHeartbeat)) {
      OnHeartbeatReply(link, reply.header.time_ms, now_ns);
    }
    return;
  }
  request_watch_.OnAnswer(watched_);
  RequestWindow::Entry answered = *entry;
  window_.End(*entry);
  if (answered.op != kNoOp) owner_->OnReply(&answered, reply);
  ReturnLent(answered);
}

void ClientSession::OnHeartbeatReply(Link& link, uint64_t time_ms, int64_t now_ns) {
  const std::optional<int64_t> asked_ns = link.liveness.OnHeartbeatAnswered();
  if (!asked_ns.has_value() || time_ms == 0 || !options_.server_clock) return;
  server_time_.OnTold(time_ms, *asked_ns, now_ns);
}

void ClientSession::ReturnLent(const RequestWindow::Entry& entry) {
  memory_->values.Return(entry.value);
  memory_->replies.Return(entry.reply);
}

// Posts every receive buffer that was used, with one call.
bool ClientSession::PostReceives(Link& link) {
  std::array<ibv_recv_wr, SessionMemory::kFirstReceives> requests;
  std::array<ibv_sge, SessionMemory::kFirstReceives> sges;
  const uint32_t n = static_cast<uint32_t>(link.used_receives.size());
  for (uint32_t i = 0; i < n; ++i) {
    const uint32_t receive = link.used_receives[i];
    sges[i] = {reinterpret_cast<uint64_t>(memory_->receive(receive)), kMessageBytesMax,
               memory_->receives.lkey()};
    const WrId id{static_cast<uint8_t>(LinkWork::kReceive), link.owner, receive};
    requests[i] = {id.Pack(), i + 1 < n ? &requests[i + 1] : nullptr, &sges[i], 1};
  }
  link.used_receives.clear();
  return n == 0 || PostReceive(link.qp(), requests.data()) == PostResult::kPosted;
}

// Everything queued, in as few calls into the device as there are queue pairs to use.
void ClientSession::Flush(int64_t now_ns) {
  Link& first = links_[0];
  const bool only_reads = ordered_.empty() && requests_.empty();
  while (!ordered_.empty() && first.work.room() > 0 && ready()) {
    const QueuedWork work = ordered_.front();
    ordered_.Pop();
    AddOrdered(first, work);
  }
  if (!requests_.empty()) FlushRequests(first, now_ns);
  if (!reads_.empty()) FlushReads();
  if (!only_reads || !OthersWillJoin()) PostChain();
}

// More completed in this Poll than READs follow from it: operations ended, and a caller who keeps
// many in flight begins others in their place. The next Poll, which posts first of all, then posts
// both with one doorbell. Otherwise the operations in flight would part into those that READ
// windows and those that READ items, and stay so, with a doorbell and a completion for each part.
bool ClientSession::OthersWillJoin() const {
  const bool keeps_many = options_.signal_every < SendChain::kMax;
  return keeps_many && chain_.TakesRead() &&
         chain_.size() < std::min<size_t>(completed_, options_.signal_every);
}

// What a Poll would post now: a chain that was kept back, or what was queued behind the last Flush.
bool ClientSession::HasSomethingToPost() const {
  if (!chain_.empty()) return true;
  if (links_[0].work.room() == 0) return false;
  return !ordered_.empty() || (!requests_.empty() && window_.CanSend() && !wants_buffer_);
}

void ClientSession::FlushRequests(Link& first, int64_t now_ns) {
  wants_buffer_ = false;
  while (!requests_.empty() && window_.CanSend() && first.work.room() > 0 && ready()) {
    const uint32_t op = requests_.front();
    RequestWindow::Entry entry{.sequence = window_.next(), .op = op};
    std::byte* out = memory_->request(window_.IndexOf(entry.sequence));
    entry.bytes = owner_->OnEncode(op, &entry, {out, kMessageBytesMax});
    if (entry.bytes == SessionOwner::kNotNow) {
      wants_buffer_ = true;
      return;
    }
    requests_.Remove(op);
    if (entry.bytes == SessionOwner::kNotWanted) continue;
    request_watch_.OnSend(window_, watched_);
    window_.Begin(entry);
    AddMessage(first, op, out, entry.bytes, now_ns);
  }
}

// What found no room in a chain before.
void ClientSession::FlushReads() {
  while (!reads_.empty() && (chain_.TakesRead() || OpenReads(reads_.front().op))) {
    chain_.AddRead(reads_.front());
    reads_.Pop();
  }
}

// Makes the chain one of READs, `op`'s first, on the queue pair whose turn it is. That has only so
// many READs in flight, whatever is posted to it: more are spread over several, as long as each
// doorbell is worth it. False: none has room.
bool ClientSession::OpenReads(uint32_t op) {
  const uint32_t n = static_cast<uint32_t>(links_.size());
  const uint32_t share = n == 1 ? SendChain::kMax : std::max(read_depth_, kReadsPerPost);
  for (uint32_t tried = 0; tried < n && ready(); ++tried) {
    Link& link = links_[next_read_link_];
    next_read_link_ = next_read_link_ + 1 < n ? next_read_link_ + 1 : 0;
    if (link.phase != Link::Phase::kReady || link.work.room() == 0 || !OpenChain(link)) continue;
    if (chain_.empty()) owner_->OnDoorbell(op);
    chain_.AllowReads(share);
    return true;
  }
  return false;
}

// For one work request more on `link`; what is for another queue pair is posted before. False: that
// failed. REQUIRES: the link's queue has room.
bool ClientSession::OpenChain(Link& link) {
  if (!chain_.empty() && (chain_.link() != &link || chain_.size() == SendChain::kMax)) PostChain();
  if (!ready()) return false;
  chain_.Open(&link);
  chain_end_request_ = kNoOp;
  return true;
}

void ClientSession::AddOrdered(Link& link, const QueuedWork& work) {
  if (!OpenChain(link)) return;
  if (!owner_->OnPostOrdered(work.op, work.kind, chain_.empty())) return;
  const ibv_sge sge = {reinterpret_cast<uint64_t>(work.local), work.bytes, work.lkey};
  const uint64_t address =
      work.offset + (work.of_locks ? grant_.lock_address : grant_.region_address);
  const uint32_t rkey = work.of_locks ? grant_.lock_rkey : grant_.region_rkey;
  const ibv_send_wr request =
      work.kind == InFlightWork::Kind::kRead
          ? ReadRequest(0, nullptr, address, rkey, 0)
          : CompareAndSwapRequest(0, nullptr, address, rkey, work.expected, work.desired, 0);
  chain_.Add({work.op, work.kind}, request, sge);
}

// `op` is kNoOp for what nobody waits for.
void ClientSession::AddMessage(Link& link, uint32_t op, std::byte* data, uint32_t bytes,
                               int64_t now_ns) {
  if (!OpenChain(link)) return;
  if (op != kNoOp) {
    owner_->OnRequestPosted(op, chain_.empty());
    if (chain_.NextIsSignaled()) {
      owner_->OnRequestSignaled(op);
    } else {
      chain_end_request_ = op;
    }
  }
  const unsigned inline_flag = bytes <= link.inline_bytes() ? unsigned{IBV_SEND_INLINE} : 0u;
  chain_.Add({0, InFlightWork::Kind::kMessage},  // its operation goes on with the reply
             SendRequest(0, nullptr, inline_flag | link.send_flags()),
             {reinterpret_cast<uint64_t>(data), bytes, memory_->requests.lkey()});
  link.liveness.OnSent(now_ns, watched_);
}

// One doorbell.
void ClientSession::PostChain() {
  if (chain_.empty() || !ready()) return chain_.Clear();
  if (chain_end_request_ != kNoOp) owner_->OnRequestSignaled(chain_end_request_);
  chain_end_request_ = kNoOp;
  if (chain_.Post() != PostResult::kPosted) [[unlikely]] {
    Break(absl::UnavailableError(absl::StrCat(endpoint(), ": the device refused a chain")));
  }
}

// On each queue pair that had nothing else to send, or had no heartbeat for long.
void ClientSession::SendHeartbeats(int64_t now_ns) {
  for (Link& link : links_) {
    const bool due = link.phase == Link::Phase::kReady && link.liveness.HeartbeatDue(now_ns);
    if (!due || link.work.room() == 0) continue;
    AddMessage(link, kNoOp, memory_->heartbeat(), sizeof(RequestHeader), now_ns);
    link.liveness.OnHeartbeatSent(now_ns);
    PostChain();
  }
}

// After a resumption: the server answers from its record what it had already done. What nobody
// waits for any more is not sent again, so that a request which the server cannot answer holds up
// only one connection.
void ClientSession::ResendUnanswered(int64_t now_ns) {
  window_.ForEachUnanswered([&](RequestWindow::Entry& entry) {
    if (entry.op == kNoOp) {
      ReturnLent(entry);
      window_.End(entry);
      return;
    }
    AddMessage(links_[0], entry.op, memory_->request(window_.IndexOf(entry.sequence)), entry.bytes,
               now_ns);
  });
  PostChain();
}

}  // namespace gannet
