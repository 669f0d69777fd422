#include <fcntl.h>
#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <poll.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <future>
#include <string>
#include <string_view>
#include <vector>

#include "softverbs/tests/support/role_process.h"
#include "softverbs/tests/support/verbs_fixture.h"

// Requests that are larger than a ring of the link, between two ends that sleep: whoever waits for
// packets, for room in the ring or for completions must be woken (packet_engine.h).

namespace softverbs {
namespace {

using test_support::Put;
using test_support::RegisterRole;
using test_support::RoleProcess;
using test_support::Take;

enum class RoomOps : uint8_t { kWrite, kWriteImm, kSend, kRead, kAtomics, kInline, kMixed };
enum class RoomWait : uint8_t { kForEvent, kInPoll, kInPollNonBlocking };

// What the ends do, and how they wait.
struct RoomStyle {
  RoomOps ops;
  RoomWait wait;
  MemoryKind kind = MemoryKind::kPrivate;
  bool both = false;  // both ends post requests
};

constexpr uint32_t kRoomRounds = 16;
constexpr uint32_t kRoomBytes = 1 << 20;
constexpr uint32_t kRoomInlineBytes = 256;
constexpr uint32_t kRoomReceives = 1000;

// A burst is larger than the ring in each direction that it uses.
uint32_t BurstOf(RoomOps ops) { return ops == RoomOps::kInline ? 2000 : 12; }

ibv_wr_opcode OpcodeAt(RoomOps ops, uint32_t i) {
  constexpr ibv_wr_opcode kAtomics[] = {IBV_WR_RDMA_WRITE, IBV_WR_ATOMIC_CMP_AND_SWP,
                                        IBV_WR_ATOMIC_FETCH_AND_ADD};
  constexpr ibv_wr_opcode kMixed[] = {IBV_WR_RDMA_WRITE, IBV_WR_ATOMIC_FETCH_AND_ADD,
                                      IBV_WR_RDMA_READ, IBV_WR_SEND};
  switch (ops) {
    case RoomOps::kWrite:
      return IBV_WR_RDMA_WRITE;
    case RoomOps::kWriteImm:
      return IBV_WR_RDMA_WRITE_WITH_IMM;
    case RoomOps::kSend:
      return IBV_WR_SEND;
    case RoomOps::kRead:
      return IBV_WR_RDMA_READ;
    case RoomOps::kAtomics:
      return kAtomics[i % 3];
    case RoomOps::kInline:
      return i % 2 == 0 ? IBV_WR_RDMA_WRITE : IBV_WR_SEND;
    case RoomOps::kMixed:
      return kMixed[i % 4];
  }
  return IBV_WR_SEND;
}

bool IsAtomicOpcode(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

bool TakesReceive(ibv_wr_opcode opcode) {
  return opcode == IBV_WR_SEND || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

uint32_t ReceivesOf(RoomOps ops) {
  uint32_t receives = 0;
  for (uint32_t i = 0; i < BurstOf(ops); ++i) receives += TakesReceive(OpcodeAt(ops, i));
  return receives;
}

SideOptions RoomSide(const RoomStyle& style) {
  SideOptions options;
  options.kind = style.kind;
  options.memory = kRoomBytes;
  options.max_send_wr = 2048;
  options.max_recv_wr = kRoomReceives;
  options.max_inline = kRoomInlineBytes;
  options.cqe = 4096;
  options.with_channel = true;
  return options;
}

// One end. It posts bursts, reposts receives, and waits for all completions by events.
class RoomEnd {
 public:
  RoomEnd(Side* side, const RoomStyle& style) : side_(*side), style_(style) {
    const int fd = side_.channel->fd;
    if (style.wait == RoomWait::kInPollNonBlocking) {
      fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    }
  }

  bool PostReceives() {
    for (uint32_t i = 0; i < kRoomReceives; ++i) {
      if (side_.PostReceive(i, 0, kRoomBytes) != 0) return false;
    }
    return true;
  }

  // Returns what went wrong, or "".
  std::string Run(const Address& peer, bool requests, bool receives) {
    peer_ = peer;
    receives_left_ = receives ? kRoomRounds * ReceivesOf(style_.ops) : 0;
    for (uint32_t round = 0; requests && round < kRoomRounds; ++round) {
      for (uint32_t i = 0; i < BurstOf(style_.ops); ++i) {
        if (PostRequest(i) != 0) return "post failed in round " + std::to_string(round);
        ++requests_left_;
      }
      if (!AwaitCompletions(&requests_left_)) return Stuck("round " + std::to_string(round));
    }
    if (!AwaitCompletions(&receives_left_)) return Stuck("the end");
    // From here on its application comes no more, although it has armed its CQ.
    return ibv_req_notify_cq(side_.cq.get(), 0) == 0 ? "" : "arm failed";
  }

 private:
  int PostRequest(uint32_t i) {
    ibv_send_wr wr{};
    wr.opcode = OpcodeAt(style_.ops, i);
    wr.send_flags = IBV_SEND_SIGNALED;
    uint32_t bytes = kRoomBytes - i % 3 * 4096;
    if (style_.ops == RoomOps::kInline) {
      wr.send_flags |= IBV_SEND_INLINE;
      bytes = kRoomInlineBytes - i % 3;
    }
    if (IsAtomicOpcode(wr.opcode)) {
      wr.wr.atomic.remote_addr = peer_.memory;
      wr.wr.atomic.rkey = peer_.rkey;
      bytes = sizeof(uint64_t);
    } else {
      wr.wr.rdma.remote_addr = peer_.memory;
      wr.wr.rdma.rkey = peer_.rkey;
    }
    return side_.Post(wr, side_.Sge(0, bytes));
  }

  // Takes completions until the count is 0.
  bool AwaitCompletions(const uint32_t* left) {
    while (TakeAll() && *left > 0) {
      if (ibv_req_notify_cq(side_.cq.get(), 0) != 0) return false;
      const uint32_t before = requests_left_ + receives_left_;
      if (!TakeAll()) return false;
      if (*left > 0 && requests_left_ + receives_left_ == before && !AwaitEvent()) return false;
    }
    return *left == 0;
  }

  // Takes what the CQ has. Returns false if a request failed.
  bool TakeAll() {
    ibv_wc wc;
    while (ibv_poll_cq(side_.cq.get(), 1, &wc) == 1) {
      status_ = wc.status;
      if (status_ != IBV_WC_SUCCESS) return false;
      if ((wc.opcode & IBV_WC_RECV) == 0) {
        --requests_left_;
        continue;
      }
      --receives_left_;
      if (side_.PostReceive(wc.wr_id, 0, kRoomBytes) != 0) return false;
    }
    return true;
  }

  bool AwaitEvent() {
    const bool polls = style_.wait != RoomWait::kForEvent;
    ibv_cq* cq = nullptr;
    void* context = nullptr;
    do {  // a ring of the peer need not bring an event
      pollfd entry{side_.channel->fd, POLLIN, 0};
      if (polls && poll(&entry, 1, -1) != 1) return false;
    } while (ibv_get_cq_event(side_.channel.get(), &cq, &context) != 0 && errno == EAGAIN);
    ibv_ack_cq_events(cq, 1);
    return true;
  }

  std::string Stuck(const std::string& where) const {
    return where + ": " + std::to_string(requests_left_) + " requests and " +
           std::to_string(receives_left_) + " receives left, status " + std::to_string(status_);
  }

  Side& side_;
  const RoomStyle style_;
  Address peer_{};
  uint32_t requests_left_ = 0;
  uint32_t receives_left_ = 0;
  ibv_wc_status status_ = IBV_WC_SUCCESS;
};

// A thread that runs an end. If it hangs, its queue pair is moved to the error state, which wakes
// it, so that the test fails and goes on.
class RoomThread {
 public:
  RoomThread(Side* side, const RoomStyle& style, const Address& peer, bool requests, bool receives)
      : side_(*side), result_(std::async(std::launch::async, [=] {
          return RoomEnd(side, style).Run(peer, requests, receives);
        })) {}
  std::string Finish() {
    if (result_.wait_for(std::chrono::nanoseconds(kTimeoutNs)) != std::future_status::ready) {
      side_.ToError();
      return "hangs: " + result_.get();
    }
    return result_.get();
  }

 private:
  Side& side_;
  std::future<std::string> result_;
};

// The second end, in a process of its own.
int RoomPeer(int socket) {
  const auto style = Take<RoomStyle>(socket);
  Owned<ibv_context> device = OpenDevice();
  Side side(device.get(), RoomSide(style));
  Put(socket, side.address());
  const auto peer = Take<Address>(socket);
  side.Connect(peer);
  if (!RoomEnd(&side, style).PostReceives()) return 2;
  Put(socket, char{1});
  RoomThread thread(&side, style, peer, style.both, true);
  if (const std::string wrong = thread.Finish(); !wrong.empty()) {
    fprintf(stderr, "the peer: %s\n", wrong.c_str());
    return 3;
  }
  Take<char>(socket);  // until the test hangs up
  return 0;
}
const RegisterRole room_peer_role("room_peer", RoomPeer);

class RoomTest : public testing::TestWithParam<RoomStyle> {
 protected:
  Owned<ibv_context> device_ = OpenDevice();
};

TEST_P(RoomTest, TwoProcessesThatSleepAreWoken) {
  const RoomStyle style = GetParam();
  RoleProcess child("room_peer");
  Put(child.socket(), style);
  const auto peer = Take<Address>(child.socket());
  Side side(device_.get(), RoomSide(style));
  side.ToRtr(peer);
  ASSERT_TRUE(RoomEnd(&side, style).PostReceives());
  Put(child.socket(), side.address());
  ASSERT_EQ(Take<char>(child.socket()), 1);
  side.ToRts();
  RoomThread thread(&side, style, peer, true, style.both);
  EXPECT_EQ(thread.Finish(), "");
  EXPECT_EQ(child.Finish(), 0);
}

TEST_P(RoomTest, TwoThreadsOfAProcessThatSleepAreWoken) {
  const RoomStyle style = GetParam();
  Pair pair(device_.get(), RoomSide(style), RoomSide(style));
  ASSERT_TRUE(RoomEnd(&pair.a, style).PostReceives());
  ASSERT_TRUE(RoomEnd(&pair.b, style).PostReceives());
  RoomThread a(&pair.a, style, pair.b.address(), true, style.both);
  RoomThread b(&pair.b, style, pair.a.address(), style.both, true);
  EXPECT_EQ(a.Finish(), "");
  EXPECT_EQ(b.Finish(), "");
}

std::string RoomName(const testing::TestParamInfo<RoomStyle>& info) {
  constexpr std::string_view kOps[] = {"Write",   "WriteImm", "Send", "Read",
                                       "Atomics", "Inline",   "Mixed"};
  constexpr std::string_view kWaits[] = {"ForEvent", "InPoll", "InPollNonBlocking"};
  const RoomStyle& style = info.param;
  return std::string(kOps[static_cast<size_t>(style.ops)]) +
         std::string(kWaits[static_cast<size_t>(style.wait)]) +
         (style.kind == MemoryKind::kMapped ? "Mapped" : "") + (style.both ? "Both" : "");
}

std::vector<RoomStyle> RoomStyles() {
  std::vector<RoomStyle> styles;
  for (const RoomOps ops : {RoomOps::kWrite, RoomOps::kWriteImm, RoomOps::kSend, RoomOps::kRead,
                            RoomOps::kAtomics, RoomOps::kInline, RoomOps::kMixed}) {
    for (const RoomWait wait :
         {RoomWait::kForEvent, RoomWait::kInPoll, RoomWait::kInPollNonBlocking}) {
      styles.push_back({.ops = ops, .wait = wait});
    }
    styles.push_back({.ops = ops, .wait = RoomWait::kForEvent, .both = true});
    // Executed by the initiator, or sent as packets with SOFTVERBS_ACCELERATE=0.
    styles.push_back({.ops = ops, .wait = RoomWait::kForEvent, .kind = MemoryKind::kMapped});
  }
  return styles;
}

INSTANTIATE_TEST_SUITE_P(Styles, RoomTest, testing::ValuesIn(RoomStyles()), RoomName);

}  // namespace
}  // namespace softverbs
