// A peer process that is killed, at each stage of a connection: the survivor is told, what it had
// in flight fails, and its objects can be destroyed.
#include <netinet/in.h>
#include <signal.h>
#include <unistd.h>

#include <optional>

#include "softverbs/tests/support/role_process.h"
#include "softverbs/tests/verbs_contract/pair.h"

namespace verbs_contract {
namespace {

using test_support::KilledBy;
using test_support::Put;
using test_support::RegisterRole;
using test_support::RoleProcess;
using test_support::Take;

// How far the peer goes before it reports, and waits to be killed.
enum class Stage {
  kRequested,    // active: the request was sent; passive: it was received
  kAnswered,     // active: the answer has come and was not looked at; passive: it was sent
  kEstablished,  // both ends know
};

struct Orders {
  Device device;
  Stage stage;
  in_port_t port;  // where an active peer connects to
};

[[noreturn]] void Stay(int socket) {
  Put(socket, char{1});
  for (;;) pause();
}

int Active(int socket) {
  const auto orders = Take<Orders>(socket);
  UseDevice(orders.device);
  sockaddr_storage to = orders.device.address;
  reinterpret_cast<sockaddr_in&>(to).sin_port = orders.port;
  const EventChannel events = MakeEventChannel();
  End end(Resolve(events.get(), reinterpret_cast<sockaddr*>(&to)), events, {}, false);
  rdma_conn_param param = ConnectionParameters({});
  if (rdma_connect(end.id, &param) != 0) return 2;
  if (orders.stage == Stage::kRequested) Stay(socket);
  // rdma_get_cm_event is what sends the RTU.
  if (!Readable(events->fd, kPatienceMs)) return 3;
  if (orders.stage == Stage::kAnswered) Stay(socket);
  ExpectEvent(events.get(), RDMA_CM_EVENT_ESTABLISHED);
  Stay(socket);
}
const RegisterRole active_role("active", Active);

int Passive(int socket) {
  const auto orders = Take<Orders>(socket);
  UseDevice(orders.device);
  const Listener listener;
  Put(socket, rdma_get_src_port(listener.id));
  rdma_cm_event* request = NextEvent(listener.events.get());
  if (request == nullptr) return 2;
  End end(request->id, listener.events, {}, false);
  rdma_ack_cm_event(request);
  if (orders.stage == Stage::kRequested) Stay(socket);
  rdma_conn_param param = ConnectionParameters({});
  if (rdma_accept(end.id, &param) != 0) return 3;
  if (orders.stage == Stage::kAnswered) Stay(socket);
  ExpectEvent(listener.events.get(), RDMA_CM_EVENT_ESTABLISHED);
  Stay(socket);
}
const RegisterRole passive_role("passive", Passive);

class PeerDeathTest : public ::testing::Test {
 protected:
  // We listen and the peer connects. Returns when its request has come.
  void StartActive(Stage stage) {
    peer_.emplace("active");
    Put(peer_->socket(), Orders{TheDevice(), stage, rdma_get_src_port(listener_.id)});
    rdma_cm_event* request = NextEvent(listener_.events.get());
    ASSERT_EQ(request->event, RDMA_CM_EVENT_CONNECT_REQUEST);
    end_.emplace(request->id, listener_.events, PairOptions{}, false);
    rdma_ack_cm_event(request);
  }
  int Accept() {
    rdma_conn_param param = ConnectionParameters({});
    return rdma_accept(end_->id, &param);
  }
  // The peer listens. Returns when we have sent our request.
  void StartPassive(Stage stage) {
    peer_.emplace("passive");
    Put(peer_->socket(), Orders{TheDevice(), stage, 0});
    sockaddr_storage to = TheDevice().address;
    reinterpret_cast<sockaddr_in&>(to).sin_port = Take<in_port_t>(peer_->socket());
    end_.emplace(Resolve(events_.get(), reinterpret_cast<sockaddr*>(&to)), events_, PairOptions{},
                 false);
    rdma_conn_param param = ConnectionParameters({});
    ASSERT_EQ(rdma_connect(end_->id, &param), 0);
  }
  void AwaitStage() { ASSERT_EQ(Take<char>(peer_->socket()), 1); }
  void Kill() {
    peer_->process().Signal(SIGKILL);
    EXPECT_EQ(peer_->Finish(), KilledBy(SIGKILL));
  }

  // Expects that the survivor is told that the connection is over, perhaps after it was told that
  // it had begun. Which event it is depends on how far the messages got (rdma_get_cm_event(3)).
  void ExpectToldOfTheEnd() {
    for (bool begun = false;; begun = true) {
      rdma_cm_event* event = NextEvent(end_->events);
      ASSERT_NE(event, nullptr);
      const rdma_cm_event_type type = event->event;
      EXPECT_EQ(event->id, end_->id);
      rdma_ack_cm_event(event);
      if (type == RDMA_CM_EVENT_ESTABLISHED && !begun) continue;
      EXPECT_TRUE(type == RDMA_CM_EVENT_DISCONNECTED || type == RDMA_CM_EVENT_REJECTED ||
                  type == RDMA_CM_EVENT_UNREACHABLE || type == RDMA_CM_EVENT_CONNECT_ERROR)
          << rdma_event_str(type);
      return;
    }
  }

  // rdma_disconnect(3) moves the queue pair to ERR: what was posted is flushed, if it had not
  // failed.
  void ExpectWorkToFail(int count) {
    rdma_disconnect(end_->id);
    for (int i = 0; i < count; ++i) {
      EXPECT_NE(NextCompletion(end_->cq).status, IBV_WC_SUCCESS);
    }
    ExpectErrorState(*end_);
  }

  Listener listener_;
  EventChannel events_ = MakeEventChannel();
  std::optional<RoleProcess> peer_;
  std::optional<End> end_;
};

TEST_F(PeerDeathTest, ActiveBeforeItsRequestIsAccepted) {
  StartActive(Stage::kRequested);
  AwaitStage();
  Kill();
  // InfiniBand's CM has a REJ for it. If that gets lost, and on iWARP, only an answer would notice,
  // and that may take a minute. The id can be destroyed at any time.
  if (Readable(end_->events->fd, 1000)) ExpectToldOfTheEnd();
  end_.reset();
  // The next client is served.
  StartActive(Stage::kEstablished);
  ASSERT_EQ(Accept(), 0);
  ExpectEvent(listener_.events.get(), RDMA_CM_EVENT_ESTABLISHED);
}

TEST_F(PeerDeathTest, ActiveBetweenAnswerAndReadyToUse) {
  StartActive(Stage::kAnswered);
  ASSERT_EQ(Accept(), 0);
  AwaitStage();
  Kill();
  ExpectToldOfTheEnd();
}

TEST_F(PeerDeathTest, ActiveWhenEstablished) {
  StartActive(Stage::kEstablished);
  ASSERT_EQ(Accept(), 0);
  ExpectEvent(listener_.events.get(), RDMA_CM_EVENT_ESTABLISHED);
  AwaitStage();
  ASSERT_EQ(PostReceive(*end_, end_->buffer->Sge(0, 64)), 0);
  Kill();
  ExpectToldOfTheEnd();
  ExpectWorkToFail(1);
}

TEST_F(PeerDeathTest, PassiveBeforeItAccepts) {
  StartPassive(Stage::kRequested);
  AwaitStage();
  Kill();
  ExpectToldOfTheEnd();
}

TEST_F(PeerDeathTest, PassiveBetweenAnswerAndReadyToUse) {
  StartPassive(Stage::kAnswered);
  AwaitStage();
  Kill();
  ExpectToldOfTheEnd();
}

TEST_F(PeerDeathTest, PassiveWhenEstablished) {
  StartPassive(Stage::kEstablished);
  ExpectEvent(events_.get(), RDMA_CM_EVENT_ESTABLISHED);
  AwaitStage();
  ASSERT_EQ(PostReceive(*end_, end_->buffer->Sge(0, 64)), 0);
  Kill();
  ExpectToldOfTheEnd();
  ExpectWorkToFail(1);
}

TEST_F(PeerDeathTest, WithWorkInFlight) {
  SKIP_ON_IWARP("a SEND without a receive ends the connection");
  StartPassive(Stage::kEstablished);
  ExpectEvent(events_.get(), RDMA_CM_EVENT_ESTABLISHED);
  AwaitStage();
  // The peer has no receive posted: these are retried until it dies.
  ibv_sge sge = end_->buffer->Sge(0, 8);
  for (uint64_t i = 0; i < 4; ++i) ASSERT_EQ(Post(*end_, Send(&sge, i)), 0);
  Kill();
  ExpectToldOfTheEnd();
  ExpectWorkToFail(4);
}

// If rdma_cm does not report it and nobody calls rdma_disconnect, the retries run out
// (ibv_modify_qp(3)).
TEST_F(PeerDeathTest, WorkPostedAfterItFails) {
  SKIP_ON_IWARP("the connection's end flushes the queue pair");
  StartPassive(Stage::kEstablished);
  ExpectEvent(events_.get(), RDMA_CM_EVENT_ESTABLISHED);
  AwaitStage();
  Kill();
  ibv_sge sge = end_->buffer->Sge(0, 8);
  ASSERT_EQ(Post(*end_, Send(&sge, 1)), 0);
  ASSERT_EQ(Post(*end_, Send(&sge, 2)), 0);
  EXPECT_EQ(NextCompletion(end_->cq).status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(NextCompletion(end_->cq).status, IBV_WC_WR_FLUSH_ERR);
  ExpectErrorState(*end_);
}

}  // namespace
}  // namespace verbs_contract
