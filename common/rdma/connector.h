#ifndef GANNET_COMMON_RDMA_CONNECTOR_H_
#define GANNET_COMMON_RDMA_CONNECTOR_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/protocol/limits.h"
#include "common/rdma/address.h"
#include "common/rdma/cm_event.h"
#include "common/rdma/connection.h"
#include "common/rdma/handle.h"

namespace gannet {

// The active side of one connection, from the address to its end. Starts no thread and never
// blocks. Step it by Poll, with the caller's clock, whenever fd() is readable or the deadline has
// come.
//
//   auto connector = Connector::Start({.to = address, .deadline_ns = now + ...});
//   while (connector->Poll(now) == kResolving) wait for fd();
//   // kResolved: make what is needed on connector->verbs(), then
//   connector->CreateConnection(...);
//   connector->Connect(private data);
//   while (connector->Poll(now) == kConnecting) wait for fd();
//   // kEstablished: private_data() is the peer's answer. If it will do:
//   connector->connection()->Open();
//
// kClosed or kFailed may come at any time. Then drain the connection (Connection::BeginDrain), and
// destroy it with the Connector.
//
// Owner thread only.
class Connector {
 public:
  enum class Step : uint8_t {
    kResolving,  // address and route
    kResolved,   // waits for CreateConnection and Connect, or for BeginDrain
    kConnecting,
    kEstablished,
    kClosed,  // was established; the peer closed, or died
    kFailed,  // status()
  };
  struct Options {
    SocketAddress to;
    std::optional<SocketAddress> from;    // binds to this address's device
    const ibv_context* device = nullptr;  // the only one to go through; nullptr: any
    int64_t deadline_ns = 0;              // until established, on the clock of Poll's argument
    int resolve_timeout_ms = 2000;        // the kernel's; once for the address, once for the route
    // How often the peer's device may try again to send while this side has no receive posted.
    uint8_t rnr_retry_count = kRnrRetryCount;
  };

  // FailedPrecondition: this machine has no RDMA. Unavailable: cannot reach that address. Either
  // may also come later, in status().
  static absl::StatusOr<std::unique_ptr<Connector>> Start(const Options& options);

  int fd() const { return channel_.fd(); }
  Step step() const { return step_; }
  Step Poll(int64_t now_ns);

  // The time by which the connection has to be established.
  int64_t deadline_ns() const { return options_.deadline_ns; }
  // The device that reaches the peer. REQUIRES: kResolved or later.
  ibv_context* verbs() const { return connection_.id()->verbs; }
  // Both REQUIRE: kResolved. After an error the Connector is kFailed. The first makes the queue
  // pair and posts its receives.
  absl::Status CreateConnection(const ConnectionOptions& options);
  // REQUIRES: at most kRequestPrivateBytesMax bytes.
  absl::Status Connect(std::span<const std::byte> private_data);

  // Never nullptr. It has no queue pair before CreateConnection.
  Connection* connection() { return &connection_; }
  const Connection* connection() const { return &connection_; }
  // Why it is kFailed. Unavailable: nobody listens, the peer refused, or the peer is unreachable.
  // DeadlineExceeded: the deadline passed. FailedPrecondition: the way leads through another
  // device.
  const absl::Status& status() const { return status_; }
  // True if the peer refused and gave a reason, which is in private_data().
  bool refused() const { return refused_; }
  // True if the peer answered: it accepted, or refused with a reason.
  bool answered() const { return refused_ || step_ == Step::kEstablished; }
  std::span<const std::byte> private_data() const { return private_data_.bytes(); }

 private:
  Connector(const Options& options, CmChannel channel, Handle<rdma_cm_id> id)
      : options_(options), channel_(std::move(channel)), connection_(std::move(id)) {}

  void HandleEvent(const CmEvent& event);
  void HandleReject(const CmEvent& event);
  void Fail(absl::Status status);

  Options options_;
  CmChannel channel_;
  Connection connection_;
  Step step_ = Step::kResolving;
  absl::Status status_;
  PrivateData private_data_;
  DeviceCaps caps_;
  bool refused_ = false;
};

}  // namespace gannet

#endif  // GANNET_COMMON_RDMA_CONNECTOR_H_
