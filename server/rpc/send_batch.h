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
  bool AddHeader(ServerConnection* connection, const ReplyHeader& reply);
  // READ from the peer into `sge`.
  bool AddRead(ServerConnection* connection, const ibv_sge& sge, uint64_t address, uint32_t rkey);
  // WRITE to the peer from `sge`; `staging` is busy until it completed.
  bool AddWrite(ServerConnection* connection, const ibv_sge& sge, uint64_t address, uint32_t rkey,
                uint32_t staging);

  // Posts all chains.
  void Flush();
  bool empty() const { return used_ == 0; }

 private:
  static constexpr uint32_t kRequestsMax = 128;
  struct Entry {
    ibv_send_wr request;
    ibv_sge sge;
    ReplyHeader header;  // of a reply that is sent inline from here
  };

  // An entry for `connection`, linked into its chain; nullptr: refused.
  Entry* Add(ServerConnection* connection, const ibv_sge& sge, Resource resource, bool signaled);
  void Post(ServerConnection* connection);

  BufferPool* const replies_;
  const Refused refused_;
  std::array<Entry, kRequestsMax> entries_;
  uint32_t used_ = 0;
  std::vector<ServerConnection*> touched_;  // with a chain
  std::vector<uint32_t> inline_buffers_;    // free again after the post
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_SEND_BATCH_H_
