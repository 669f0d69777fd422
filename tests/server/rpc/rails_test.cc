// A server on two devices: who comes over the second one is served as over the first, and locks go
// through the first one alone.

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/hash.h"
#include "common/layout/key_hash.h"
#include "common/layout/lock_word.h"
#include "common/layout/slot.h"
#include "common/protocol/heats.h"
#include "common/protocol/item_leases_reply.h"
#include "common/protocol/partition_map.h"
#include "common/protocol/rails_reply.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/group/replica/group_standing.h"
#include "server/main/control/rail_watch.h"
#include "server/rpc/rail.h"
#include "server/rpc/replies.h"
#include "softverbs/control.h"
#include "softverbs/tests/support/temporary_directory.h"
#include "tests/common/rdma/test_device.h"
#include "tests/server/rpc/rails_fixture.h"
#include "tests/server/rpc/raw_peer.h"
#include "tests/server/rpc/server_fixture.h"

namespace gannet {
namespace {

using testing::HasSubstr;

constexpr uint32_t kStaged = 4'040;  // too long for a message, but not in a large item

TEST_F(RailsTest, EachGrantHasTheKeysOfItsRail) {
  Start();
  const auto first = ConnectedOf(0), second = ConnectedOf(1);
  const Grant &one = first->grant(), &other = second->grant();
  EXPECT_TRUE(one.features & kGrantRails);
  EXPECT_TRUE(other.features & kGrantRails);
  EXPECT_EQ(one.region_address, other.region_address);
  ASSERT_TRUE(first->Put(kKey, "value") == ReplyStatus::kOk);
  const auto magic = first->ReadAt(one.region_address, one.region_rkey);
  EXPECT_TRUE(magic.has_value());
  EXPECT_EQ(second->ReadAt(other.region_address, other.region_rkey), magic);
}

TEST_F(RailsTest, AKeyOfAnotherRailIsRefused) {
  Start();
  const auto first = ConnectedOf(0);
  // One of the two may be a valid key of the other device, too, but of other memory.
  const auto second = ConnectedOf(1);
  EXPECT_EQ(second->CasAt(first->grant().lock_address, first->grant().lock_rkey, 0, 1),
            std::nullopt);
  EXPECT_TRUE(second->WaitBroken());
  EXPECT_EQ(first->Get(kKey), std::nullopt);
  EXPECT_FALSE(first->broken());
}

TEST_F(RailsTest, ServerOfOneRailHasNone) {
  StartServer();
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  EXPECT_FALSE(peer.grant().features & kGrantRails);
  EXPECT_EQ(peer.Call(peer.Header(Opcode::kRails))->status(), ReplyStatus::kNotFound);
}

TEST_F(RailsTest, WhatOneRailPutsTheOtherGets) {
  Start();
  const auto first = ConnectedOf(0), second = ConnectedOf(1);
  EXPECT_EQ(second->Put(kKey, "by the second"), ReplyStatus::kOk);
  EXPECT_EQ(first->Get(kKey), "by the second");
  EXPECT_EQ(first->Put(kKey, "by the first"), ReplyStatus::kOk);
  EXPECT_EQ(second->Get(kKey), "by the first");
}

TEST_F(RailsTest, ManyConnectionsOfBothAreServed) {
  Start();
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (int i = 0; i < 8; ++i) peers.push_back(ConnectedOf(i % 2));
  for (size_t i = 0; i < peers.size(); ++i)
    ASSERT_EQ(peers[i]->Put("k" + std::to_string(i), std::to_string(i)), ReplyStatus::kOk);
  for (size_t i = 0; i < peers.size(); ++i)
    ASSERT_EQ(peers[i]->Get("k" + std::to_string(i)), std::to_string(i));
}

TEST_F(RailsTest, RequestsOfBothRailsAreServedTogether) {
  Start();
  const auto first = ConnectedOf(0), second = ConnectedOf(1);
  constexpr uint32_t kEach = 32;
  for (uint32_t i = 0; i < kEach; ++i) {
    for (RawPeer* peer : {first.get(), second.get()}) {
      RequestHeader put = peer->Header(Opcode::kPut);
      put.key_bytes = sizeof(kKey) - 1;
      put.value_bytes = 100;
      ASSERT_TRUE(peer->Send(put, kKey, std::string(100, 'v')));
    }
  }
  ASSERT_TRUE(first->WaitSent());
  ASSERT_TRUE(second->WaitSent());
  for (uint32_t i = 0; i < kEach; ++i) {
    for (RawPeer* peer : {first.get(), second.get()}) {
      const auto reply = peer->Receive();
      ASSERT_TRUE(reply.has_value());
      ASSERT_EQ(reply->status(), ReplyStatus::kOk);
    }
  }
  EXPECT_EQ(stats().rpcs, 2 * kEach);
}

TEST_F(RailsTest, AClientThatDoesNotSaySoMayLeaveNumbersOut) {
  Start();
  const auto first = ConnectedOf(0);
  RequestHeader put = first->Header(Opcode::kPut);
  put.key_bytes = sizeof(kKey) - 1;
  put.value_bytes = 5;
  put.sequence = 5;
  EXPECT_EQ(first->Call(put, kKey, "value")->status(), ReplyStatus::kOk);
}

TEST_F(RailsTest, LongValuesGoByTheRailOfTheirRequest) {
  Start();
  const auto first = ConnectedOf(0), second = ConnectedOf(1);
  for (RawPeer* const peer : {second.get(), first.get()}) {
    for (const uint32_t bytes : {kStaged, kLarge}) {
      Fill(peer, bytes, bytes);
      const std::vector<std::byte> sent(peer->lent().data(), peer->lent().data() + bytes);
      const auto put = peer->Call(InBuffer(peer, Opcode::kPut, bytes), kKey);
      ASSERT_EQ(put.value().status(), ReplyStatus::kOk) << bytes;
      std::memset(peer->lent().data(), 0, bytes);
      const auto get = peer->Call(InBuffer(peer, Opcode::kGet, kLarge), kKey);
      if (bytes == kLarge) {
        // The client READs it where it is.
        EXPECT_EQ(get.value().status(), ReplyStatus::kBufferTooSmall);
        continue;
      }
      ASSERT_EQ(get.value().status(), ReplyStatus::kOk);
      EXPECT_EQ(std::memcmp(peer->lent().data(), sent.data(), bytes), 0);
    }
  }
}

// With the heap full, a value waits in a buffer of the worker until it overwrites its item.
TEST_F(RailsTest, ValuesThatReplaceOthersGoByEachRail) {
  Start();
  const auto first = ConnectedOf(0), second = ConnectedOf(1);
  ASSERT_EQ(first->Call(InBuffer(first.get(), Opcode::kPut, kLarge), kKey)->status(),
            ReplyStatus::kOk);
  for (int i = 0; i < 1000; ++i) {
    RequestHeader put = InBuffer(first.get(), Opcode::kPut, kLarge);
    const std::string key = "filler" + std::to_string(i);
    put.key_bytes = static_cast<uint16_t>(key.size());
    const auto reply = first->Call(put, key);
    if (reply.value().status() != ReplyStatus::kOk) break;
    ASSERT_LT(i, 999) << "the heap does not fill";
  }
  for (RawPeer* const peer : {first.get(), second.get(), first.get()}) {
    Fill(peer, kLarge, 7);
    EXPECT_EQ(peer->Call(InBuffer(peer, Opcode::kPut, kLarge), kKey)->status(), ReplyStatus::kOk);
  }
}

TEST_F(RailsTest, ValuesOnADiskGoByTheRailOfTheirRequest) {
  constexpr uint32_t kBytes = 20'000;
  constexpr uint64_t kSegment = 1 << 20;
  const test_support::TemporaryDirectory directory;
  const TierOptions tier = {.directory = directory.path(),
                            .bytes = kTierSegmentsMin * kSegment,
                            .segment_bytes = kSegment};
  if (!ServerTier::Open(tier, /*keeps=*/false).ok()) GTEST_SKIP() << "no tier where the tests are";
  Start([&](Server::Options* options) {
    options->memory_bytes = 8 << 20;
    options->evict = true;
    options->tier = tier;
  });
  const auto first = ConnectedOf(0), second = ConnectedOf(1);
  uint32_t keys = 0;
  for (int i = 0; stats().items_on_disk < 16 && i < 5000; ++i) {
    keys = i + 1;
    Fill(first.get(), kBytes, i);
    RequestHeader put = InBuffer(first.get(), Opcode::kPut, kBytes);
    const std::string key = "key" + std::to_string(i);
    put.key_bytes = static_cast<uint16_t>(key.size());
    ASSERT_EQ(first->Call(put, key).value().status(), ReplyStatus::kOk);
    Advance(kNsPerMs);  // the victims are chosen in the background
  }
  uint32_t seen = 0;
  for (uint32_t i = 0; i < keys && seen < 4; ++i) {
    const std::string key = "key" + std::to_string(i);
    if (!server().store().Get(key, {}, now().server_time).on_disk) continue;
    for (RawPeer* const peer : {second.get(), first.get()}) {
      RequestHeader get = InBuffer(peer, Opcode::kGet, kLarge);
      get.key_bytes = static_cast<uint16_t>(key.size());
      const auto reply = peer->Call(get, key);
      if (reply.value().status() != ReplyStatus::kOk) continue;  // it is back in memory, and large
      ASSERT_EQ(reply->header.get.value_in_buffer, 1);
      const std::vector<std::byte> got(peer->lent().data(), peer->lent().data() + kBytes);
      Fill(peer, kBytes, i);
      EXPECT_EQ(std::memcmp(got.data(), peer->lent().data(), kBytes), 0);
      ++seen;
    }
  }
  EXPECT_GE(seen, 4u);
}

TEST_F(RailsTest, ASessionHasConnectionsOfBothRails) {
  Start();
  const auto first = ConnectedOf(0);
  auto second = PeerOf(1);
  ASSERT_TRUE(second->Join(*first, 1));
  EXPECT_EQ(second->grant().session_id, first->grant().session_id);
  EXPECT_NE(second->grant().connection_id, first->grant().connection_id);
  EXPECT_TRUE(second->ReadAt(second->grant().region_address, second->grant().region_rkey));
  EXPECT_EQ(second->Put(kKey, "value"), ReplyStatus::kOk);
  // The same place over the other rail: the old queue pair is closed first.
  auto again = PeerOf(0);
  ASSERT_TRUE(again->Join(*first, 1));
  EXPECT_TRUE(second->WaitBroken());
  EXPECT_EQ(stats().sessions, 1u);
  EXPECT_EQ(stats().connections, 2u);
  first->next_sequence = second->next_sequence;  // numbers are the session's
  EXPECT_EQ(first->Get(kKey), "value");
}

TEST_F(RailsTest, OnlyTheLockRailSwapsLockWords) {
  Start();
  const auto first = ConnectedOf(0), second = ConnectedOf(1);
  EXPECT_EQ(static_cast<LockMode>(first->grant().lock_mode), LockMode::kNicCas);
  EXPECT_EQ(static_cast<LockMode>(second->grant().lock_mode), LockMode::kRpcLoopback);
  EXPECT_EQ(second->grant().lock_address, 0u);
  EXPECT_EQ(second->grant().lock_rkey, 0u);
  EXPECT_EQ(second->grant().lock_words, first->grant().lock_words);
}

TEST_F(RailsTest, LocksByRpcOverAnotherRailExcludeSwaps) {
  Start();
  const auto first = ConnectedOf(0), second = ConnectedOf(1);
  const size_t index = HashOf(*first).LockIndex(first->grant().lock_words);
  ASSERT_EQ(first->Cas(index, 0, WordOf(*first)), 0u);
  const ReplyHeader refused = CallLock(second.get(), Opcode::kLock);
  EXPECT_EQ(static_cast<ReplyStatus>(refused.status), ReplyStatus::kLockHeld);
  EXPECT_EQ(refused.lock.lock_word, WordOf(*first));
  EXPECT_EQ(first->Cas(index, WordOf(*first), 0), WordOf(*first));
  EXPECT_EQ(static_cast<ReplyStatus>(CallLock(second.get(), Opcode::kLock).status),
            ReplyStatus::kOk);
  EXPECT_EQ(first->Cas(index, 0, WordOf(*first)), WordOf(*second));
  EXPECT_EQ(static_cast<ReplyStatus>(CallLock(second.get(), Opcode::kUnlock).status),
            ReplyStatus::kOk);
}

// If the server swapped by the device of the request, both would get the lock now and then: a
// device writes 20 us after it has read.
TEST_F(RailsTest, OneOfTwoWhoAskAtOnceGetsTheLock) {
  Start();
  const auto first = ConnectedOf(0), second = ConnectedOf(1);
  const size_t index = HashOf(*first).LockIndex(first->grant().lock_words);
  for (int i = 0; i < 200; ++i) {
    RequestHeader lock = second->Header(Opcode::kLock);
    lock.key_bytes = sizeof(kKey) - 1;
    lock.lock.lock_word = WordOf(*second);
    ASSERT_TRUE(second->Send(lock, kKey));
    const auto before = first->Cas(index, 0, WordOf(*first));
    const auto reply = second->Receive();
    ASSERT_TRUE(before && reply);
    const bool first_has = *before == 0, second_has = reply->status() == ReplyStatus::kOk;
    ASSERT_NE(first_has, second_has) << i;
    if (first_has) {
      ASSERT_EQ(first->Cas(index, WordOf(*first), 0), WordOf(*first));
    } else {
      ASSERT_EQ(static_cast<ReplyStatus>(CallLock(second.get(), Opcode::kUnlock).status),
                ReplyStatus::kOk);
    }
  }
}

TEST_F(RailsTest, HeatsAreReadByTheKeyOfTheRail) {
  Start([](Server::Options* options) { options->evict = true; });
  std::set<uint32_t> keys;
  for (const uint32_t rail : {0, 1}) {
    const auto peer = ConnectedOf(rail);
    const auto reply = peer->Call(peer->Header(Opcode::kHeats));
    ASSERT_EQ(reply.value().value.size(), sizeof(HeatsReply));
    HeatsReply heats{};
    std::memcpy(&heats, reply->value.data(), sizeof(heats));
    EXPECT_EQ(peer->ReadAt(heats.address, heats.rkey), 0u);
  }
}

TEST_F(RailsTest, LeasesOfItemsAreReadByTheKeyOfTheRail) {
  Start([](Server::Options* options) { options->item_lease_ms = 100; });
  for (const uint32_t rail : {0, 1}) {
    const auto peer = ConnectedOf(rail);
    const auto reply = peer->Call(peer->Header(Opcode::kItemLeases));
    ASSERT_EQ(reply.value().value.size(), sizeof(ItemLeasesReply));
    ItemLeasesReply leases{};
    std::memcpy(&leases, reply->value.data(), sizeof(leases));
    EXPECT_TRUE(peer->ReadAt(leases.address, leases.rkey).has_value());
  }
}

TEST_F(RailsTest, TheSecondAddressOfADeviceSharesWhatIsRegistered) {
  Start(
      [](Server::Options* options) { options->more_rails.push_back(*Resolve("127.0.1.2:0", 0)); });
  const auto& rails = server().context().rails;
  ASSERT_EQ(rails.size(), 3u);
  EXPECT_NE(rails[0].pd, rails[1].pd);
  EXPECT_EQ(rails[1].pd, rails[2].pd);
  EXPECT_EQ(rails[1].region_rkey, rails[2].region_rkey);
  RawPeer peer(this, second_, rails[2].address);
  ASSERT_TRUE(peer.Connect());
  EXPECT_EQ(peer.Put(kKey, "value"), ReplyStatus::kOk);
}

TEST_F(RailsTest, WrongAddressesAreRefused) {
  const auto why_not = [](const std::vector<std::string>& more, const char* first = "127.0.0.1:0") {
    Server::Options options{
        .listen = *Resolve(first, 0), .device = TestDevice(), .clocks = MachineClocks()};
    for (const std::string& text : more) options.more_rails.push_back(*Resolve(text, 0));
    const auto server = Server::Create(options);
    return std::string(server.status().message());
  };
  EXPECT_THAT(why_not({"203.0.113.7:0"}), HasSubstr("cannot listen on 203.0.113.7:0"));
  EXPECT_THAT(why_not({"0.0.0.0:0"}), HasSubstr("is of all devices"));
  EXPECT_THAT(why_not({"127.0.0.1:0"}, "127.0.1.1:0"),
              HasSubstr("is of device softverbs1, and not of softverbs0: --device=softverbs1"));
}

TEST_F(RailsTest, WhatComesByEachIsCounted) {
  Start();
  const auto first = ConnectedOf(0), second = ConnectedOf(1), third = ConnectedOf(1);
  EXPECT_EQ(first->Put(kKey, "value"), ReplyStatus::kOk);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(second->Get(kKey), "value");
  EXPECT_TRUE(third->Call(third->Header(Opcode::kHeartbeat)).has_value());
  Pass(int64_t{kSilenceMsDefault} * kNsPerMs / 2);  // they are counted now and then
  const auto& requests = server().workers().front()->counters().rail_requests;
  EXPECT_EQ(requests[0].value(), 1u);
  EXPECT_EQ(requests[1].value(), 3u);
}

TEST_F(RailsTest, TellsWhoAsksWhereTheyAre) {
  Start();
  for (const uint8_t own : {0, 1}) {
    const auto peer = ConnectedOf(own);
    const RailsReply told = Ask(peer.get());
    ASSERT_EQ(told.count, 2);
    EXPECT_EQ(told.lock_rail, 0);
    EXPECT_EQ(told.own_rail, own);
    for (const uint8_t i : {0, 1}) {
      const SocketAddress& address = server().context().rails[i].address;
      const auto bytes = address.NetworkBytes();
      EXPECT_EQ(std::memcmp(told.rails[i].address.data(), bytes.data(), 16), 0);
      EXPECT_EQ(told.rails[i].port, address.port());
      EXPECT_EQ(told.rails[i].mtu_bytes, 4096);
      EXPECT_EQ(told.rails[i].mbit_per_second, 100'000u);
      EXPECT_EQ(told.rails[i].port_number, i + 1);
      EXPECT_EQ(told.rails[i].state, static_cast<uint8_t>(RailState::kUp));
    }
  }
}

TEST_F(RailsTest, TellsHowManyConnectionsEachHas) {
  Start();
  const auto first = ConnectedOf(0), second = ConnectedOf(1);
  auto third = ConnectedOf(1);
  EXPECT_EQ(Ask(first.get()).rails[0].connections, 1u);
  EXPECT_EQ(Ask(first.get()).rails[1].connections, 2u);
  third.reset();
  EXPECT_TRUE(StepUntil([this] { return stats().connections == 2; }));
  EXPECT_EQ(Ask(first.get()).rails[1].connections, 1u);
}

TEST_F(RailsTest, APortThatIsDownLeavesTheOtherRailServed) {
  Start();
  const auto first = ConnectedOf(0), second = ConnectedOf(1);
  ASSERT_EQ(softverbs_set_port(1, 0), 0);
  Pass(kNsPerSecond);
  EXPECT_EQ(Ask(first.get()).rails[1].state, static_cast<uint8_t>(RailState::kDown));
  EXPECT_EQ(Ask(first.get()).rails[0].state, static_cast<uint8_t>(RailState::kUp));
  EXPECT_EQ(first->Put(kKey, "value"), ReplyStatus::kOk);
  EXPECT_EQ(softverbs_set_port(1, 1), 0);
  Pass(kNsPerSecond);
  EXPECT_EQ(Ask(first.get()).rails[1].state, static_cast<uint8_t>(RailState::kUp));
  EXPECT_EQ(second->Get(kKey), "value");
}

TEST_F(RailsTest, ADeviceThatIsGoneTakesItsRailsAlone) {
  Start();
  const auto first = ConnectedOf(0), second = ConnectedOf(1);
  RailWatch watch(server().all_workers(), /*in_group=*/false);
  watch.OnLost(second_.verbs, "was removed");
  EXPECT_TRUE(watch.status().ok());
  EXPECT_TRUE(second->WaitBroken());
  EXPECT_EQ(server().context().rail_board.Of(1).state, RailState::kDown);
  watch.Look();
  EXPECT_EQ(server().context().rail_board.Of(1).state, RailState::kDown) << "it comes not back";
  EXPECT_EQ(first->Put(kKey, "value"), ReplyStatus::kOk);
  EXPECT_TRUE(StepUntil([this] { return stats().connections == 1; }));
  EXPECT_FALSE(server().workers().front()->failed());
  watch.OnLost(TestDevice().verbs, "was removed");
  EXPECT_EQ(watch.status().message(), "device softverbs0 was removed");
}

TEST_F(RailsTest, TheOnlyDeviceEndsTheServerWhicheverItIs) {
  StartServer();
  RailWatch watch(server().all_workers(), /*in_group=*/false);
  watch.OnLost(nullptr, "was removed");
  EXPECT_EQ(watch.status().message(), "device softverbs0 was removed");
}

// Its links by that device may never be flushed, and the group would wait for that.
TEST_F(RailsTest, ADeviceThatIsGoneEndsAMemberOfAGroup) {
  Start();
  RailWatch watch(server().all_workers(), /*in_group=*/true);
  EXPECT_TRUE(watch.status().ok());
  watch.OnLost(second_.verbs, "failed");
  EXPECT_EQ(watch.status().message(),
            "device softverbs1 failed, which ends a member of a group: it is to be started again");
}

TEST_F(RailsTest, SleepsOnTheQueuesOfBoth) {
  Start();
  const Worker& worker = *server().workers().front();
  std::vector<int> fds(worker.fds().begin(), worker.fds().end());
  std::erase(fds, -1);
  EXPECT_EQ(std::set<int>(fds.begin(), fds.end()).size(), 3u) << "inbox and two queues";
}

}  // namespace
}  // namespace gannet
