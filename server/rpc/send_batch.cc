#include "server/rpc/send_batch.h"

#include <cstring>
#include <optional>
#include <utility>

#include "server/rpc/work_kind.h"

namespace gannet {

SendBatch::SendBatch(BufferPool* replies, Refused refused)
    : replies_(replies), refused_(std::move(refused)) {
  touched_.reserve(kRequestsMax);
  inline_buffers_.reserve(kRequestsMax);
}

SendBatch::Entry* SendBatch::Add(ServerConnection* connection, const ibv_sge& sge,
                                 Resource resource, bool signaled) {
  if (used_ == kRequestsMax) Flush();
  if (connection->closing) return nullptr;
  if (!connection->send_queue.HasRoom(1)) {
    refused_(connection, "the peer does not take its replies");
    return nullptr;
  }
  SendQueue& queue = connection->send_queue;
  const uint32_t position = queue.Add(resource);
  const unsigned signal = queue.ShouldSignal(signaled) ? IBV_SEND_SIGNALED : 0;
  Entry& entry = entries_[used_++];
  entry.sge = sge;
  entry.request = SendRequest(PackWorkId(WorkKind::kSend, connection->id, position), &entry.sge,
                              connection->rdma->send_flags() | signal);
  if (connection->chain_head == nullptr) {
    connection->chain_head = &entry.request;
    touched_.push_back(connection);
  } else {
    connection->chain_tail->next = &entry.request;
  }
  connection->chain_tail = &entry.request;
  return &entry;
}

bool SendBatch::AddReply(ServerConnection* connection, uint32_t buffer, uint32_t bytes) {
  const bool fits_inline = bytes <= connection->rdma->limits().inline_bytes;
  Resource resource;
  if (!fits_inline) resource = {Resource::Kind::kReplyBuffer, buffer};
  Entry* entry = Add(connection, replies_->Sge(buffer, bytes), resource, !fits_inline);
  if (entry == nullptr) {
    replies_->Give(buffer);
    return false;
  }
  if (fits_inline) {
    entry->request.send_flags |= IBV_SEND_INLINE;
    inline_buffers_.push_back(buffer);
  }
  return true;
}

bool SendBatch::AddHeader(ServerConnection* connection, const ReplyHeader& reply) {
  if (connection->closing) return false;
  if (sizeof(reply) > connection->rdma->limits().inline_bytes) {
    const std::optional<uint32_t> buffer = replies_->Take();
    if (!buffer) {
      refused_(connection, "no reply buffer is free");
      return false;
    }
    std::memcpy(replies_->Bytes(*buffer).data(), &reply, sizeof(reply));
    return AddReply(connection, *buffer, sizeof(reply));
  }
  Entry* entry = Add(connection, {}, {}, /*signaled=*/false);
  if (entry == nullptr) return false;
  entry->header = reply;
  // Inline: copied at the post, so it needs no registered memory.
  entry->sge = {reinterpret_cast<uint64_t>(&entry->header), sizeof(entry->header), 0};
  entry->request.send_flags |= IBV_SEND_INLINE;
  return true;
}

bool SendBatch::AddRead(ServerConnection* connection, const ibv_sge& sge, uint64_t address,
                        uint32_t rkey) {
  Entry* entry = Add(connection, sge, {Resource::Kind::kRead, 0}, /*signaled=*/true);
  if (entry == nullptr) return false;
  entry->request.opcode = IBV_WR_RDMA_READ;
  entry->request.send_flags &= ~unsigned{IBV_SEND_FENCE};  // READs complete in order among READs
  entry->request.wr.rdma = {address, rkey};
  return true;
}

bool SendBatch::AddWrite(ServerConnection* connection, const ibv_sge& sge, uint64_t address,
                         uint32_t rkey, uint32_t staging) {
  Entry* entry = Add(connection, sge, {Resource::Kind::kStaging, staging}, /*signaled=*/true);
  if (entry == nullptr) return false;
  entry->request.opcode = IBV_WR_RDMA_WRITE;
  entry->request.wr.rdma = {address, rkey};
  return true;
}

void SendBatch::Post(ServerConnection* connection) {
  ibv_send_wr* chain = std::exchange(connection->chain_head, nullptr);
  connection->chain_tail = nullptr;
  connection->unanswered -= std::exchange(connection->answers_in_chain, 0);
  // What a closing connection had in its chain is released with the rest of its send queue.
  if (connection->closing) return;
  if (PostSend(connection->rdma->qp(), chain) != PostResult::kPosted) {
    refused_(connection, "the device refused to send");
  }
}

void SendBatch::Flush() {
  for (ServerConnection* connection : touched_) Post(connection);
  touched_.clear();
  for (uint32_t buffer : inline_buffers_) replies_->Give(buffer);
  inline_buffers_.clear();
  used_ = 0;
}

}  // namespace gannet
