// The data path of ClientSession: no allocation, lock, log or system call per operation.

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "client/session/client_session.h"
#include "common/rdma/status.h"

namespace gannet {
namespace {

// As ReadRequest, into a request that is used again and again: on the hot path, 128 bytes need not
// be cleared for the fields that a READ has.
void FillReadRequest(ibv_send_wr* request, uint64_t wr_id, ibv_sge* sge, uint64_t remote_address,
                     uint32_t rkey, unsigned flags) {
  request->wr_id = wr_id;
  request->sg_list = sge;
  request->num_sge = 1;
  request->opcode = IBV_WR_RDMA_READ;
  request->send_flags = flags;
  request->wr.rdma.remote_addr = remote_address;
  request->wr.rdma.rkey = rkey;
}

}  // namespace

void ClientSession::PollCompletions(int64_t now_ns) {
  constexpr size_t kBatch = 32;
  constexpr uint32_t kBatchesMax = 8;  // then others get their turn
  std::array<ibv_wc, kBatch> completions;
  for (uint32_t batch = 0; batch < kBatchesMax; ++batch) {
    const size_t n = memory_->completions->Poll(completions);
    for (size_t i = 0; i < n; ++i) OnCompletion(completions[i], now_ns);
    if (n < kBatch) break;
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
        owner_->OnWorksDone(works, signaled);
      });
  if (!known) Break(absl::InternalError("a completion of nothing that was posted"));
}

void ClientSession::OnReceiveCompletion(Link& link, uint32_t receive, const ibv_wc& completion,
                                        int64_t now_ns) {
  if (completion.status != IBV_WC_SUCCESS) [[unlikely]] {
    return Break(CompletionStatus(completion, absl::StrCat(endpoint(), ": connection broken")));
  }
  link.liveness.OnHeard(now_ns);
  HandleReply({memory_->receive(receive), completion.byte_len});
  link.used_receives.push_back(receive);
}

void ClientSession::HandleReply(std::span<const std::byte> message) {
  ReplyView reply;
  if (message.size() > kMessageBytesMax || !DecodeReply(message, &reply)) {
    return Break(absl::UnavailableError(absl::StrCat(endpoint(), " sent what is no reply")));
  }
  RequestWindow::Entry* entry = window_.Find(reply.header.sequence);
  if (entry == nullptr) return;  // a heartbeat's, or the second of a request sent twice
  RequestWindow::Entry answered = *entry;
  window_.End(*entry);
  if (answered.op != kNoOp) owner_->OnReply(&answered, reply);
  ReturnLent(answered);
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
  while (!ordered_.empty() && first.work.room() > 0 && ready()) {
    const QueuedWork work = ordered_.front();
    ordered_.Pop();
    AddOrdered(first, work);
  }
  if (!requests_.empty()) FlushRequests(first, now_ns);
  // With one queue pair the READs join the chain.
  if (links_.size() > 1) PostChain(first);
  if (!reads_.empty()) FlushReads();
  PostChain(first);
}

void ClientSession::FlushRequests(Link& first, int64_t now_ns) {
  while (!requests_.empty() && window_.CanSend() && first.work.room() > 0 && ready()) {
    const uint32_t op = requests_.front();
    RequestWindow::Entry entry{.sequence = window_.next(), .op = op};
    std::byte* out = memory_->request(window_.IndexOf(entry.sequence));
    entry.bytes = owner_->OnEncode(op, &entry, {out, kMessageBytesMax});
    if (entry.bytes == SessionOwner::kNotNow) return;
    requests_.Pop();
    if (entry.bytes == SessionOwner::kNotWanted) continue;
    window_.Begin(entry);
    AddMessage(first, op, out, entry.bytes, now_ns);
  }
}

// A queue pair has only so many READs in flight, whatever is posted to it: more are spread over
// several, as long as each doorbell is worth it. The next Flush starts with the next queue pair.
void ClientSession::FlushReads() {
  const bool joining = links_.back().phase != Link::Phase::kReady;  // or could not
  const uint32_t n = static_cast<uint32_t>(links_.size()) - joining;
  const uint32_t share = std::max({read_depth_, kReadsPerPost, (reads_.size() + n - 1) / n});
  for (uint32_t tried = 0; tried < n && !reads_.empty() && ready(); ++tried) {
    Link& link = links_[next_read_link_];
    next_read_link_ = next_read_link_ + 1 < n ? next_read_link_ + 1 : 0;
    const uint32_t room = std::min(share, link.work.room());
    for (uint32_t left = std::min(reads_.size(), room); left > 0 && ready(); --left) {
      AddRead(link, reads_.front());
      reads_.Pop();
    }
    PostChain(link);
  }
}

// The chain's work requests are linked when it is posted.
inline ClientSession::ChainEnd ClientSession::Extend(Link& link, InFlightWork::Work work) {
  if (chained_ == kChainMax) [[unlikely]]
    PostChain(link);
  bool signal = false;
  const uint32_t position = link.work.Push(work, &signal);
  chain_end_request_ = kNoOp;
  const uint32_t i = chained_++;
  return {chain_[i], chain_sges_[i], link.SendId(position),
          signal ? unsigned{IBV_SEND_SIGNALED} : 0u};
}

inline void ClientSession::AddRead(Link& link, const QueuedRead& read) {
  if (chained_ == 0 || chained_ == kChainMax) owner_->OnDoorbell(read.op);
  const ChainEnd end = Extend(link, {read.op, InFlightWork::Kind::kRead});
  end.sge = {reinterpret_cast<uint64_t>(read.local), read.bytes, read.lkey};
  FillReadRequest(&end.request, end.wr_id, &end.sge, grant_.region_address + read.offset,
                  grant_.region_rkey, end.flags);
}

void ClientSession::AddOrdered(Link& link, const QueuedWork& work) {
  const bool doorbell = chained_ == 0 || chained_ == kChainMax;
  if (!owner_->OnPostOrdered(work.op, work.kind, doorbell)) return;
  const ChainEnd end = Extend(link, {work.op, work.kind});
  end.sge = {reinterpret_cast<uint64_t>(work.local), work.bytes, work.lkey};
  const uint64_t base = work.of_locks ? grant_.lock_address : grant_.region_address;
  const uint32_t rkey = work.of_locks ? grant_.lock_rkey : grant_.region_rkey;
  if (work.kind == InFlightWork::Kind::kRead) {
    end.request = ReadRequest(end.wr_id, &end.sge, base + work.offset, rkey, end.flags);
  } else {
    end.request = CompareAndSwapRequest(end.wr_id, &end.sge, base + work.offset, rkey,
                                        work.expected, work.desired, end.flags);
  }
}

// `op` is kNoOp for what nobody waits for.
void ClientSession::AddMessage(Link& link, uint32_t op, std::byte* data, uint32_t bytes,
                               int64_t now_ns) {
  const bool doorbell = chained_ == 0 || chained_ == kChainMax;
  const ChainEnd end = Extend(link, {op, InFlightWork::Kind::kMessage});
  end.sge = {reinterpret_cast<uint64_t>(data), bytes, memory_->requests.lkey()};
  const unsigned inline_flag = bytes <= link.inline_bytes() ? unsigned{IBV_SEND_INLINE} : 0u;
  end.request = SendRequest(end.wr_id, &end.sge, end.flags | inline_flag | link.send_flags());
  if (op != kNoOp) {
    owner_->OnRequestPosted(op, doorbell);
    if ((end.flags & IBV_SEND_SIGNALED) == 0) {
      chain_end_request_ = op;
    } else {
      owner_->OnRequestSignaled(op);
    }
  }
  link.liveness.OnSent(now_ns);
}

// One doorbell. The last work request is signaled, so that a chain's end is always heard of.
void ClientSession::PostChain(Link& link) {
  if (chained_ == 0) return;
  if (!ready()) {
    chained_ = 0;
    return;
  }
  for (uint32_t i = 0; i + 1 < chained_; ++i) chain_[i].next = &chain_[i + 1];
  ibv_send_wr& last = chain_[chained_ - 1];
  last.send_flags |= IBV_SEND_SIGNALED;
  last.next = nullptr;
  link.work.OnChainEnd();
  if (chain_end_request_ != kNoOp) owner_->OnRequestSignaled(chain_end_request_);
  chain_end_request_ = kNoOp;
  chained_ = 0;
  if (PostSend(link.qp(), chain_.data()) != PostResult::kPosted) [[unlikely]] {
    Break(absl::UnavailableError(absl::StrCat(endpoint(), ": the device refused a chain")));
  }
}

// On each queue pair that had nothing else to send.
void ClientSession::SendHeartbeats(int64_t now_ns) {
  for (Link& link : links_) {
    const bool due = link.phase == Link::Phase::kReady && link.liveness.HeartbeatDue(now_ns);
    if (!due || link.work.room() == 0) continue;
    AddMessage(link, kNoOp, memory_->heartbeat(), sizeof(RequestHeader), now_ns);
    PostChain(link);
  }
}

// After a resumption: the server answers from its record what it had already done.
void ClientSession::ResendUnanswered(int64_t now_ns) {
  window_.ForEachUnanswered([&](const RequestWindow::Entry& entry) {
    AddMessage(links_[0], entry.op, memory_->request(window_.IndexOf(entry.sequence)), entry.bytes,
               now_ns);
  });
  PostChain(links_[0]);
}

}  // namespace gannet
