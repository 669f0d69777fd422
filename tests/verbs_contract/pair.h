#ifndef GANNET_TESTS_VERBS_CONTRACT_PAIR_H_
#define GANNET_TESTS_VERBS_CONTRACT_PAIR_H_

#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

// What the store relies on, said on the plain verbs and rdma_cm API, so that it can be put to any
// device. Everything here reports failures through GoogleTest.
namespace verbs_contract {

// The address that leads to the device under test: 127.0.0.1 on softverbs, else an address of the
// device (rdma_cm over loopback does not work on kernel devices), named by VERBS_CONTRACT_ADDRESS.
std::string TestAddress();

// What a device says that it lacks; a case that needs it is skipped with the reason.
bool HasAtomics(ibv_context* verbs);
bool IsIwarp(ibv_context* verbs);

#define SKIP_WITHOUT_ATOMICS(pair)                                                    \
  do {                                                                                \
    if (!HasAtomics((pair).client().id->verbs)) GTEST_SKIP() << "atomic_cap is NONE"; \
  } while (0)

// A registered buffer.
class Buffer {
 public:
  Buffer(ibv_pd* pd, size_t bytes, int access);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  uint8_t* data() { return bytes_.data(); }
  uint64_t address() const { return reinterpret_cast<uint64_t>(bytes_.data()); }
  size_t size() const { return bytes_.size(); }
  ibv_mr* mr() { return mr_; }
  uint32_t rkey() const { return mr_->rkey; }
  // Deregisters; lkey and rkey are stale from then on.
  void Deregister();
  ibv_sge Sge(size_t offset, uint32_t length) const { return {address() + offset, length, lkey_}; }
  void Fill(uint8_t value) { std::memset(bytes_.data(), value, bytes_.size()); }
  uint64_t Word(size_t offset) const;

 private:
  std::vector<uint8_t> bytes_;
  ibv_mr* mr_ = nullptr;
  uint32_t lkey_ = 0;
};

// Waits (up to 5 s) for the next event and checks its type; the caller acknowledges it.
rdma_cm_event* NextEvent(rdma_event_channel* channel);
// The same, acknowledged here; returns its status.
int ExpectEvent(rdma_event_channel* channel, rdma_cm_event_type type);

struct PairOptions {
  uint8_t responder_resources = 4;
  uint8_t initiator_depth = 4;
  uint8_t retry_count = 3;
  uint8_t rnr_retry_count = 3;
  uint32_t send_wrs = 64;
  uint32_t recv_wrs = 64;
  uint32_t inline_bytes = 64;
  uint32_t cq_entries = 256;
  bool server_srq = false;
  bool signal_all = false;
};

// One end of a connection: its cm id with a queue pair, a completion queue with a channel, and a
// buffer with every access right.
struct End {
  explicit End(const PairOptions& options) : options(options) {}
  ~End();
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  // Makes pd, cq, srq and the queue pair on `id`.
  void Equip(rdma_cm_id* cm_id, bool with_srq);
  ibv_qp* qp() { return id->qp; }

  PairOptions options;
  rdma_event_channel* events = nullptr;
  rdma_cm_id* id = nullptr;
  ibv_pd* pd = nullptr;
  ibv_comp_channel* channel = nullptr;
  ibv_cq* cq = nullptr;
  ibv_srq* srq = nullptr;
  std::unique_ptr<Buffer> buffer;
};

// Two connected queue pairs of one process.
class Pair {
 public:
  explicit Pair(const PairOptions& options = {});
  ~Pair();

  End& client() { return *client_; }
  End& server() { return *server_; }

 private:
  rdma_event_channel* listen_events_;
  rdma_cm_id* listener_;
  std::unique_ptr<End> client_;
  std::unique_ptr<End> server_;
};

// Polls until a completion comes or 5 s have passed (a failure; status then is IBV_WC_GENERAL_ERR).
ibv_wc NextCompletion(ibv_cq* cq);
// True when no completion comes although the queue was polled many times.
bool NoCompletion(ibv_cq* cq);

ibv_send_wr Read(ibv_sge* sge, uint64_t address, uint32_t rkey, uint64_t id = 1);
ibv_send_wr Write(ibv_sge* sge, uint64_t address, uint32_t rkey, uint64_t id = 1);
ibv_send_wr Send(ibv_sge* sge, uint64_t id = 1);
ibv_send_wr CompareAndSwap(ibv_sge* sge, uint64_t address, uint32_t rkey, uint64_t expected,
                           uint64_t desired, uint64_t id = 1);
ibv_send_wr FetchAndAdd(ibv_sge* sge, uint64_t address, uint32_t rkey, uint64_t add,
                        uint64_t id = 1);

// Posts; returns what ibv_post_send returned.
int Post(End& end, ibv_send_wr wr);
int PostReceive(End& end, ibv_sge sge, uint64_t id = 1);
// Posts and waits for the completion.
ibv_wc Do(End& end, ibv_send_wr wr);

ibv_qp_state StateOf(ibv_qp* qp);

}  // namespace verbs_contract

#endif  // GANNET_TESTS_VERBS_CONTRACT_PAIR_H_
