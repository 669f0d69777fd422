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
  // AddHeader, where nothing stands against it. REQUIRES: TakesHeader(*connection); at most
  // kDirectMax times between two Flush.
  ReplyHeader* AddInlineHeader(ServerConnection* connection);
  static bool TakesHeader(const ServerConnection& connection) {
    return connection.direct && connection.send_queue.HasRoom();
  }
  static constexpr uint32_t kDirectMax = 64;
  // READ from the peer into `sge`.
  bool AddRead(ServerConnection* connection, const ibv_sge& sge, uint64_t address, uint32_t rkey);
  // WRITE to the peer from `sge`; `staging` is busy until it completed.
  bool AddWrite(ServerConnection* connection, const ibv_sge& sge, uint64_t address, uint32_t rkey,
                uint32_t staging);

  // Posts all chains.
  void Flush();
  uint64_t posts() const { return posts_; }  // doorbells so far

 private:
  static constexpr uint32_t kRequestsMax = 128;  // then all are posted, kDirectMax aside
  struct Entry {
    ibv_send_wr request;
    ibv_sge sge;
    ibv_sge header_sge;  // always of `header`
    ReplyHeader header;  // of a reply that is sent inline from here
  };

  // Where the device does not send a header inline.
  ReplyHeader* AddHeaderInBuffer(ServerConnection* connection);
  // Takes an entry and a place in the send queue, and links it into the connection's chain.
  Entry* Take(ServerConnection* connection, ibv_wr_opcode opcode, unsigned flags, Resource resource,
              bool signaled);
  // Makes it the SEND of its own header, inline: copied at the post, that needs no registered
  // memory.
  static ReplyHeader* InlineHeader(Entry* entry) {
    entry->request.sg_list = &entry->header_sge;
    return &entry->header;
  }
  // An entry for `connection`, its sge to be filled in; nullptr: refused.
  Entry* Add(ServerConnection* connection, ibv_wr_opcode opcode, unsigned flags, Resource resource,
             bool signaled);
  void Touch(ServerConnection* connection);
  void Post(ServerConnection* connection);

  BufferPool* const replies_;
  const Refused refused_;
  std::array<Entry, kRequestsMax + kDirectMax> entries_;
  Entry* next_ = entries_.data();  // free from here on
  uint64_t posts_ = 0;
  std::vector<ServerConnection*> touched_;  // with a chain
  std::vector<uint32_t> inline_buffers_;    // free again after the post
};

// What no kind of request changes was filled in at construction; the end of a chain is marked at
// its post.
[[gnu::always_inline]] inline SendBatch::Entry* SendBatch::Take(ServerConnection* connection,
                                                                ibv_wr_opcode opcode,
                                                                unsigned flags, Resource resource,
                                                                bool signaled) {
  const SendQueue::Place place = connection->send_queue.Add(resource, signaled);
  Entry* const entry = next_++;
  entry->request.wr_id = connection->send_id | place.position;
  entry->request.opcode = opcode;
  entry->request.send_flags = flags;
  if (place.signaled) [[unlikely]]
    entry->request.send_flags |= IBV_SEND_SIGNALED;
  if (connection->chain_end == &connection->chain_head) Touch(connection);
  *connection->chain_end = &entry->request;
  connection->chain_end = &entry->request.next;
  return entry;
}

[[gnu::always_inline]] inline ReplyHeader* SendBatch::AddInlineHeader(
    ServerConnection* connection) {
  return InlineHeader(Take(connection, IBV_WR_SEND, connection->header_flags, {}, false));
}

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_SEND_BATCH_H_
