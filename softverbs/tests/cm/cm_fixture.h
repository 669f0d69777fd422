#ifndef SOFTVERBS_TESTS_CM_CM_FIXTURE_H_
#define SOFTVERBS_TESTS_CM_CM_FIXTURE_H_

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <rdma/rdma_cma.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace softverbs::cm_test {

// How long a test waits for something that must come. Only a failing test waits that long.
inline constexpr int kPatienceMs = 20'000;

struct Deleter {
  void operator()(rdma_event_channel* channel) const { rdma_destroy_event_channel(channel); }
  void operator()(rdma_cm_event* event) const { rdma_ack_cm_event(event); }
  void operator()(rdma_cm_id* id) const {
    if (id->qp != nullptr) rdma_destroy_qp(id);
    EXPECT_EQ(rdma_destroy_id(id), 0);
  }
};
using Channel = std::unique_ptr<rdma_event_channel, Deleter>;
using Event = std::unique_ptr<rdma_cm_event, Deleter>;
using Id = std::unique_ptr<rdma_cm_id, Deleter>;

// A value that names an address and converts to what rdma_* functions take.
class Endpoint {
 public:
  Endpoint(const std::string& host, uint16_t port);
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage_); }

 private:
  sockaddr_storage storage_ = {};
};

Channel MakeChannel();
Id MakeId(const Channel& channel, void* context = nullptr);

// Returns the next event, which is acknowledged when it goes out of scope. If none comes, returns
// null and the test fails.
Event Next(const Channel& channel);
// Returns the next event, and expects it to be of this type.
Event Expect(const Channel& channel, rdma_cm_event_type type);
// Returns whether the channel's descriptor is readable right now.
bool Readable(const Channel& channel);

// Returns an id that listens on `host`, on a port that the library chooses.
Id Listen(const Channel& channel, const std::string& host = "127.0.0.1", int backlog = 0);
uint16_t PortOf(const Id& id);

// Returns an id with its route to host:port resolved.
Id Resolve(const Channel& channel, uint16_t port, const std::string& host = "127.0.0.1");

// Returns what a reliable queue pair of a few work requests needs. Each is signaled.
ibv_qp_init_attr QpAttributes();

// Returns connection parameters without a queue pair, with `data` as private data. `data` must
// outlive them.
rdma_conn_param Param(std::string_view data = {});
std::string DataOf(const Event& event);
// Returns `data`, padded with zeroes to `size`.
std::string Padded(std::string_view data, size_t size);

// A listener and a client in one process, each with its own channel.
class CmTest : public ::testing::Test {
 protected:
  // Sends a request to listener_ and returns the id that accepts or rejects it.
  Id Request(const Id& active, rdma_conn_param param = Param());
  // Returns the passive id of an established connection, and stores the active one in *active.
  Id Establish(Id* active);

  Channel server_ = MakeChannel();
  Channel client_ = MakeChannel();
  Id listener_ = Listen(server_);
  uint16_t port_ = PortOf(listener_);
};

}  // namespace softverbs::cm_test

#endif  // SOFTVERBS_TESTS_CM_CM_FIXTURE_H_
