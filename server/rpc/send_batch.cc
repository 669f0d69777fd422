// Chains of a Poll, one a connection. A reply is sent inline if it is short, else from a buffer of
// the pool, which is free again when the SEND has completed.

#include "server/rpc/send_batch.h"

#include <new>
#include <optional>
#include <utility>

#include "server/rpc/connection_closer.h"

namespace gannet {

SendBatch::SendBatch(BufferPool* replies, ConnectionCloser& closer)
    : replies_(replies), closer_(closer) {
  touched_.reserve(kRequestsMax);
  inline_buffers_.reserve(kRequestsMax);
  for (Entry& entry : entries_) {
    entry.request = SendRequest(0, &entry.sge, 0);
    entry.header_sge = {reinterpret_cast<uint64_t>(&entry.header), sizeof(entry.header), 0};
  }
}

SendBatch::Entry* SendBatch::Add(ServerConnection* connection, ibv_wr_opcode opcode, unsigned flags,
                                 Resource resource, bool signaled) {
  if (next_ >= entries_.data() + kRequestsMax) Flush();
  if (connection->closing) return nullptr;
  if (!connection->send_queue.HasRoom()) {
    closer_.Close(connection, "the peer does not take its replies");
    return nullptr;
  }
  Entry* entry = Take(connection, opcode, flags, resource, signaled);
  entry->request.sg_list = &entry->sge;
  return entry;
}

bool SendBatch::AddReply(ServerConnection* connection, uint32_t buffer, uint32_t bytes) {
  const bool fits_inline = bytes <= connection->inline_bytes;
  Resource resource;
  if (!fits_inline) resource = {Resource::Kind::kReplyBuffer, buffer};
  Entry* entry = Add(connection, IBV_WR_SEND, connection->send_flags, resource, !fits_inline);
  if (entry == nullptr) {
    replies_->Give(buffer);
    return false;
  }
  entry->sge = replies_->Sge(buffer, bytes, connection->rail);
  connection->reply_buffers += !fits_inline;
  if (fits_inline) {
    entry->request.send_flags |= IBV_SEND_INLINE;
    inline_buffers_.push_back(buffer);
  }
  return true;
}

ReplyHeader* SendBatch::AddHeader(ServerConnection* connection) {
  if (sizeof(ReplyHeader) > connection->inline_bytes) return AddHeaderInBuffer(connection);
  Entry* entry = Add(connection, IBV_WR_SEND, connection->header_flags, {}, false);
  return entry == nullptr ? nullptr : InlineHeader(entry);
}

ReplyHeader* SendBatch::AddHeaderInBuffer(ServerConnection* connection) {
  if (connection->closing) return nullptr;
  const std::optional<uint32_t> buffer = replies_->Take();
  if (!buffer) {
    closer_.Close(connection, "no reply buffer is free");
    return nullptr;
  }
  if (!AddReply(connection, *buffer, sizeof(ReplyHeader))) return nullptr;
  return new (replies_->Bytes(*buffer).data()) ReplyHeader;
}

bool SendBatch::AddRead(ServerConnection* connection, const ibv_sge& sge, uint64_t address,
                        uint32_t rkey) {
  Entry* entry = Add(connection, IBV_WR_RDMA_READ, connection->send_flags,
                     {Resource::Kind::kRead, sge.length}, /*signaled=*/true);
  if (entry == nullptr) return false;
  entry->sge = sge;
  entry->request.send_flags &= ~unsigned{IBV_SEND_FENCE};  // READs complete in order among READs
  entry->request.wr.rdma = {address, rkey};
  return true;
}

bool SendBatch::AddWrite(ServerConnection* connection, const ibv_sge& sge, uint64_t address,
                         uint32_t rkey, Resource resource) {
  Entry* entry =
      Add(connection, IBV_WR_RDMA_WRITE, connection->send_flags, resource, /*signaled=*/true);
  if (entry == nullptr) return false;
  entry->sge = sge;
  entry->request.wr.rdma = {address, rkey};
  return true;
}

void SendBatch::Touch(ServerConnection* connection) { touched_.push_back(connection); }

void SendBatch::Post(ServerConnection* connection) {
  *connection->chain_end = nullptr;
  ibv_send_wr* chain = std::exchange(connection->chain_head, nullptr);
  connection->chain_end = &connection->chain_head;
  connection->unanswered -= std::exchange(connection->answers_in_chain, 0);
  // The chain of a closing connection is released with the rest of its send queue.
  if (connection->closing) return;
  ++posts_;
  if (PostSend(connection->rdma->qp(), chain) != PostResult::kPosted) {
    closer_.Close(connection, "the device refused to send");
  }
}

void SendBatch::Flush() {
  for (ServerConnection* connection : touched_) Post(connection);
  touched_.clear();
  for (uint32_t buffer : inline_buffers_) replies_->Give(buffer);
  inline_buffers_.clear();
  next_ = entries_.data();
}

}  // namespace gannet
