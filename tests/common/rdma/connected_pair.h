#ifndef GANNET_TESTS_COMMON_RDMA_CONNECTED_PAIR_H_
#define GANNET_TESTS_COMMON_RDMA_CONNECTED_PAIR_H_

#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/rdma/completion.h"
#include "common/rdma/connector.h"
#include "common/rdma/listener.h"
#include "common/rdma/memory.h"
#include "common/rdma/queue_pair.h"

namespace gannet {

// Nothing in these tests takes so long, however slow the machine is. Only a hang does.
inline constexpr int64_t kTestTimeoutNs = 20'000'000'000;

// The objects of one side of a test: a protection domain, one completion queue, and memory whose
// rkey allows everything.
struct TestSide {
  TestSide();
  ConnectionOptions Options() const;
  // Waits for the next completion. On a timeout, fails the test and returns status
  // IBV_WC_GENERAL_ERR.
  ibv_wc Next();
  void PostReceive(ibv_qp* qp, uint64_t wr_id, uint64_t offset, uint32_t bytes);
  std::string Text(uint64_t offset, size_t bytes) const;
  void SetText(uint64_t offset, std::string_view text);
  uint64_t Word(uint64_t offset) const;
  void SetWord(uint64_t offset, uint64_t word);

  Handle<ibv_pd> pd;
  std::unique_ptr<CompletionQueue> completions;
  RegisteredBuffer buffer;
};

// A listener on the device's own address, and connections to it, in one thread.
class ConnectedPairTest : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  std::unique_ptr<Connector> StartConnector(const SocketAddress& to);
  std::unique_ptr<Connector> StartConnector() { return StartConnector(listener_->address()); }
  // Steps both sides until the active one is at `step` or has failed.
  void StepUntil(Connector* connector, Connector::Step step);
  // Waits for the next event of the listener, and steps the connector meanwhile.
  std::optional<ListenerEvent> NextListenerEvent(Connector* connector);
  // Starts a connector, steps it to kResolved, and makes its queue pair.
  std::unique_ptr<Connector> ResolvedConnector();
  // Connects active_ and passive_.
  void Connect();
  // Drains both sides' sends and destroys the connections.
  void Close();
  static void Drain(TestSide* side, Connection* connection);

  TestSide server_;
  TestSide client_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Connection> passive_;
  std::unique_ptr<Connector> active_;
};

// Private data of a test: text, as bytes.
inline std::span<const std::byte> AsBytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}
inline std::string_view AsText(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace gannet

#endif  // GANNET_TESTS_COMMON_RDMA_CONNECTED_PAIR_H_
