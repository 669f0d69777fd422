#ifndef SOFTVERBS_TESTS_SUPPORT_DATAGRAM_SIDE_H_
#define SOFTVERBS_TESTS_SUPPORT_DATAGRAM_SIDE_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <string>

#include "softverbs/tests/support/verbs_fixture.h"

namespace softverbs {

inline constexpr uint32_t kQkey = 0x1234;
inline constexpr size_t kHeader = sizeof(ibv_grh);
inline constexpr size_t kMtu = 4096;

// A UD queue pair that is ready to send, with a CQ for each direction and one region of memory.
struct DatagramSide {
  explicit DatagramSide(ibv_context* context, uint32_t qkey = kQkey, ibv_srq* srq = nullptr);

  // Makes an address handle from this host's GID of the index (0: IPv6, 1: IPv4) to the same GID,
  // or to a group.
  Owned<ibv_ah> Handle(uint8_t gid_index = 0) const;
  Owned<ibv_ah> GroupHandle(const ibv_gid& group) const;

  // Posts a receive of `length` bytes, header included, at `offset`. Returns 0 or errno.
  int PostReceive(uint64_t wr_id, size_t offset, size_t length);
  // Sends the text, signaled, and waits for the completion.
  ibv_wc Send(ibv_ah* to, uint32_t qpn, const std::string& text, uint32_t qkey = kQkey);
  // Posts `wr`, signaled, after filling in its destination and sge. Returns 0 or errno.
  int Post(ibv_send_wr wr, ibv_ah* to, uint32_t qpn, ibv_sge sge);
  // Returns what a receive at `offset` got, without the header.
  std::string Text(size_t offset, const ibv_wc& wc) const;
  ibv_qp_state State() const;

  ibv_wc NextSent() { return NextCompletion(send_cq.get()); }
  ibv_wc NextReceived() { return NextCompletion(recv_cq.get()); }
  bool NothingReceived();
  ibv_sge Sge(size_t offset, size_t length) const {
    return {memory.address() + offset, static_cast<uint32_t>(length), mr->lkey};
  }

  Owned<ibv_pd> pd;
  Owned<ibv_cq> send_cq;
  Owned<ibv_cq> recv_cq;
  TestMemory memory;
  Owned<ibv_mr> mr;
  Owned<ibv_qp> qp;
};

}  // namespace softverbs

#endif  // SOFTVERBS_TESTS_SUPPORT_DATAGRAM_SIDE_H_
