#ifndef GANNET_TESTS_SERVER_GROUP_MEMBERS_TEST_RECEIVER_H_
#define GANNET_TESTS_SERVER_GROUP_MEMBERS_TEST_RECEIVER_H_

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/auth/auth_key.h"
#include "common/base/clock.h"
#include "common/base/clocks.h"
#include "common/protocol/replica.h"
#include "server/group/members/backup_link.h"
#include "server/log/stream/ring_reader.h"
#include "server/rpc/now.h"
#include "tests/common/rdma/test_device.h"

namespace gannet {

// Who gets a giver's stream for another group: its end of the link, which the test polls.
class TestReceiver {
 public:
  TestReceiver(const SocketAddress& giver, uint64_t token, uint64_t ring_bytes,
               const std::optional<AuthKey>& key = std::nullopt)
      : token_(token) {
    auto link = BackupLink::Start({.devices = {TestDevice()},
                                   .to = giver,
                                   .endpoint = giver.ToString(),
                                   .key = key,
                                   .token = token,
                                   .ring_bytes = ring_bytes,
                                   .wall = MachineWallTime,
                                   .deadline = MachineBootTime() + 20 * kNsPerSecond});
    EXPECT_TRUE(link.ok()) << link.status();
    link_ = *std::move(link);
  }
  // May be changed until it is open.
  ReceiverHello& hello() { return hello_; }

  // Takes what came, and answers beacons unless it `is_slow`.
  void Poll(bool is_slow = false) {
    link_->Poll(MachineBootTime());
    if (link_->open() && !link_->said_hello()) {
      SetName(&hello_, "other");
      link_->SayHello(hello_, token_);
    }
    while (const auto message = link_->Take()) OnMessage(*message, is_slow);
  }
  template <class T>
  void Send(const T& message) {
    link_->Send(message);
  }
  // Ends the link. Returns whether it is over.
  bool Close() {
    link_->BeginFence();
    link_->Poll(MachineBootTime());
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
  void OnMessage(const BackupLink::Message& message, bool is_slow) {
    if (const auto* welcome = std::get_if<ReplicaWelcome>(&message)) {
      welcome_ = *welcome;
      EXPECT_TRUE(link_->Accept(*welcome).ok());
      reader_.emplace(link_->ring(), BeginOf(*welcome));
    } else if (const auto* told = std::get_if<BackupLink::ToldBeacon>(&message)) {
      ++beacons_;
      if (is_slow) return;
      reader_->Scan();
      reader_->Take(UINT64_MAX, [this](const RingRecord& record, uint64_t, uint64_t) {
        sessions_ += record.kind == RingRecordKind::kSessionBegun;
        if (!record.change.key.empty()) keys_.emplace_back(record.change.key);
      });
      link_->Answer(told->beacon, reader_->taken(), reader_->consumed());
    } else if (const auto* refused = std::get_if<BackupLink::Refused>(&message)) {
      refusal_ = refused->why.value_or("");
    } else if (const auto* ended = std::get_if<MoveEnded>(&message)) {
      ended_.push_back(*ended);
    } else {
      ADD_FAILURE() << "the giver sends what is out of place";
    }
  }

  const uint64_t token_;
  std::unique_ptr<BackupLink> link_;
  ReceiverHello hello_ = NewReceiverHello();
  std::optional<ReplicaWelcome> welcome_;
  std::optional<RingReader> reader_;
  std::string refusal_;
  std::vector<MoveEnded> ended_;
  std::vector<std::string> keys_;
  int sessions_ = 0;
  uint64_t beacons_ = 0;
};

}  // namespace gannet

#endif  // GANNET_TESTS_SERVER_GROUP_MEMBERS_TEST_RECEIVER_H_
