#ifndef GANNET_SERVER_RPC_SEND_BATCH_H_
#define GANNET_SERVER_RPC_SEND_BATCH_H_

#include <array>
#include <cstdint>
#include <vector>

#include "common/base/data_path_checks.h"
#include "common/protocol/message.h"
#include "server/rpc/buffer_pool.h"
#include "server/rpc/server_connection.h"

namespace gannet {

class ConnectionCloser;

// Collects what one Poll of a worker sends into a chain for each connection. So each connection
// costs one doorbell, however many replies it gets.
//
// A reply with a value is written into a buffer of the pool. Short replies are sent inline, and
// their buffer is free again once posted. A reply of only a header takes no buffer if the device
// can send it inline. Owner thread only.
class SendBatch {
 public:
  // `closer` closes connections that cannot send: the send queue is full, or the device refused.
  // It may not exist yet.
  SendBatch(BufferPool* replies, ConnectionCloser& closer);

  // Each of these returns false if it adds nothing: the connection is closing.
  //
  // Adds the reply of `bytes` in buffer `buffer` of the pool. Takes the buffer over.
  bool AddReply(ServerConnection* connection, uint32_t buffer, uint32_t bytes);
  // Adds a reply of only a header. The caller must fill it in before it adds anything else. Returns
  // nullptr instead of false.
  ReplyHeader* AddHeader(ServerConnection* connection);
  // AddHeader without its checks. REQUIRES: TakesHeader(*connection); at most kDirectMax calls
  // between two Flush.
  ReplyHeader* AddInlineHeader(ServerConnection* connection);
  static bool TakesHeader(const ServerConnection& connection) {
    return connection.direct && connection.send_queue.HasRoom();
  }
  static constexpr uint32_t kDirectMax = 64;
  // Adds a READ from the peer into `sge`.
  bool AddRead(ServerConnection* connection, const ibv_sge& sge, uint64_t address, uint32_t rkey);
  // Adds a WRITE to the peer from `sge`. `resource` is busy until the WRITE completed.
  bool AddWrite(ServerConnection* connection, const ibv_sge& sge, uint64_t address, uint32_t rkey,
                Resource resource);

  // Posts all chains.
  void Flush();
  uint64_t posts() const { return posts_; }  // doorbells so far

 private:
  static constexpr uint32_t kRequestsMax = 128;  // then Add flushes; kDirectMax come on top
  struct Entry {
    ibv_send_wr request;
    ibv_sge sge;
    ibv_sge header_sge;  // always names `header`
    ReplyHeader header;  // of a reply that is sent inline
  };

  // For devices that do not send a header inline.
  ReplyHeader* AddHeaderInBuffer(ServerConnection* connection);
  // Takes an entry and a place in the send queue, and links it into the connection's chain.
  Entry* Take(ServerConnection* connection, ibv_wr_opcode opcode, unsigned flags, Resource resource,
              bool signaled);
  // Makes it the inline SEND of its own header. The post copies inline data, so the header needs no
  // registered memory.
  static ReplyHeader* InlineHeader(Entry* entry) {
    entry->request.sg_list = &entry->header_sge;
    return &entry->header;
  }
  // Returns an entry whose sge the caller must fill in, or nullptr if the connection cannot send.
  Entry* Add(ServerConnection* connection, ibv_wr_opcode opcode, unsigned flags, Resource resource,
             bool signaled);
  void Touch(ServerConnection* connection);
  void Post(ServerConnection* connection);

  BufferPool* const replies_;
  ConnectionCloser& closer_;
  std::array<Entry, kRequestsMax + kDirectMax> entries_;
  Entry* next_ = entries_.data();  // the first free entry
  uint64_t posts_ = 0;
  std::vector<ServerConnection*> touched_;  // have a chain
  std::vector<uint32_t> inline_buffers_;    // become free after the post
};

// The constructor filled in the fields that are the same in all requests. Post marks the end of a
// chain.
[[gnu::always_inline]] inline SendBatch::Entry* SendBatch::Take(ServerConnection* connection,
                                                                ibv_wr_opcode opcode,
                                                                unsigned flags, Resource resource,
                                                                bool signaled) {
  const SendQueueUse::Place place = connection->send_queue.Add(resource, signaled);
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
  GANNET_CHECK_DATA_PATH(TakesHeader(*connection), "the connection takes no header now");
  return InlineHeader(Take(connection, IBV_WR_SEND, connection->header_flags, {}, false));
}

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_SEND_BATCH_H_
