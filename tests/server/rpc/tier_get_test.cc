#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/memory/store/stubs.h"
#include "softverbs/tests/support/temporary_directory.h"
#include "tests/server/rpc/raw_peer.h"
#include "tests/server/rpc/server_fixture.h"

namespace gannet {
namespace {

constexpr uint32_t kValueBytes = 20'000;
constexpr uint32_t kRoom = 64 << 10;
constexpr uint64_t kSegment = 1 << 20;

std::string ValueOf(std::string_view key) {
  std::string value;
  while (value.size() < kValueBytes) absl::StrAppend(&value, std::string(key), value.size(), ".");
  return value.substr(0, kValueBytes);
}

// A disk whose reads hang while the test likes.
std::atomic<bool> g_held = false;
std::atomic<uint32_t> g_hanging = 0;

ssize_t HangingPread(int fd, void* bytes, size_t n, off_t offset) {
  ++g_hanging;
  g_held.wait(true);
  --g_hanging;
  return pread(fd, bytes, n, offset);
}

// GETs by RPC of values that are on the disk.
class TierGetTest : public ServerTest {
 protected:
  void SetUp() override {
    const auto probe = TierFile::Open({.directory = directory_.path(),
                                       .bytes = kTierSegmentsMin * kSegment,
                                       .segment_bytes = kSegment});
    if (!probe.ok()) GTEST_SKIP() << "no tier where the tests are: " << probe.status();
  }
  void Start(uint32_t read_threads = 2, uint16_t credits = kCreditsDefault) {
    StartServer([&](Server::Options* options) {
      options->credits = credits;
      options->memory_bytes = 8 << 20;
      options->evict = true;
      options->tier = {.directory = directory_.path(),
                       .bytes = kTierSegmentsMin * kSegment,
                       .segment_bytes = kSegment,
                       .read_threads = read_threads,
                       .pread = HangingPread};
    });
    peer_.emplace(this);
    ASSERT_TRUE(peer_->Connect());
  }
  void TearDown() override {
    HoldReads(false);
    peer_.reset();
    ServerTest::TearDown();
  }
  static void HoldReads(bool hold) {
    g_held = hold;
    g_held.notify_all();
  }
  Store& store() { return server().store(); }
  size_t busy() const { return const_cast<TierGetTest*>(this)->server().workers()[0]->busy(); }

  ReadOutcome Look(std::string_view key) { return store().Get(key, {}, now().server_time); }
  // Puts a value through the peer's buffer. Returns its version.
  uint64_t Put(std::string_view key) {
    const std::string value = ValueOf(key);
    std::memcpy(peer_->lent().data(), value.data(), value.size());
    RequestHeader header = peer_->Header(Opcode::kPut, kValueInBuffer);
    header.key_bytes = static_cast<uint16_t>(key.size());
    header.value_bytes = kValueBytes;
    header.write.buffer_address = peer_->lent().address();
    header.write.buffer_rkey = peer_->lent().rkey();
    const auto put = peer_->Call(header, key);
    EXPECT_EQ(put->status(), ReplyStatus::kOk);
    return put->header.write.version;
  }
  // Puts values until so many of them are on the disk, and returns their keys. To look at a key is
  // to use it, so the keys are looked at only then.
  std::vector<std::string> PutOntoDisk(size_t n) {
    std::vector<uint64_t> versions;
    std::vector<std::string> found;
    const auto key_of = [](size_t i) { return absl::StrCat("key", i); };
    while (stats().items_on_disk < n && versions.size() < 5000) {
      versions.push_back(Put(key_of(versions.size())));
      Advance(kNsPerMs);  // the victims are chosen in the background
    }
    for (size_t i = 0; i < versions.size() && found.size() < n; ++i) {
      const ReadOutcome look = Look(key_of(i));
      if (!look.on_disk) continue;
      place_ = *look.on_disk;
      version_ = versions[i];
      found.push_back(key_of(i));
    }
    EXPECT_EQ(found.size(), n) << "too little went to the disk";
    found.resize(n);
    // Nothing must go for what is put or brought back later: it could be one of these.
    for (size_t i = versions.size(), deleted = 0; i-- > 0 && deleted < 16;) {
      const ReadOutcome look = Look(key_of(i));
      if (look.version == 0 || look.on_disk) continue;
      EXPECT_EQ(Delete(key_of(i)), ReplyStatus::kOk);
      ++deleted;
    }
    return found;
  }
  ReplyStatus Delete(std::string_view key) {
    RequestHeader header = peer_->Header(Opcode::kDelete);
    header.key_bytes = static_cast<uint16_t>(key.size());
    return peer_->Call(header, key)->status();
  }
  std::string PutOntoDisk() { return PutOntoDisk(1)[0]; }
  static RequestHeader GetHeaderOf(RawPeer& peer, std::string_view key, uint32_t room = kRoom) {
    RequestHeader header = peer.Header(Opcode::kGet, kValueInBuffer);
    header.key_bytes = static_cast<uint16_t>(key.size());
    header.get = {.buffer_address = peer.lent().address(),
                  .buffer_rkey = peer.lent().rkey(),
                  .buffer_bytes = room};
    return header;
  }
  RequestHeader GetHeader(std::string_view key, uint32_t room = kRoom) {
    return GetHeaderOf(*peer_, key, room);
  }
  RawPeer::Reply Get(std::string_view key, uint32_t room = kRoom) {
    return *peer_->Call(GetHeader(key, room), key);
  }
  // Makes a stub of a new item that leads there.
  void PutStub(std::string_view key, TierPlace place) {
    place.version = Put(key);
    ASSERT_TRUE(store().stubs()->Make(store().HashOf(key), place));
  }

  test_support::TemporaryDirectory directory_;
  std::optional<RawPeer> peer_;
  // Of what PutOntoDisk found last.
  TierPlace place_;
  uint64_t version_ = 0;
};

TEST_F(TierGetTest, ComeIntoTheClientsBuffer) {
  Start();
  const std::string key = PutOntoDisk();
  std::memset(peer_->lent().data(), 0, kRoom);
  const RawPeer::Reply get = Get(key);
  ASSERT_EQ(get.status(), ReplyStatus::kOk);
  EXPECT_EQ(get.header.get.value_in_buffer, 1);
  ASSERT_EQ(get.header.value_bytes, kValueBytes);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(peer_->lent().data()), kValueBytes),
            ValueOf(key));
  EXPECT_EQ(get.header.get.slot, 0u) << "there is no place to remember";
  EXPECT_EQ(get.header.get.version, version_);
  EXPECT_EQ(stats().tier_reads, 1u);
  EXPECT_EQ(stats().tier_reads_failed, 0u);
  EXPECT_GT(stats().items_on_disk, 0u);
  EXPECT_TRUE(StepUntil([this] { return busy() == 0; })) << "the WRITE gives the memory back";
}

// Clients READ what is in memory. Two of them ask at the same time.
TEST_F(TierGetTest, OfWhatIsReadAgainBringItIntoMemory) {
  Start();
  const std::string key = PutOntoDisk();
  const auto in_memory = [&] { return !Look(key).on_disk.has_value(); };
  // Now there is room.
  for (int i = 0; i < 5000; ++i) {
    const std::string more = absl::StrCat("key", i);
    if (more == key || i % 4 == 0) continue;
    server().writes().Delete(more, {}, now().server_time);
  }
  RawPeer other(this);
  ASSERT_TRUE(other.Connect());
  int gets = 0;
  for (; gets < 64 && !in_memory(); ++gets) {
    for (RawPeer* const peer : {&*peer_, &other}) {
      ASSERT_TRUE(peer->Send(GetHeaderOf(*peer, key), key));
    }
    for (RawPeer* const peer : {&*peer_, &other}) {
      const auto get = peer->Receive();
      ASSERT_TRUE(get.has_value());
      EXPECT_TRUE(get->status() == ReplyStatus::kOk || in_memory());
    }
    Advance(kNsPerMs);
  }
  EXPECT_GT(gets, 0);
  EXPECT_TRUE(in_memory());
  EXPECT_TRUE(StepUntil([this] { return busy() == 0; }));
  EXPECT_EQ(stats().tier_promoted, 1u) << "one of the two did it";
  std::string value(kRoom, '\0');
  const ReadOutcome read =
      store().Get(key, std::as_writable_bytes(std::span(value)), now().server_time);
  EXPECT_EQ(read.version, version_);
  EXPECT_TRUE(value.substr(0, read.value_bytes) == ValueOf(key));
}

TEST_F(TierGetTest, TellsOfABufferThatIsTooShort) {
  Start();
  const std::string key = PutOntoDisk();
  const RawPeer::Reply get = Get(key, kValueBytes - 1);
  EXPECT_EQ(get.status(), ReplyStatus::kBufferTooSmall);
  EXPECT_EQ(get.header.value_bytes, kValueBytes);
  EXPECT_EQ(get.header.get.slot, 0u);
  EXPECT_EQ(get.header.get.version, version_);
  EXPECT_EQ(stats().tier_reads, 0u);
}

// The stub goes first. Otherwise the next GET might find the value again.
TEST_F(TierGetTest, MissesWhatIsNotThere) {
  Start();
  const std::string key = PutOntoDisk();
  TierPlace place = place_;
  place.position += kTierRecordAlignment;
  PutStub("damaged", place);
  EXPECT_EQ(Get("damaged").status(), ReplyStatus::kNotFound);
  EXPECT_EQ(Look("damaged").status, ReplyStatus::kNotFound);
  EXPECT_EQ(stats().tier_reads_failed, 1u);
  EXPECT_EQ(Get(key).status(), ReplyStatus::kOk);
}

TEST_F(TierGetTest, MissesWhatWasOverwritten) {
  Start();
  const std::string key = PutOntoDisk();
  TierPlace place = place_;
  ++place.lap;
  PutStub("gone", place);
  EXPECT_EQ(Get("gone").status(), ReplyStatus::kNotFound);
  EXPECT_EQ(Look("gone").status, ReplyStatus::kNotFound);
  EXPECT_EQ(stats().tier_reads, 0u);
}

// The disk is written over, with some of its values read meanwhile. What goes is a miss, and no GET
// finds what is not its own.
TEST_F(TierGetTest, AreRightWhileTheCircleGoesRound) {
  Start();
  constexpr int kKeys = 2500;
  const auto key_of = [](int i) { return absl::StrCat("key", i); };
  int from_disk = 0;
  const auto get = [&](int i) {
    const std::string key = key_of(i);
    const RawPeer::Reply got = Get(key);
    // Clients READ what is in memory themselves.
    if (got.status() != ReplyStatus::kOk) return;
    ++from_disk;
    const std::string value(reinterpret_cast<const char*>(peer_->lent().data()), kValueBytes);
    EXPECT_TRUE(value == ValueOf(key)) << key;
  };
  for (int i = 0; i < kKeys; ++i) {
    Put(key_of(i));
    Advance(kNsPerMs);
    if (i % 4 == 0) get(i / 2);
  }
  for (int i = 0; i < kKeys; ++i) get(i);
  EXPECT_GT(from_disk, 0);
  EXPECT_GT(stats().tier_evicted, 0u) << "no segment was taken again: the test shows less";
  EXPECT_EQ(stats().tier_reads_failed, 0u);
  EXPECT_TRUE(StepUntil([this] { return busy() == 0; }));
}

// A disk that does not answer leaves half of the credits for what is in memory.
TEST_F(TierGetTest, WaitWithHalfOfTheCreditsAtMost) {
  Start(/*read_threads=*/0);
  const std::string key = PutOntoDisk();
  const uint32_t credits = peer_->grant().credits;
  const uint32_t gets = credits - 2;  // numbers for two requests are left
  for (uint32_t i = 0; i < gets; ++i) ASSERT_TRUE(peer_->Send(GetHeader(key), key));
  for (uint32_t i = 0; i < gets - credits / 2; ++i) {
    const auto refused = peer_->Receive();
    ASSERT_TRUE(refused.has_value());
    EXPECT_EQ(refused->status(), ReplyStatus::kTryAgain);
  }
  EXPECT_EQ(peer_->Put("short", "value"), ReplyStatus::kOk);
  EXPECT_EQ(peer_->Get("short"), "value");
  EXPECT_FALSE(peer_->TryReceive().has_value());
  EXPECT_EQ(stats().tier_reads, 1u) << "of one record";
}

// As many as there are threads are under way, of different records.
TEST_F(TierGetTest, OfManyKeysReadWithHalfOfTheCreditsAtOnce) {
  constexpr uint32_t kReads = 64;
  constexpr uint16_t kCredits = 2 * kReads;
  Start(TierOptions().read_threads, kCredits);
  const std::vector<std::string> keys = PutOntoDisk(kCredits - 2);  // numbers for two are left
  HoldReads(true);
  for (const std::string& key : keys) ASSERT_TRUE(peer_->Send(GetHeader(key), key));
  for (size_t i = 0; i < keys.size() - kReads; ++i) {
    const auto refused = peer_->Receive();
    ASSERT_TRUE(refused.has_value());
    EXPECT_EQ(refused->status(), ReplyStatus::kTryAgain);
  }
  EXPECT_TRUE(StepUntil([] { return g_hanging == kReads; })) << g_hanging;
  EXPECT_EQ(peer_->Put("short", "value"), ReplyStatus::kOk);
  EXPECT_EQ(peer_->Get("short"), "value");
  EXPECT_FALSE(peer_->TryReceive().has_value());
  HoldReads(false);
  for (uint32_t i = 0; i < kReads; ++i) {
    const auto get = peer_->Receive();
    ASSERT_TRUE(get.has_value());
    EXPECT_EQ(get->status(), ReplyStatus::kOk);
    EXPECT_EQ(get->header.value_bytes, kValueBytes);
  }
  EXPECT_EQ(stats().tier_reads, kReads);
}

// A request that is not answered bounds the numbers of those that may follow it. So a read that
// hangs must not keep it, or nothing else of its session would be answered.
TEST_F(TierGetTest, ThatHangGiveTheirNumbersBack) {
  Start();
  const std::string key = PutOntoDisk();
  HoldReads(true);
  ASSERT_TRUE(peer_->Send(GetHeader(key), key));
  ASSERT_TRUE(StepUntil([] { return g_hanging == 1; }));
  const uint32_t credits = peer_->grant().credits;
  for (uint32_t i = 1; i < credits / 2; ++i) EXPECT_EQ(peer_->Put("a", "b"), ReplyStatus::kOk);
  Pass(kNsPerSecond);
  EXPECT_FALSE(peer_->TryReceive().has_value()) << "there are numbers for others";
  EXPECT_EQ(peer_->Put("a", "b"), ReplyStatus::kOk);
  EXPECT_FALSE(peer_->TryReceive().has_value()) << "it may be done any moment";
  Pass(kNsPerSecond);
  const auto ended = peer_->TryReceive();
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->status(), ReplyStatus::kTryAgain);
  for (uint32_t i = 0; i < 2 * credits; ++i) EXPECT_EQ(peer_->Put("a", "b"), ReplyStatus::kOk);
  // It asks again, and joins the read.
  ASSERT_TRUE(peer_->Send(GetHeader(key), key));
  ASSERT_TRUE(StepUntil([this] { return stats().tier_reads_joined == 1; }));
  HoldReads(false);
  const auto get = peer_->Receive();
  ASSERT_TRUE(get.has_value());
  EXPECT_EQ(get->status(), ReplyStatus::kOk);
  EXPECT_EQ(stats().tier_reads, 1u);
  EXPECT_TRUE(StepUntil([this] { return busy() == 0; })) << "nobody has the read's memory";
}

// APPEND and PREPEND need the value. Their client sends them again when it is in memory.
TEST_F(TierGetTest, BringWhatAWriteNeeds) {
  Start();
  const std::string key = PutOntoDisk();
  RequestHeader header = peer_->Header(Opcode::kAppend);
  header.key_bytes = static_cast<uint16_t>(key.size());
  header.value_bytes = 1;
  auto appended = peer_->Call(header, key, "+");
  EXPECT_EQ(appended->status(), ReplyStatus::kTryAgain);
  EXPECT_EQ(appended->header.words[kPutOffMsWord], 1u);
  ASSERT_TRUE(StepUntil([this] { return busy() == 0; }));
  const ReadOutcome brought = Look(key);
  EXPECT_FALSE(brought.on_disk.has_value());
  EXPECT_EQ(brought.version, version_) << "nothing has changed yet";
  header.flags |= kSentAgain;
  header.sequence = peer_->next_sequence++;
  appended = peer_->Call(header, key, "+");
  ASSERT_EQ(appended->status(), ReplyStatus::kOk);
  std::string value(kRoom, '\0');
  const ReadOutcome whole =
      store().Get(key, std::as_writable_bytes(std::span(value)), now().server_time);
  EXPECT_EQ(value.substr(0, whole.value_bytes), ValueOf(key) + "+");
}

// No value on the disk is as short as a number.
TEST_F(TierGetTest, HaveNoNumbers) {
  Start();
  const std::string key = PutOntoDisk();
  RequestHeader header = peer_->Header(Opcode::kIncrement);
  const CounterOperands operands{.delta = 1, .initial = 0};
  header.key_bytes = static_cast<uint16_t>(key.size());
  header.value_bytes = sizeof(operands);
  const auto counted =
      peer_->Call(header, key, {reinterpret_cast<const char*>(&operands), sizeof(operands)});
  EXPECT_EQ(counted->status(), ReplyStatus::kNotANumber);
  EXPECT_EQ(stats().tier_reads, 0u);
}

TEST_F(TierGetTest, OfAConnectionThatGoesLeaveNothing) {
  Start();
  const std::string key = PutOntoDisk();
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(peer_->Send(GetHeader(key), key));
  ASSERT_TRUE(StepUntil([this] { return busy() > 0; }));
  EXPECT_TRUE(peer_->CloseAlone());
  EXPECT_TRUE(StepUntil([this] { return busy() == 0 && stats().connections == 0; }));
}

// A value that is replaced while its GET waits. Both answers are right; this one is newer.
TEST_F(TierGetTest, FindsWhatReplacedADamagedOne) {
  Start();
  const std::string key = PutOntoDisk();
  TierPlace place = place_;
  place.position += kTierRecordAlignment;
  PutStub("other", place);
  ASSERT_TRUE(peer_->Send(GetHeader("other"), "other"));
  ASSERT_TRUE(StepUntil([this] { return busy() > 0; }));
  ASSERT_EQ(server().writes().Put("other", "new", {}, {}, now().server_time).outcome.status,
            ReplyStatus::kOk);
  const auto get = peer_->Receive();
  ASSERT_TRUE(get.has_value());
  ASSERT_EQ(get->status(), ReplyStatus::kOk);
  EXPECT_EQ(get->header.value_bytes, 3u);
  EXPECT_EQ(std::memcmp(peer_->lent().data(), "new", 3), 0);
}

}  // namespace
}  // namespace gannet
