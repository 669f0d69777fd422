#ifndef GANNET_SERVER_RPC_SERVER_CONNECTION_H_
#define GANNET_SERVER_RPC_SERVER_CONNECTION_H_

#include <algorithm>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/boot_time.h"
#include "common/protocol/message.h"
#include "common/rdma/connection.h"
#include "server/memory/store/store.h"
#include "server/rpc/send_queue_use.h"
#include "server/rpc/work_kind.h"
#include "server/sessions/session/session.h"

namespace gannet {

// A PUT whose value the server READs out of the client's memory, piece by piece and in order.
struct LargePut {
  uint32_t value_bytes() const { return header.value_bytes; }

  RequestHeader header;
  std::string key;
  std::vector<ValueSegment> segments;  // where the value is
  size_t segment = 0;                  // the one that the next piece is in
  uint32_t segment_posted = 0;         // bytes of that one
  BootTime began;
  uint32_t posted = 0;   // bytes of the value whose READs are posted
  uint32_t arrived = 0;  // bytes whose READs completed, or were flushed
  // The value's destination, once its first READ is posted: one of these two.
  std::optional<Store::Reservation> reservation;
  std::optional<uint32_t> buffer;  // the heap is full, and this replaces an item of its size
};

// What the record of a change that a request makes says of the request.
inline ChangeOrigin OriginOf(const Session& session, const RequestHeader& header) {
  return {.session_token = session.token(), .sequence = header.sequence, .opcode = header.opcode};
}

// A GET that waits for a staging buffer, because its value is too long for a reply.
struct LargeGet {
  RequestHeader header;
  std::string key;
  BootTime began;
};

// One queue pair of a session, as its worker sees it.
//
//   open --> closing --> drained, destroyed
//
// A closing connection posts nothing more and ignores what still arrives. The memory that its work
// in flight points to stays reserved until the flush was polled. Owner: one worker, its thread
// only.
struct ServerConnection {
  ServerConnection(uint32_t id, uint16_t qp_index, uint8_t rail, Session* session,
                   uint32_t send_places, std::unique_ptr<Connection> connection)
      : id(id),
        holder(id),
        qp_index(qp_index),
        rail(rail),
        session(session),
        rdma(std::move(connection)),
        qp_number(rdma->qp_number()),
        inline_bytes(rdma->limits().inline_bytes),
        send_flags(rdma->send_flags()),
        header_flags(send_flags | IBV_SEND_INLINE),
        send_id(PackWorkId(WorkKind::kSend, id, 0)),
        send_queue(send_places) {
    in_progress.reserve(session->credits());
    BeOrdinary(session->put_off.empty());
  }

  // Sets whether its requests may take the fast paths. REQUIRES: it is open.
  void BeOrdinary(bool is) {
    ordinary = is && !session->read_only();
    direct = ordinary && inline_bytes >= sizeof(ReplyHeader);
  }

  // in_progress lists the requests that take several completions, so that they can be given up.
  void RemoveInProgress(uint64_t sequence) {
    auto it = std::find(in_progress.begin(), in_progress.end(), sequence);
    if (it != in_progress.end()) in_progress.erase(it);
  }
  bool IsInProgress(uint64_t sequence) const {
    return std::find(in_progress.begin(), in_progress.end(), sequence) != in_progress.end();
  }

  const uint32_t id;  // never reused
  uint32_t holder;    // in lock words: its own id, or that of a lost connection of its session
  uint64_t name = 0;  // the name that its events carry
  const uint16_t qp_index;
  const uint8_t rail;          // of the server, by which it came
  uint16_t version = 0;        // of the protocol, as the grant says
  size_t accounted_bytes = 0;  // its share of the worker's figure
  Session* const session;
  std::unique_ptr<Connection> rdma;
  const uint32_t qp_number;
  const uint32_t inline_bytes;  // the most that a SEND takes inline
  const unsigned send_flags;    // of every send
  const unsigned header_flags;  // of a reply's header that is sent inline
  const uint64_t send_id;       // WrId of a send, without its position

  bool swaps = false;        // its client swaps lock words itself
  bool keeps_locks = false;  // the session keeps its locks when it breaks
  bool closing = false;
  bool ordinary;  // open, and its session may write, and has no writes that are put off
  bool direct;    // ordinary, and the device sends a reply's header inline
  BootTime closing_since;
  BootTime since;  // when it was made
  BootTime heard;  // when the peer was last heard of

  // The account of the queue pair's send queue, and the chain that is not posted yet.
  SendQueueUse send_queue;
  ibv_send_wr* chain_head = nullptr;
  ibv_send_wr** chain_end = &chain_head;  // where the next request is linked in

  // For the check that the peer takes its replies: the position of the send queue while it awaits a
  // completion, and since when it has been there.
  uint32_t done_seen = 0;
  BootTime untaken_since;
  // Buffers of the worker's pools that its sends keep busy.
  uint32_t reply_buffers = 0;
  uint32_t staging_buffers = 0;
  uint32_t tier_gets = 0;  // that wait for the disk

  // Requests received and not answered. A request is answered when its reply is posted.
  uint32_t unanswered = 0;
  uint32_t answers_in_chain = 0;
  std::vector<uint64_t> in_progress;  // at most `credits`
  // Large PUTs of which READs are in flight, and those that wait, in the order of their READs. Only
  // the last of the former has READs that are still to be posted. These are lists because an empty
  // list takes no memory, and most are empty.
  std::list<LargePut> puts_reading;
  std::list<LargePut> puts_waiting;
  std::list<LargeGet> gets_waiting;
  uint32_t reads_in_flight = 0;  // at most rdma->depth().issued
  uint32_t read_bytes_in_flight = 0;
  bool has_long_puts() const { return !puts_reading.empty() || !puts_waiting.empty(); }

  // The memory that the server keeps for it while no large value is on its way, by our own account.
  // The queue pair and the cm id belong to the device.
  size_t MemoryBytes() const {
    return sizeof(*this) + sizeof(*rdma) + send_queue.MemoryBytes() +
           in_progress.capacity() * sizeof(uint64_t);
  }
};

}  // namespace gannet

#endif  // GANNET_SERVER_RPC_SERVER_CONNECTION_H_
