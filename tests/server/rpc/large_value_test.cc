#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/hash.h"
#include "gtest/gtest.h"
#include "tests/server/rpc/raw_peer.h"
#include "tests/server/rpc/server_fixture.h"

namespace gannet {
namespace {

constexpr uint32_t kLarge = 1 << 20;
// Too long for a message, but not in a large item.
constexpr uint32_t kStaged = 4'040;

class LargeValueTest : public ServerTest {
 protected:
  void SetUp() override { StartServer(); }

  static void Fill(std::span<std::byte> bytes, uint64_t seed) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = static_cast<std::byte>(Mix64(seed + i / 8) >> (i % 8 * 8));
    }
  }
  static RequestHeader PutHeader(RawPeer* peer, std::string_view key, uint64_t offset,
                                 uint32_t bytes) {
    RequestHeader header = peer->Header(Opcode::kPut, kValueInBuffer);
    header.key_bytes = static_cast<uint16_t>(key.size());
    header.value_bytes = bytes;
    header.write.buffer_address = peer->lent().address() + offset;
    header.write.buffer_rkey = peer->lent().rkey();
    return header;
  }
  static RequestHeader GetHeader(RawPeer* peer, std::string_view key, uint64_t offset,
                                 uint32_t room) {
    RequestHeader header = peer->Header(Opcode::kGet, kValueInBuffer);
    header.key_bytes = static_cast<uint16_t>(key.size());
    header.get = {.buffer_address = peer->lent().address() + offset,
                  .buffer_rkey = peer->lent().rkey(),
                  .buffer_bytes = room};
    return header;
  }
};

TEST_F(LargeValueTest, ComeAndGoThroughTheClientsBuffer) {
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  const std::span<std::byte> lent(peer.lent().data(), peer.lent().size());
  for (uint32_t bytes : {1u, 4'000u, 4'032u, 4'033u, kStaged, 4'061u}) {
    Fill(lent.first(bytes), bytes);
    const std::vector<std::byte> sent(lent.begin(), lent.begin() + bytes);
    const auto put = peer.Call(PutHeader(&peer, "key", 0, bytes), "key");
    ASSERT_EQ(put->status(), ReplyStatus::kOk) << bytes;
    std::memset(lent.data(), 0, lent.size());
    const auto get = peer.Call(GetHeader(&peer, "key", 64, kLarge), "key");
    ASSERT_EQ(get->status(), ReplyStatus::kOk) << bytes;
    ASSERT_EQ(get->header.value_bytes, bytes);
    if (get->header.get.value_in_buffer) {
      ASSERT_EQ(std::memcmp(lent.data() + 64, sent.data(), bytes), 0) << bytes;
    } else {
      ASSERT_LE(bytes, EagerValueBytesMax(0)) << "only short ones travel in the reply";
      ASSERT_EQ(std::memcmp(get->value.data(), sent.data(), bytes), 0) << bytes;
    }
  }
}

// The server sends no large values. It says where they are.
TEST_F(LargeValueTest, AGetOfALargeItemIsToldWhereItIs) {
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  for (uint32_t bytes : {4'062u, 5'000u, 262'144u, 262'145u, kLarge}) {
    const auto put = peer.Call(PutHeader(&peer, "key", 0, bytes), "key");
    ASSERT_EQ(put->status(), ReplyStatus::kOk) << bytes;
    EXPECT_TRUE(IsLargeClass(Slot(put->header.write.slot).size_class())) << bytes;
    const auto get = peer.Call(GetHeader(&peer, "key", 64, kLarge), "key");
    EXPECT_EQ(get->status(), ReplyStatus::kBufferTooSmall) << bytes;
    EXPECT_EQ(get->header.get.slot, put->header.write.slot);
    EXPECT_EQ(get->header.get.version, put->header.write.version);
    EXPECT_EQ(get->header.value_bytes, bytes);
  }
}

TEST_F(LargeValueTest, IsGatheredFromSegments) {
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  const std::span<std::byte> lent(peer.lent().data(), peer.lent().size());
  Fill(lent, 3);
  // Three pieces that together are short enough to come back in a reply.
  const std::vector<std::pair<uint64_t, uint32_t>> parts = {
      {9'000, 1'000}, {100, 7}, {50'000, 2'000}};
  std::string value, segments;
  for (const auto& [offset, bytes] : parts) {
    value.append(reinterpret_cast<const char*>(lent.data()) + offset, bytes);
    const ValueSegment segment{peer.lent().address() + offset, peer.lent().rkey(), bytes};
    segments.append(reinterpret_cast<const char*>(&segment), sizeof(segment));
  }
  RequestHeader header = peer.Header(Opcode::kPut, kValueInSegments);
  header.key_bytes = 3;
  header.value_bytes = static_cast<uint32_t>(value.size());
  header.write.segments = static_cast<uint32_t>(parts.size());
  ASSERT_EQ(peer.Call(header, "key", segments)->status(), ReplyStatus::kOk);
  EXPECT_EQ(peer.Get("key"), value);
}

TEST_F(LargeValueTest, EmptyValueInABufferIsAValue) {
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  ASSERT_EQ(peer.Call(PutHeader(&peer, "key", 0, 0), "key")->status(), ReplyStatus::kOk);
  EXPECT_EQ(peer.Get("key"), "");
}

TEST_F(LargeValueTest, AllCreditsAtOnce) {
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  constexpr uint32_t kBytes = kStaged;
  const std::span<std::byte> lent(peer.lent().data(), peer.lent().size());
  Fill(lent.first(kBytes), 1);
  for (int i = 0; i < kCreditsDefault; ++i) {
    const std::string key = "key" + std::to_string(i);
    ASSERT_TRUE(peer.Send(PutHeader(&peer, key, 0, kBytes), key));
  }
  for (int i = 0; i < kCreditsDefault; ++i) ASSERT_EQ(peer.Receive()->status(), ReplyStatus::kOk);
  const uint64_t first_get = peer.next_sequence;
  for (int i = 0; i < kCreditsDefault; ++i) {
    const std::string key = "key" + std::to_string(i);
    ASSERT_TRUE(peer.Send(GetHeader(&peer, key, kLarge + i * kBytes, kBytes), key));
  }
  for (int i = 0; i < kCreditsDefault; ++i) {
    const auto reply = peer.Receive();
    ASSERT_EQ(reply->status(), ReplyStatus::kOk);
    // Each has its own place, because the next ones are still being written.
    const uint64_t place = kLarge + (reply->header.sequence - first_get) * kBytes;
    ASSERT_EQ(std::memcmp(lent.data(), lent.data() + place, kBytes), 0);
  }
}

TEST_F(LargeValueTest, TooSmallABufferIsToldWhatIsNeeded) {
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  ASSERT_EQ(peer.Call(PutHeader(&peer, "key", 0, kStaged), "key")->status(), ReplyStatus::kOk);
  for (uint32_t room : {0u, kStaged - 1}) {
    const auto reply = peer.Call(GetHeader(&peer, "key", 0, room), "key");
    EXPECT_EQ(reply->status(), ReplyStatus::kBufferTooSmall);
    EXPECT_EQ(reply->header.value_bytes, kStaged);
  }
}

TEST_F(LargeValueTest, DuplicateOfALargePutIsAnsweredFromTheRecord) {
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  RequestHeader put = PutHeader(&peer, "key", 0, 100'000);
  put.flags |= kOnlyIfAbsent;
  const auto first = peer.Call(put, "key");
  ASSERT_EQ(first->status(), ReplyStatus::kOk);
  const auto again = peer.Call(put, "key");
  EXPECT_EQ(again->status(), ReplyStatus::kOk);
  EXPECT_EQ(again->header.write.version, first->header.write.version);
}

TEST_F(LargeValueTest, FullHeapIsOutOfMemoryAndHarmsNothing) {
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  ReplyStatus status = ReplyStatus::kOk;
  int stored = 0;
  for (; status == ReplyStatus::kOk && stored < 100; ++stored) {
    const std::string key = "key" + std::to_string(stored);
    status = peer.Call(PutHeader(&peer, key, 0, kLarge), key)->status();
  }
  EXPECT_EQ(status, ReplyStatus::kHeapFull);
  EXPECT_GT(stored, 5);
  EXPECT_EQ(stats().refused_heap_full, 1u);
  EXPECT_EQ(peer.Call(GetHeader(&peer, "key0", 0, kLarge), "key0")->header.value_bytes, kLarge);
}

class FullHeapTest : public LargeValueTest, public testing::WithParamInterface<uint32_t> {
 protected:
  // As it is in the store. Clients READ large items themselves.
  std::vector<std::byte> Value(std::string_view key) {
    std::vector<std::byte> value(GetParam());
    EXPECT_EQ(server().store().Get(key, value, now().server_time).status, ReplyStatus::kOk) << key;
    return value;
  }
};

// Each replacing PUT has a buffer of its connection while its READ is under way. The others wait
// for the buffer.
TEST_P(FullHeapTest, StillReplacesForManyConnectionsAtOnce) {
  const uint32_t bytes = GetParam();
  // An index that grows may free memory later.
  StopServer();
  StartServer([](Server::Options* options) { options->index_grows = false; });
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (int i = 0; i < 4; ++i) {
    peers.push_back(std::make_unique<RawPeer>(this));
    ASSERT_TRUE(peers.back()->Connect());
  }
  RawPeer& first = *peers.front();
  int stored = 0;
  const auto key_of = [](int i) { return "key" + std::to_string(i); };
  while (first.Call(PutHeader(&first, key_of(stored), 0, bytes), key_of(stored))->status() ==
         ReplyStatus::kOk) {
    ++stored;
  }
  ASSERT_GT(stored, 8);
  constexpr int kPutsEach = 8;
  for (uint64_t p = 0; p < peers.size(); ++p) {
    const std::span<std::byte> lent(peers[p]->lent().data(), peers[p]->lent().size());
    Fill(lent.first(bytes), p);
    for (int i = 0; i < kPutsEach; ++i) {
      ASSERT_TRUE(peers[p]->Send(PutHeader(peers[p].get(), key_of(i), 0, bytes), key_of(i)));
    }
    ASSERT_TRUE(peers[p]->Send(PutHeader(peers[p].get(), "new", 0, bytes), "new"));
  }
  for (const auto& peer : peers) {
    int done = 0, refused = 0;
    for (int i = 0; i < kPutsEach + 1; ++i) {
      const ReplyStatus status = peer->Receive()->status();
      done += status == ReplyStatus::kOk;
      refused += status == ReplyStatus::kHeapFull;
    }
    EXPECT_EQ(done, kPutsEach);
    EXPECT_EQ(refused, 1) << "a new key";
  }
  for (int i = 0; i < kPutsEach; ++i) {
    std::vector<std::byte> any(bytes);
    const std::vector<std::byte> value = Value(key_of(i));
    uint64_t matches = 0;
    for (uint64_t p = 0; p < peers.size(); ++p) {
      Fill(any, p);
      matches += value == any;
    }
    EXPECT_EQ(matches, 1u) << key_of(i);
  }
}

// A client that dies while its value is READ leaves the item unchanged and its buffer to others.
TEST_P(FullHeapTest, AReplacementThatFailsChangesNothing) {
  const uint32_t bytes = GetParam();
  RawPeer good(this);
  ASSERT_TRUE(good.Connect());
  int stored = 0;
  const auto key_of = [](int i) { return "key" + std::to_string(i); };
  Fill({good.lent().data(), bytes}, 1);
  while (good.Call(PutHeader(&good, key_of(stored), 0, bytes), key_of(stored))->status() ==
         ReplyStatus::kOk) {
    ++stored;
  }
  for (int round = 0; round < 5; ++round) {
    RawPeer peer(this);
    ASSERT_TRUE(peer.Connect());
    RequestHeader header = PutHeader(&peer, "key0", 0, bytes);
    header.write.buffer_rkey ^= 0x5a5a5a;
    ASSERT_TRUE(peer.Send(header, "key0"));
    EXPECT_TRUE(peer.WaitBroken());
  }
  EXPECT_EQ(std::memcmp(good.lent().data(), Value("key0").data(), bytes), 0);
  EXPECT_EQ(good.Call(PutHeader(&good, "key0", 0, bytes), "key0")->status(), ReplyStatus::kOk);
}

INSTANTIATE_TEST_SUITE_P(OfValues, FullHeapTest, testing::Values(kStaged, 5'000, 20'000, 200'000),
                         testing::PrintToStringParamName());

TEST_F(LargeValueTest, BadKeyOfThePutBufferBreaksTheConnectionAndLeaksNothing) {
  RawPeer good(this);
  ASSERT_TRUE(good.Connect());
  ASSERT_EQ(good.Call(PutHeader(&good, "key", 0, 1000), "key")->status(), ReplyStatus::kOk);
  const uint64_t heap_bytes = stats().heap_bytes;
  for (int round = 0; round < 5; ++round) {
    RawPeer peer(this);
    ASSERT_TRUE(peer.Connect());
    RequestHeader header = PutHeader(&peer, "key", 0, kLarge);
    header.write.buffer_rkey ^= 0x5a5a5a;
    ASSERT_TRUE(peer.Send(header, "key"));
    EXPECT_TRUE(peer.WaitBroken());
  }
  ASSERT_TRUE(StepUntil([this] { return stats().connections == 1; }));
  EXPECT_EQ(stats().heap_bytes, heap_bytes);
  EXPECT_EQ(good.Get("key")->size(), 1000u);
}

TEST_F(LargeValueTest, BufferOutsideItsRegionBreaksTheConnectionAndLeaksNothing) {
  RawPeer peer(this);
  ASSERT_TRUE(peer.Connect());
  const uint64_t heap_bytes = stats().heap_bytes;
  RequestHeader header = PutHeader(&peer, "key", peer.lent().size() - 1000, kLarge);
  ASSERT_TRUE(peer.Send(header, "key"));
  EXPECT_TRUE(peer.WaitBroken());
  ASSERT_TRUE(StepUntil([this] { return stats().connections == 0; }));
  EXPECT_EQ(stats().heap_bytes, heap_bytes);
}

TEST_F(LargeValueTest, BadKeyOfTheGetBufferBreaksTheConnectionAndKeepsNoStaging) {
  RawPeer good(this);
  ASSERT_TRUE(good.Connect());
  ASSERT_EQ(good.Call(PutHeader(&good, "key", 0, kStaged), "key")->status(), ReplyStatus::kOk);
  for (int round = 0; round < 10; ++round) {
    RawPeer peer(this);
    ASSERT_TRUE(peer.Connect());
    RequestHeader header = GetHeader(&peer, "key", 0, kStaged);
    header.get.buffer_rkey ^= 0x5a5a5a;
    ASSERT_TRUE(peer.Send(header, "key"));
    EXPECT_TRUE(peer.WaitBroken());
  }
  EXPECT_EQ(good.Call(GetHeader(&good, "key", 0, kStaged), "key")->status(), ReplyStatus::kOk);
}

TEST_F(LargeValueTest, ClientGoneInTheMiddleLeaksNothing) {
  const uint64_t heap_bytes = stats().heap_bytes;
  for (int round = 0; round < 10; ++round) {
    RawPeer peer(this);
    ASSERT_TRUE(peer.Connect());
    for (int i = 0; i < 8; ++i) {
      RequestHeader header = PutHeader(&peer, "key", 0, kLarge);
      header.flags |= kOnlyIfVersion;
      header.write.expected_version = 12345;  // so that none is ever stored, however far it comes
      ASSERT_TRUE(peer.Send(header, "key"));
    }
    for (int i = 0; i < round; ++i) Step();
  }
  ASSERT_TRUE(StepUntil([this] { return stats().connections == 0; }));
  EXPECT_EQ(stats().heap_bytes, heap_bytes);
}

}  // namespace
}  // namespace gannet
