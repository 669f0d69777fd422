#ifndef GANNET_SERVER_RPC_SEND_BATCH_H_
#define GANNET_SERVER_RPC_SEND_BATCH_H_

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "common/protocol/message.h"
#include "server/rpc/buffer_pool.h"
#include "server/rpc/server_connection.h"

namespace gannet {

// What one Poll of a worker has to send, collected into a chain for each connection, so that each
// connection costs one doorbell however many replies it gets.
//
// A reply with a value is written into a buffer of the pool; short ones are sent inline, and their
// buffer is free again once posted. A reply of only a header takes no buffer where the device sends
// as much inline. Owner thread only.
class SendBatch {
 public:
  // Called for connections that took no more: their send queue overran or the device refused.
  using Refused = std::function<void(ServerConnection*, const char* why)>;

  SendBatch(BufferPool* replies, Refused refused);

  // Each returns false when it could not be taken; the connection was then given to `refused`.
  //
  // A reply that lies in buffer `buffer` of the pool, `bytes` long. Takes the buffer over.
  bool AddReply(ServerConnection* connection, uint32_t buffer, uint32_t bytes);
  // A reply of only a header, to be filled in before anything else is added; nullptr when refused.
  ReplyHeader* AddHeader(ServerConnection* connection);
  // READ from the peer into `sge`.
  bool AddRead(ServerConnection* connection, const ibv_sge& sge, uint64_t address, uint32_t rkey);
  // WRITE to the peer from `sge`; `staging` is busy until it completed.
  bool AddWrite(ServerConnection* connection, const ibv_sge& sge, uint64_t address, uint32_t rkey,
                uint32_t staging);

  // Posts all chains.
  void Flush();
  bool empty() const { return used_ == 0; }
  uint64_t posts() const { return posts_; }  // doorbells so far

 private:
  static constexpr uint32_t kRequestsMax = 128;
  struct Entry {
    ibv_send_wr request;
    ibv_sge sge;
    ReplyHeader header;  // of a reply that is sent inline from here
  };

  // Where the device does not send a header inline.
  ReplyHeader* AddHeaderInBuffer(ServerConnection* connection);
  // An entry for `connection`, linked into its chain, its sge to be filled in; nullptr: refused.
  Entry* Add(ServerConnection* connection, ibv_wr_opcode opcode, Resource resource, bool signaled);
  void Post(ServerConnection* connection);

  BufferPool* const replies_;
  const Refused refused_;
  std::array<Entry, kRequestsMax> entries_;
  uint32_t used_ = 0;
  uint64_t posts_ = 0;
  std::vector<ServerConnection*> touched_;  // with a chain
  std::vector<uint32_t> inline_buffers_;    // free again after the post
};

// What no kind of request changes was filled in at construction.
[[gnu::always_inline]] inline SendBatch::Entry* SendBatch::Add(ServerConnection* connection,
                                                               ibv_wr_opcode opcode,
                                                               Resource resource, bool signaled) {
  if (used_ == kRequestsMax) [[unlikely]]
    Flush();
  if (connection->closing) [[unlikely]]
    return nullptr;
  if (!connection->send_queue.HasRoom(1)) [[unlikely]] {
    refused_(connection, "the peer does not take its replies");
    return nullptr;
  }
  SendQueue& queue = connection->send_queue;
  const uint32_t position = queue.Add(resource);
  const unsigned signal = queue.ShouldSignal(signaled) ? IBV_SEND_SIGNALED : 0;
  Entry& entry = entries_[used_++];
  entry.request.wr_id = connection->send_id | position;
  entry.request.next = nullptr;
  entry.request.opcode = opcode;
  entry.request.send_flags = connection->send_flags | signal;
  if (connection->chain_head == nullptr) {
    connection->chain_head = &entry.request;
    touched_.push_back(connection);
  } else {
    connection->chain_tail->next = &entry.request;
  }
  connection->chain_tail = &entry.request;
  return &entry;
}

[[gnu::always_inline]] inline ReplyHeader* SendBatch::AddHeader(ServerConnection* connection) {
  if (sizeof(ReplyHeader) > connection->inline_bytes) [[unlikely]]
    return AddHeaderInBuffer(connection);
  Entry* entry = Add(connection, IBV_WR_SEND, {}, /*signaled=*/false);
  if (entry == nullptr) [[unlikely]]
    return nullptr;
  // Inline: copied at the post, so it needs no registered memory.
  entry->sge = {reinterpret_cast<uint64_t>(&entry->header), sizeof(entry->header), 0};
  entry->request.send_flags |= IBV_SEND_INLINE;
  return &entry->header;
}

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_SEND_BATCH_H_
