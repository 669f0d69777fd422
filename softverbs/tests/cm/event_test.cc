#include <fcntl.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "softverbs/tests/cm/cm_fixture.h"
#include "softverbs/tests/support/edges.h"
#include "softverbs/tests/support/later_function.h"

namespace softverbs::cm_test {
namespace {

class EventTest : public CmTest {
 protected:
  // An id with one queued event: ADDR_RESOLVED.
  static Id WithEvent(const Channel& channel) {
    Id id = MakeId(channel);
    EXPECT_EQ(rdma_resolve_addr(id.get(), nullptr, Endpoint("127.0.0.1", 7471).get(), 1000), 0);
    return id;
  }
};

TEST_F(EventTest, DescriptorIsReadableWhileEventsAreQueued) {
  EXPECT_FALSE(Readable(client_));
  const Id first = WithEvent(client_);
  const Id second = WithEvent(client_);
  EXPECT_TRUE(Readable(client_));
  Expect(client_, RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_TRUE(Readable(client_));
  Expect(client_, RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_FALSE(Readable(client_));
}

// As a kernel channel does for those that wait with EPOLLET.
TEST_F(EventTest, EachEventIsAnEdgeAlsoWhileOlderOnesAreUnread) {
  const Edges edges(client_->fd);
  const Id first = WithEvent(client_);
  ASSERT_TRUE(edges.Next());
  const Id second = WithEvent(client_);
  ASSERT_TRUE(edges.Next());
  Expect(client_, RDMA_CM_EVENT_ADDR_RESOLVED);
  Expect(client_, RDMA_CM_EVENT_ADDR_RESOLVED);
}

TEST_F(EventTest, NonBlockingDescriptorIsHonoured) {
  ASSERT_EQ(fcntl(client_->fd, F_SETFL, fcntl(client_->fd, F_GETFL) | O_NONBLOCK), 0);
  rdma_cm_event* event = nullptr;
  EXPECT_EQ(rdma_get_cm_event(client_.get(), &event), -1);
  EXPECT_EQ(errno, EAGAIN);
  const Id id = WithEvent(client_);
  Expect(client_, RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_EQ(rdma_get_cm_event(client_.get(), &event), -1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST_F(EventTest, GetBlocksUntilAnEventComes) {
  std::atomic<bool> got{false};
  std::thread waiter([&] {
    rdma_cm_event* event = nullptr;
    EXPECT_EQ(rdma_get_cm_event(client_.get(), &event), 0);
    got = true;
    rdma_ack_cm_event(event);
  });
  EXPECT_FALSE(got);
  const Id id = WithEvent(client_);
  waiter.join();
  EXPECT_TRUE(got);
}

void* GetOneEvent(void* channel) {
  rdma_cm_event* event = nullptr;
  rdma_get_cm_event(static_cast<rdma_event_channel*>(channel), &event);
  return nullptr;
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UNDER_ADDRESS_SANITIZER
#endif
#endif

TEST_F(EventTest, WaitingThreadCanBeCancelled) {
#ifdef UNDER_ADDRESS_SANITIZER
  GTEST_SKIP() << "the address sanitizer trips over the stack of any cancelled thread";
#endif
  pthread_t waiter;
  ASSERT_EQ(pthread_create(&waiter, nullptr, GetOneEvent, client_.get()), 0);
  ASSERT_EQ(pthread_cancel(waiter), 0);
  void* result = nullptr;
  ASSERT_EQ(pthread_join(waiter, &result), 0);
  EXPECT_EQ(result, PTHREAD_CANCELED);
}

// Since version 60 of rdma-core.
constexpr auto kAddrinfoResolved = 16;
constexpr auto kUserEvent = 18;

int WriteEvent(const Id& id, int type, int status, uint64_t argument) {
  return LaterFunction<int(rdma_cm_id*, int, int, uint64_t)>("rdma_write_cm_event", "RDMACM_1.4")(
      id.get(), type, status, argument);
}

TEST_F(EventTest, AnEventOfTheApplicationComesWithItsArgument) {
  const Id id = MakeId(client_);
  ASSERT_EQ(WriteEvent(id, kUserEvent, 7, 0x1234567890), 0);
  const Event event = Next(client_);
  ASSERT_NE(event, nullptr);
  EXPECT_EQ(event->id, id.get());
  EXPECT_EQ(static_cast<int>(event->event), kUserEvent);
  EXPECT_STREQ(rdma_event_str(event->event), "RDMA_CM_EVENT_USER");
  EXPECT_EQ(event->status, 7);
  uint64_t argument = 0;
  memcpy(&argument, &event->param, sizeof(argument));
  EXPECT_EQ(argument, 0x1234567890u);
}

TEST_F(EventTest, TheApplicationWritesNoEventsOfOthers) {
  const Id id = MakeId(client_);
  EXPECT_EQ(WriteEvent(id, RDMA_CM_EVENT_ESTABLISHED, 0, 0), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_FALSE(Readable(client_));
}

using ResolveAddrinfo = int(rdma_cm_id*, const char*, const char*, const rdma_addrinfo*);
using QueryAddrinfo = int(rdma_cm_id*, rdma_addrinfo**);

TEST_F(EventTest, ANameThatIsLookedUpIsToldByAnEvent) {
  const auto resolve = LaterFunction<ResolveAddrinfo>("rdma_resolve_addrinfo", "RDMACM_1.4");
  const auto query = LaterFunction<QueryAddrinfo>("rdma_query_addrinfo", "RDMACM_1.4");
  const Id id = MakeId(client_);
  rdma_addrinfo* found = nullptr;
  EXPECT_EQ(query(id.get(), &found), -1);
  EXPECT_EQ(errno, ENOENT);
  ASSERT_EQ(resolve(id.get(), "127.0.0.1", "7471", nullptr), 0) << strerror(errno);
  EXPECT_EQ(resolve(id.get(), "127.0.0.1", "7471", nullptr), -1);
  EXPECT_EQ(errno, EBUSY);
  EXPECT_EQ(static_cast<int>(Next(client_)->event), kAddrinfoResolved);
  ASSERT_EQ(query(id.get(), &found), 0);
  const auto* address = reinterpret_cast<const sockaddr_in*>(found->ai_dst_addr);
  EXPECT_EQ(be16toh(address->sin_port), 7471);
  rdma_freeaddrinfo(found);
  EXPECT_EQ(query(id.get(), &found), -1);
  EXPECT_EQ(errno, ENOENT);
  // One that nobody fetches goes with the id.
  EXPECT_EQ(resolve(id.get(), "127.0.0.1", "7471", nullptr), 0);
}

TEST_F(EventTest, ANameIsNotLookedUpWithASubnetAdministrator) {
  rdma_addrinfo hints = {};
  hints.ai_flags = 0x10;  // RAI_SA
  const Id id = MakeId(client_);
  EXPECT_EQ(LaterFunction<ResolveAddrinfo>("rdma_resolve_addrinfo", "RDMACM_1.4")(id.get(), nullptr,
                                                                                  "7471", &hints),
            -1);
  EXPECT_EQ(errno, EOPNOTSUPP);
  EXPECT_FALSE(Readable(client_));
}

TEST_F(EventTest, DestroyingAnIdPurgesItsQueuedEvents) {
  Id first = WithEvent(client_);
  const Id second = WithEvent(client_);
  first.reset();
  EXPECT_EQ(Expect(client_, RDMA_CM_EVENT_ADDR_RESOLVED)->id, second.get());
  EXPECT_FALSE(Readable(client_));
}

TEST_F(EventTest, DestroyingAnIdWaitsForItsAcknowledgements) {
  Id id = WithEvent(client_);
  Event event = Expect(client_, RDMA_CM_EVENT_ADDR_RESOLVED);
  std::atomic<bool> acknowledged{false};
  std::atomic<bool> destroyed_after{false};
  std::thread destroyer([&] {
    id.reset();
    destroyed_after = acknowledged.load();
  });
  acknowledged = true;
  event.reset();
  destroyer.join();
  EXPECT_TRUE(destroyed_after);
}

TEST_F(EventTest, ConnectionRequestIsAcknowledgedToTheListener) {
  const Id active = Resolve(client_, port_);
  rdma_conn_param param = Param();
  ASSERT_EQ(rdma_connect(active.get(), &param), 0);
  Event request = Expect(server_, RDMA_CM_EVENT_CONNECT_REQUEST);
  Id passive(request->id);
  passive.reset();  // does not wait for it
  request.reset();
  listener_.reset();
}

TEST_F(EventTest, RejectsNullArguments) {
  EXPECT_EQ(rdma_ack_cm_event(nullptr), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rdma_get_cm_event(client_.get(), nullptr), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(EventTest, NamesItsEvents) {
  EXPECT_STREQ(rdma_event_str(RDMA_CM_EVENT_ADDR_RESOLVED), "RDMA_CM_EVENT_ADDR_RESOLVED");
  EXPECT_STREQ(rdma_event_str(RDMA_CM_EVENT_TIMEWAIT_EXIT), "RDMA_CM_EVENT_TIMEWAIT_EXIT");
}

TEST_F(EventTest, MigrationTakesQueuedEventsAlong) {
  const Channel other = MakeChannel();
  const Id id = WithEvent(client_);
  ASSERT_EQ(rdma_migrate_id(id.get(), other.get()), 0);
  EXPECT_EQ(id->channel, other.get());
  EXPECT_FALSE(Readable(client_));
  EXPECT_EQ(Expect(other, RDMA_CM_EVENT_ADDR_RESOLVED)->id, id.get());
}

TEST_F(EventTest, MigrationOfAListenerTakesItsRequestsAlong) {
  const Channel other = MakeChannel();
  const Id active = Resolve(client_, port_);
  rdma_conn_param param = Param();
  ASSERT_EQ(rdma_connect(active.get(), &param), 0);
  ASSERT_EQ(rdma_migrate_id(listener_.get(), other.get()), 0);
  const Event request = Expect(other, RDMA_CM_EVENT_CONNECT_REQUEST);
  EXPECT_EQ(request->id->channel, other.get());
  const Id passive(request->id);
}

TEST_F(EventTest, MigratedConnectionReportsToItsNewChannel) {
  Id active;
  const Id passive = Establish(&active);
  const Channel other = MakeChannel();
  ASSERT_EQ(rdma_migrate_id(passive.get(), other.get()), 0);
  ASSERT_EQ(rdma_disconnect(active.get()), 0);
  EXPECT_EQ(Expect(other, RDMA_CM_EVENT_DISCONNECTED)->id, passive.get());
  EXPECT_FALSE(Readable(server_));
}

TEST_F(EventTest, MigrationWaitsForAcknowledgements) {
  const Channel other = MakeChannel();
  const Id id = WithEvent(client_);
  Event event = Expect(client_, RDMA_CM_EVENT_ADDR_RESOLVED);
  std::atomic<bool> acknowledged{false};
  std::atomic<bool> moved_after{false};
  std::thread mover([&] {
    EXPECT_EQ(rdma_migrate_id(id.get(), other.get()), 0);
    moved_after = acknowledged.load();
  });
  acknowledged = true;
  event.reset();
  mover.join();
  EXPECT_TRUE(moved_after);
}

}  // namespace
}  // namespace softverbs::cm_test
