#ifndef SOFTVERBS_TESTS_VERBS_CONTRACT_PAIR_H_
#define SOFTVERBS_TESTS_VERBS_CONTRACT_PAIR_H_

#include <gtest/gtest.h>
#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "softverbs/tests/verbs_contract/device.h"
#include "softverbs/tests/verbs_contract/host.h"

// Connected queue pairs and what belongs to them, on the plain verbs and rdma_cm API. Everything
// here reports failures through GoogleTest.
namespace verbs_contract {

// How long a test waits for something that must come. Only a failing test waits that long.
inline constexpr int kPatienceMs = 20'000;

inline constexpr int kAllAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
                                  IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;

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
  uint32_t rkey() const { return rkey_; }
  // Deregisters the buffer. Sge and rkey still return the stale keys.
  void Deregister();
  ibv_sge Sge(size_t offset, uint32_t length) const { return {address() + offset, length, lkey_}; }
  void Fill(uint8_t value) { std::memset(bytes_.data(), value, bytes_.size()); }
  uint64_t Word(size_t offset) const;

 private:
  std::vector<uint8_t> bytes_;
  ibv_mr* mr_ = nullptr;
  uint32_t lkey_ = 0;
  uint32_t rkey_ = 0;
};

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
};

rdma_conn_param ConnectionParameters(const PairOptions& options);

using EventChannel = std::shared_ptr<rdma_event_channel>;
EventChannel MakeEventChannel(Host host = Host::kClients);

// Objects that queue pairs may share: protection domain, completion queue with its channel, shared
// receive queue, and a buffer with every access right.
struct Resources {
  Resources(ibv_context* verbs, const PairOptions& options, bool with_srq);
  ~Resources();
  Resources(const Resources&) = delete;
  Resources& operator=(const Resources&) = delete;

  ibv_pd* pd = nullptr;
  ibv_comp_channel* channel = nullptr;
  ibv_cq* cq = nullptr;
  ibv_srq* srq = nullptr;
  std::unique_ptr<Buffer> buffer;
};

// One end of a connection: its cm id, with a queue pair on its own or on shared resources.
struct End {
  // Takes ownership of `cm_id`. Makes resources if none are given.
  End(rdma_cm_id* cm_id, EventChannel event_channel, const PairOptions& options, bool with_srq,
      std::shared_ptr<Resources> shared = nullptr);
  ~End();
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  ibv_qp* qp() { return id->qp; }
  void MigrateTo(EventChannel event_channel);

  EventChannel event_channel;
  rdma_event_channel* events;
  rdma_cm_id* id;
  std::shared_ptr<Resources> resources;
  // The same as in *resources.
  ibv_pd* pd;
  ibv_comp_channel* channel;
  ibv_cq* cq;
  ibv_srq* srq;
  Buffer* buffer;
};

// Listens on a free port of the device under test.
struct Listener {
  explicit Listener(int backlog = 64);
  ~Listener();

  EventChannel events;
  rdma_cm_id* id = nullptr;
};

// Returns an id with its route to `to` resolved, and with a short acknowledgement timeout.
rdma_cm_id* Resolve(rdma_event_channel* events, sockaddr* to);

// Two connected queue pairs of one process.
class Pair {
 public:
  explicit Pair(const PairOptions& options = {});
  // Shares the resources, event channels and listener of `first`.
  Pair(const PairOptions& options, Pair& first);
  // Shares the server's resources, event channels and listener only.
  static std::unique_ptr<Pair> ToServerOf(const PairOptions& options, Pair& first);

  End& client() { return *client_; }
  End& server() { return *server_; }

 private:
  Pair(const PairOptions& options, std::shared_ptr<Listener> listener, EventChannel client_events,
       EventChannel server_events, std::shared_ptr<Resources> client_resources,
       std::shared_ptr<Resources> server_resources);

  std::shared_ptr<Listener> listener_;
  std::unique_ptr<End> server_;
  std::unique_ptr<End> client_;  // destroyed first
};

// Returns the next event, which the caller must acknowledge. If none comes, returns null and the
// test fails.
rdma_cm_event* NextEvent(rdma_event_channel* events);
// Expects the next event to be of this type, acknowledges it, and returns its status.
int ExpectEvent(rdma_event_channel* events, rdma_cm_event_type type);
// Waits for the next asynchronous event of this type, which the caller must acknowledge.
// Acknowledges other events itself. Returns false if none came in `patience_ms`.
bool AwaitAsyncEvent(ibv_context* verbs, ibv_event_type type, ibv_async_event* event,
                     int patience_ms = kPatienceMs);
bool Readable(int fd, int timeout_ms);

// Polls until a completion comes. If none comes, the test fails, and the status is
// IBV_WC_GENERAL_ERR.
ibv_wc NextCompletion(ibv_cq* cq);
// Polls many times. Returns false if no completion came.
bool PollForAWhile(ibv_cq* cq, ibv_wc* wc);
bool NoCompletion(ibv_cq* cq);

ibv_send_wr Read(ibv_sge* sge, uint64_t address, uint32_t rkey, uint64_t id = 1);
ibv_send_wr Write(ibv_sge* sge, uint64_t address, uint32_t rkey, uint64_t id = 1);
ibv_send_wr Send(ibv_sge* sge, uint64_t id = 1);
ibv_send_wr CompareAndSwap(ibv_sge* sge, uint64_t address, uint32_t rkey, uint64_t expected,
                           uint64_t desired, uint64_t id = 1);
ibv_send_wr FetchAndAdd(ibv_sge* sge, uint64_t address, uint32_t rkey, uint64_t add,
                        uint64_t id = 1);

// Posts; returns the error number of ibv_post_send (positive, though siw's are negative).
int Post(End& end, ibv_send_wr wr);
int PostReceive(End& end, ibv_sge sge, uint64_t id = 1);
// Posts and waits for the completion.
ibv_wc Do(End& end, ibv_send_wr wr);

ibv_qp_state StateOf(ibv_qp* qp);
// Expects the error state, unless the device does not report states (siw always says RESET).
void ExpectErrorState(End& end);
void ToState(ibv_qp* qp, ibv_qp_state state);

// Expects that `destroy` does not return before `acknowledge` was called.
void ExpectWaitsFor(const std::function<void()>& acknowledge, const std::function<void()>& destroy);

}  // namespace verbs_contract

#endif  // SOFTVERBS_TESTS_VERBS_CONTRACT_PAIR_H_
