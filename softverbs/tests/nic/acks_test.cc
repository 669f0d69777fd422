// How many packets acknowledge what arrived.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "softverbs/tests/support/role_process.h"
#include "softverbs/tests/support/verbs_fixture.h"

namespace softverbs {
namespace {

using test_support::ChildProcess;
using test_support::OwnPath;
using test_support::RegisterRole;
using test_support::RoleArgument;

constexpr int kMessages = 32;

// Posts a chain of SENDs within one process, all of which wait in the link before one is executed:
// the adapter sleeps until the post rings it.
int SendChain(int) {
  Owned<ibv_context> device = OpenDevice();
  Pair pair(device.get());
  ibv_sge sge = pair.a.Sge(0, 8);
  ibv_send_wr chain[kMessages] = {};
  for (int i = 0; i < kMessages; ++i) {
    if (pair.b.PostReceive(i, 64 * i, 64) != 0) return 2;
    chain[i].next = i + 1 < kMessages ? &chain[i + 1] : nullptr;
    chain[i].wr_id = static_cast<uint64_t>(i);
    chain[i].sg_list = &sge;
    chain[i].num_sge = 1;
    chain[i].opcode = IBV_WR_SEND;
    chain[i].send_flags = IBV_SEND_SIGNALED;
  }
  ibv_send_wr* bad = nullptr;
  if (ibv_post_send(pair.a.qp.get(), chain, &bad) != 0) return 3;
  for (uint64_t i = 0; i < kMessages; ++i) {
    const ibv_wc sent = pair.a.Next();
    const ibv_wc received = pair.b.Next();
    if (sent.status != IBV_WC_SUCCESS || sent.wr_id != i) return 4;
    if (received.status != IBV_WC_SUCCESS || received.wr_id != i) return 5;
  }
  return 0;
}
const RegisterRole send_chain_role("send_chain", SendChain);

TEST(AcksTest, OneAcknowledgesAllMessagesThatCameTogether) {
  ChildProcess child({.argv = {OwnPath(), RoleArgument("send_chain")},
                      .streams = ChildProcess::Streams::kCaptured,
                      .environment = {"SOFTVERBS_STATS=1"}});
  EXPECT_EQ(child.Wait(), 0);
  const std::string text = child.Stderr();
  EXPECT_NE(text.find(",\"acks\":1}"), std::string::npos) << text;
}

TEST(AcksTest, WhatArrivedIsAcknowledgedThoughTheQueuePairFailsInTheSameBatch) {
  const Owned<ibv_context> device = OpenDevice();
  ConnectOptions connect;
  connect.rnr_retry = 0;
  for (int round = 0; round < 50; ++round) {
    Pair pair(device.get(), {}, {}, connect);
    ASSERT_EQ(pair.b.PostReceive(1, 0, 64), 0);
    // Mostly both are executed together. The second finds no receive, so `b` fails.
    ASSERT_EQ(pair.a.PostSend(2, 0, 8), 0);
    ASSERT_EQ(pair.b.PostSend(3, 0, 8), 0);
    ASSERT_EQ(pair.a.Next().status, IBV_WC_SUCCESS);
    ASSERT_EQ(pair.b.Next().status, IBV_WC_SUCCESS);
    ASSERT_EQ(pair.b.Next().status, IBV_WC_RNR_RETRY_EXC_ERR);
  }
}

}  // namespace
}  // namespace softverbs
