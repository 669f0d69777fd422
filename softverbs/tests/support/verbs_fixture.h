#ifndef SOFTVERBS_TESTS_SUPPORT_VERBS_FIXTURE_H_
#define SOFTVERBS_TESTS_SUPPORT_VERBS_FIXTURE_H_

#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace softverbs {

// Waits for the next completion of a queue. Fails the test on a timeout.
ibv_wc NextCompletion(ibv_cq* cq);

// Nothing in these tests takes so long, however slow the machine is. Only a hang does.
inline constexpr int64_t kTimeoutNs = 20'000'000'000;

inline constexpr unsigned kAllAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
                                       IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

struct Delete {
  void operator()(ibv_context* context) const { EXPECT_EQ(ibv_close_device(context), 0); }
  void operator()(ibv_pd* pd) const { EXPECT_EQ(ibv_dealloc_pd(pd), 0); }
  void operator()(ibv_mr* mr) const { EXPECT_EQ(ibv_dereg_mr(mr), 0); }
  void operator()(ibv_cq* cq) const { EXPECT_EQ(ibv_destroy_cq(cq), 0); }
  void operator()(ibv_srq* srq) const { EXPECT_EQ(ibv_destroy_srq(srq), 0); }
  void operator()(ibv_ah* ah) const { EXPECT_EQ(ibv_destroy_ah(ah), 0); }
  void operator()(ibv_qp* qp) const { EXPECT_EQ(ibv_destroy_qp(qp), 0); }
  void operator()(ibv_comp_channel* channel) const {
    EXPECT_EQ(ibv_destroy_comp_channel(channel), 0);
  }
};
template <class T>
using Owned = std::unique_ptr<T, Delete>;

// Opens the only device. Fails the test if it is not softverbs0.
Owned<ibv_context> OpenDevice();

// Memory to register: private, or a shared mapping of a memfd (which peers may map).
enum class MemoryKind { kPrivate, kMapped };
class TestMemory {
 public:
  TestMemory(MemoryKind kind, size_t size);
  ~TestMemory();
  TestMemory(const TestMemory&) = delete;
  TestMemory& operator=(const TestMemory&) = delete;

  uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  uint64_t address() const { return reinterpret_cast<uint64_t>(data_); }

 private:
  uint8_t* data_;
  size_t size_;
  int fd_ = -1;
};

// Returns the index of the first GID that is an IPv4 address in mapped form (or one that is not),
// or nothing if the host has none.
std::optional<uint8_t> FindGidIndex(ibv_context* context, bool ipv4);

// How to make a Side.
struct SideOptions {
  MemoryKind kind = MemoryKind::kPrivate;
  size_t memory = 1 << 20;
  unsigned access = kAllAccess;
  uint32_t max_send_wr = 64;
  uint32_t max_recv_wr = 64;
  uint32_t max_sge = 4;
  uint32_t max_inline = 256;
  int cqe = 256;
  ibv_qp_type type = IBV_QPT_RC;  // or UC
  bool signal_all = false;
  bool with_channel = false;
  ibv_srq* srq = nullptr;
  ibv_pd* pd = nullptr;  // null: its own
};

// What the other side must know to connect, and to address this side's memory.
struct Address {
  uint32_t qp_num;
  uint32_t psn;
  ibv_gid gid;
  uint64_t memory;
  uint32_t rkey;
};

// How to connect.
struct ConnectOptions {
  uint8_t rnr_retry = 7;
  uint8_t retry_cnt = 7;
  uint8_t timeout = 8;  // about 1 ms
  uint8_t min_rnr_timer = 1;
  uint8_t max_rd_atomic = 16;
  uint8_t max_dest_rd_atomic = 16;
  unsigned access = kAllAccess;
};

// One side of a connection: a queue pair with a CQ of its own and one region of memory.
struct Side {
  Side(ibv_context* context, const SideOptions& options);

  Address address() const;
  void Connect(const Address& peer, const ConnectOptions& options = {});
  // Moves to RTR only. Connect continues from there to RTS.
  void ToRtr(const Address& peer, const ConnectOptions& options = {});
  void ToRts(const ConnectOptions& options = {});
  void ToError();
  ibv_qp_state State() const;

  ibv_sge Sge(size_t offset, size_t length) const {
    return {memory.address() + offset, static_cast<uint32_t>(length), mr->lkey};
  }
  int PostReceive(uint64_t wr_id, size_t offset, size_t length);
  // Posts a signaled request with one SGE. Returns 0 or errno.
  int PostSend(uint64_t wr_id, size_t offset, size_t length, unsigned flags = IBV_SEND_SIGNALED);
  int Post(ibv_send_wr wr, ibv_sge sge);
  int Read(uint64_t wr_id, size_t offset, size_t length, const Address& peer, size_t at);
  int Write(uint64_t wr_id, size_t offset, size_t length, const Address& peer, size_t at);
  int CompareSwap(uint64_t wr_id, size_t offset, const Address& peer, size_t at, uint64_t compare,
                  uint64_t swap);
  int FetchAdd(uint64_t wr_id, size_t offset, const Address& peer, size_t at, uint64_t add);

  // Waits for the next completion. Fails the test on a timeout.
  ibv_wc Next();
  // Returns true if there is no completion now.
  bool Idle();

  uint64_t& Word(size_t offset) { return *reinterpret_cast<uint64_t*>(memory.data() + offset); }
  void Fill(size_t offset, size_t length, uint8_t seed);
  bool Matches(size_t offset, size_t length, uint8_t seed) const;

  ibv_context* context;
  Owned<ibv_pd> own_pd;
  ibv_pd* pd;
  Owned<ibv_comp_channel> channel;
  Owned<ibv_cq> cq;
  TestMemory memory;
  Owned<ibv_mr> mr;
  Owned<ibv_qp> qp;
};

// Waits for the next asynchronous event of `context` and acknowledges it. Fails the test on a
// timeout.
ibv_async_event NextEvent(ibv_context* context);
bool HasEvent(ibv_context* context);

// Two sides in this process, connected to each other.
struct Pair {
  explicit Pair(ibv_context* context, const SideOptions& a_options = {},
                const SideOptions& b_options = {}, const ConnectOptions& connect = {});
  Side a, b;
};

int64_t NowNs();

}  // namespace softverbs

#endif  // SOFTVERBS_TESTS_SUPPORT_VERBS_FIXTURE_H_
