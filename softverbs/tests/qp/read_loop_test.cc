#include <gtest/gtest.h>

#include <cstring>

#include "softverbs/tests/support/verbs_fixture.h"

namespace softverbs {
namespace {

constexpr int kReads = 1000;  // as many as CMakeLists.txt here says
constexpr size_t kBytes = 64;

// The part that tools/figures/instructions counts: from ibv_post_send to the polled completion. It
// is a function with C linkage so that it is found by its name.
extern "C" __attribute__((noinline)) bool PostReadAndPoll(ibv_qp* qp, ibv_send_wr* wr, ibv_cq* cq) {
  ibv_send_wr* bad;
  if (ibv_post_send(qp, wr, &bad) != 0) return false;
  ibv_wc wc;
  int polled;
  do {
    polled = ibv_poll_cq(cq, 1, &wc);
  } while (polled == 0);
  return polled == 1 && wc.status == IBV_WC_SUCCESS;
}

TEST(ReadLoopTest, ReadsMappedMemory) {
  const Owned<ibv_context> device = OpenDevice();
  SideOptions mapped;
  mapped.kind = MemoryKind::kMapped;
  Pair pair(device.get(), {}, mapped);
  pair.b.Fill(0, pair.b.memory.size(), 9);
  // The first READs go as packets, until the region is mapped.
  for (uint64_t wr_id = 0; wr_id < 10; ++wr_id) {
    ASSERT_EQ(pair.a.Read(wr_id, 0, kBytes, pair.b.address(), 0), 0);
    ASSERT_EQ(pair.a.Next().status, IBV_WC_SUCCESS);
  }
  ibv_sge sge = pair.a.Sge(0, kBytes);
  ibv_send_wr wr{};
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_RDMA_READ;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma.rkey = pair.b.address().rkey;
  for (int i = 0; i < kReads; ++i) {
    const size_t at = static_cast<size_t>(i) * kBytes;
    wr.wr.rdma.remote_addr = pair.b.memory.address() + at;
    ASSERT_TRUE(PostReadAndPoll(pair.a.qp.get(), &wr, pair.a.cq.get()));
    ASSERT_EQ(memcmp(pair.a.memory.data(), pair.b.memory.data() + at, kBytes), 0);
  }
}

}  // namespace
}  // namespace softverbs
