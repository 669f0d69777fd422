#ifndef GANNET_TESTS_SERVER_GROUP_TEST_RECEIVER_H_
#define GANNET_TESTS_SERVER_GROUP_TEST_RECEIVER_H_

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/auth/auth_key.h"
#include "common/base/clock.h"
#include "common/protocol/replica.h"
#include "server/group/backup_link.h"
#include "server/rpc/now.h"
#include "server/stream/ring_reader.h"
#include "tests/common/rdma/test_device.h"

namespace gannet {

// Who gets a giver's stream for another group: its end of the link, which the test polls.
class TestReceiver {
 public:
  TestReceiver(const SocketAddress& giver, uint64_t token, uint64_t ring_bytes,
               const std::optional<AuthKey>& key = std::nullopt)
      : token_(token) {
    auto link = BackupLink::Start({.device = TestDevice(),
                                   .to = giver,
                                   .endpoint = giver.ToString(),
                                   .key = key,
                                   .token = token,
                                   .ring_bytes = ring_bytes,
                                   .wall_ms = WallMs,
                                   .deadline_ns = ServerNs() + 20 * kNsPerSecond});
    EXPECT_TRUE(link.ok()) << link.status();
    link_ = *std::move(link);
  }
  // May be changed until it is open.
  ReceiverHello& hello() { return hello_; }

  // Takes what came, and answers beacons unless it `is_slow`.
  void Poll(bool is_slow = false) {
    link_->Poll(ServerNs());
    if (link_->open() && !said_hello_) {
      said_hello_ = true;
      hello_.incarnation = token_;
      hello_.ring_address = reinterpret_cast<uint64_t>(link_->ring().data());
      hello_.ring_bytes = link_->ring().size();
      hello_.ring_rkey = link_->ring_rkey();
      SetName(&hello_, "other");
      link_->Send(hello_);
    }
    while (const auto message = link_->TakeMessage()) OnMessage(*message, is_slow);
  }
  template <class T>
  void Send(const T& message) {
    link_->Send(message);
  }
  // Ends the link. Returns whether it is over.
  bool Close() {
    link_->BeginFence();
    link_->Poll(ServerNs());
    return link_->fenced();
  }
  bool broken() const { return !link_->status().ok(); }
  // What came.
  const std::optional<ReplicaWelcome>& welcome() const { return welcome_; }
  const std::string& refusal() const { return refusal_; }
  const std::vector<MoveEnded>& ended() const { return ended_; }
  const std::vector<std::string>& keys() const { return keys_; }  // of changes
  int sessions() const { return sessions_; }                      // records of
  uint64_t beacons() const { return beacons_; }
  uint64_t taken() const { return reader_ ? reader_->taken() : 0; }  // LSN

 private:
  void OnMessage(std::span<const std::byte> message, bool is_slow) {
    if (const auto welcome = DecodeReplicaWelcome(message); welcome.ok()) {
      welcome_ = *welcome;
      reader_.emplace(link_->ring(), RingReader::Begin{.stream_id = welcome->stream_id,
                                                       .lsn = welcome->first_lsn,
                                                       .position = welcome->position});
    } else if (const auto beacon = DecodeBeacon(message); beacon.ok()) {
      ++beacons_;
      if (is_slow) return;
      reader_->Scan();
      reader_->Take(UINT64_MAX, [this](const RingRecord& record, uint64_t, uint64_t) {
        sessions_ += record.kind == RingRecordKind::kSessionBegun;
        if (!record.change.key.empty()) keys_.emplace_back(record.change.key);
      });
      BeaconAnswer answer = NewBeaconAnswer();
      answer.epoch = beacon->epoch;
      answer.sequence = beacon->sequence;
      answer.applied = reader_->taken();
      answer.consumed = reader_->consumed();
      link_->Send(answer);
    } else if (const auto refusal = DecodeReplicaRefusal(message); refusal.ok()) {
      refusal_ = ReasonOf(*refusal);
    } else if (const auto ended = DecodeMoveEnded(message); ended.ok()) {
      ended_.push_back(*ended);
    }
  }

  const uint64_t token_;
  std::unique_ptr<BackupLink> link_;
  ReceiverHello hello_ = NewReceiverHello();
  bool said_hello_ = false;
  std::optional<ReplicaWelcome> welcome_;
  std::optional<RingReader> reader_;
  std::string refusal_;
  std::vector<MoveEnded> ended_;
  std::vector<std::string> keys_;
  int sessions_ = 0;
  uint64_t beacons_ = 0;
};

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_GROUP_TEST_RECEIVER_H_
