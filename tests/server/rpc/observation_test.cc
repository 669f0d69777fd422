// What people see of a server: clients' reports, the list of connections, requests that took long.

#include <cstring>
#include <string>
#include <vector>

#include "common/protocol/client_report.h"
#include "common/protocol/list_entries.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/rpc/raw_peer.h"
#include "tests/server/rpc/server_fixture.h"

namespace gannet {
namespace {

template <class Entry>
std::vector<Entry> EntriesOf(const RawPeer::Reply& reply) {
  std::vector<Entry> entries(reply.value.size() / sizeof(Entry));
  std::memcpy(entries.data(), reply.value.data(), entries.size() * sizeof(Entry));
  return entries;
}

class ObservationTest : public ServerTest {
 protected:
  void SetUp() override {
    StartServer([](Server::Options* options) {
      options->silence_ms = 60'000;
      options->slow_ns = 1;  // every request is slow
    });
    peer_.emplace(this);
    ASSERT_TRUE(peer_->Connect());
  }
  void TearDown() override {
    peer_.reset();
    ServerTest::TearDown();
  }
  RawPeer::Reply Call(const RequestHeader& header, std::string_view key = "",
                      std::string_view value = "") {
    return peer_->Call(header, key, value).value();
  }
  RawPeer::Reply Report(const ClientCounts& counts, const std::vector<LatencyCount>& latencies) {
    std::string report(reinterpret_cast<const char*>(&counts), sizeof(counts));
    for (const LatencyCount& it : latencies) {
      report.append(reinterpret_cast<const char*>(&it.word), sizeof(it.word));
    }
    RequestHeader header = peer_->Header(Opcode::kHeartbeat);
    header.heartbeat.report_bytes = header.value_bytes = static_cast<uint32_t>(report.size());
    return Call(header, "", report);
  }
  const WorkerCounters& counters() { return server().workers()[0]->counters(); }

  std::optional<RawPeer> peer_;
};

TEST_F(ObservationTest, TheGrantAsksForReports) {
  EXPECT_NE(peer_->grant().features & kGrantTakesReports, 0);
}

TEST_F(ObservationTest, ReportsAddUp) {
  const size_t bucket = LatencyBucket::Of(9000);
  const ClientCounts counts = {.hits = 90, .misses = 10, .reads = 101, .by_rpc = 2};
  EXPECT_EQ(Report(counts, {LatencyCount::Of(LatencyKind::kGet, bucket, 5)}).status(),
            ReplyStatus::kOk);
  EXPECT_EQ(Report(counts, {}).status(), ReplyStatus::kOk);
  EXPECT_EQ(counters().client_hits.value(), 180u);
  EXPECT_EQ(counters().client_misses.value(), 20u);
  EXPECT_EQ(counters().client_reads.value(), 202u);
  EXPECT_EQ(counters().client_gets_by_rpc.value(), 4u);
  EXPECT_EQ(counters().client_latencies[0][bucket].value(), 5u);
}

TEST_F(ObservationTest, AReportThatCannotBeIsRefusedAndCountsNothing) {
  EXPECT_EQ(Report({.hits = UINT64_MAX}, {}).status(), ReplyStatus::kInvalidArgument);
  EXPECT_EQ(Report({.hits = 1}, {LatencyCount(0)}).status(), ReplyStatus::kInvalidArgument);
  EXPECT_EQ(counters().client_hits.value(), 0u);
  EXPECT_EQ(stats().refused_requests, 2u);
}

// The server hears of the disconnect before it reads what was sent.
TEST_F(ObservationTest, TheLastReportOfAClientThatDisconnectsCounts) {
  const ClientCounts counts = {.hits = 3, .misses = 2, .reads = 8};
  const std::string_view report(reinterpret_cast<const char*>(&counts), sizeof(counts));
  RequestHeader header = peer_->Header(Opcode::kHeartbeat);
  header.heartbeat.report_bytes = header.value_bytes = sizeof(counts);
  ASSERT_TRUE(peer_->Send(header, "", report));
  ASSERT_TRUE(peer_->WaitSent());
  ASSERT_TRUE(peer_->CloseAlone());
  peer_.reset();
  ASSERT_TRUE(StepUntil([this] { return stats().connections == 0; }));
  EXPECT_EQ(counters().client_hits.value(), 3u);
  EXPECT_EQ(counters().client_misses.value(), 2u);
  EXPECT_EQ(counters().client_reads.value(), 8u);
}

TEST_F(ObservationTest, ListsConnectionsWithWhatTheirClientsDo) {
  ASSERT_EQ(peer_->Put("key", "value"), ReplyStatus::kOk);
  Report({.hits = 7, .misses = 1, .reads = 9}, {LatencyCount::Of(LatencyKind::kGet, 20, 5)});
  Pass(25 * kNsPerSecond);  // the worker publishes a few times within the time of silence
  const auto entries = EntriesOf<ClientEntry>(Call(peer_->Header(Opcode::kListClients)));
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_THAT(std::string(entries[0].peer), testing::HasSubstr(":"));
  EXPECT_EQ(entries[0].session_id, peer_->grant().session_id);
  EXPECT_EQ(entries[0].connection_id, peer_->grant().connection_id);
  EXPECT_EQ(entries[0].hits, 7u);
  EXPECT_EQ(entries[0].misses, 1u);
  EXPECT_EQ(entries[0].reads, 9u);
  EXPECT_EQ(entries[0].requests, 1u);
  EXPECT_EQ(entries[0].last_opcode, static_cast<uint8_t>(Opcode::kPut));
  EXPECT_EQ(entries[0].get_p99_ns, LatencyBucket::EndNs(20));
}

TEST_F(ObservationTest, AListThatIsLongerThanAMessageComesInParts) {
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (int i = 0; i < 40; ++i) {
    peers.push_back(std::make_unique<RawPeer>(this));
    ASSERT_TRUE(peers.back()->Connect());
  }
  Pass(25 * kNsPerSecond);
  RequestHeader header = peer_->Header(Opcode::kListClients);
  const RawPeer::Reply first = Call(header);
  ASSERT_NE(first.header.list.next, 0u);
  header = peer_->Header(Opcode::kListClients);
  header.list.position = first.header.list.next;
  const RawPeer::Reply rest = Call(header);
  EXPECT_EQ(rest.header.list.next, 0u);
  EXPECT_EQ((first.value.size() + rest.value.size()) / sizeof(ClientEntry), 41u);
  header = peer_->Header(Opcode::kListClients);
  header.list.position = UINT64_MAX;
  EXPECT_TRUE(Call(header).value.empty());
}

TEST_F(ObservationTest, RemembersSlowRequestsTheNewestFirst) {
  ASSERT_EQ(peer_->Put("first", "value"), ReplyStatus::kOk);
  ASSERT_EQ(peer_->Put(std::string(100, 'k'), "value"), ReplyStatus::kOk);
  const auto entries = EntriesOf<SlowEntry>(Call(peer_->Header(Opcode::kSlowLog)));
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].key_bytes, 100u);
  EXPECT_EQ(std::string(entries[0].key, sizeof(entries[0].key)), std::string(64, 'k'));
  EXPECT_EQ(std::string(entries[1].key), "first");
  EXPECT_EQ(entries[1].opcode, static_cast<uint8_t>(Opcode::kPut));
  EXPECT_EQ(entries[1].value_bytes, 5u);
  EXPECT_EQ(entries[1].session_id, peer_->grant().session_id);
}

TEST(SlowLogTest, ForgetsTheOldest) {
  SlowLog log(1000, MachineClocks().boot);
  EXPECT_TRUE(log.IsSlow(1000));
  EXPECT_FALSE(log.IsSlow(999));
  for (uint32_t i = 0; i < SlowLog::kEntriesMax + 5; ++i) {
    log.Add(MakeSlowEntry({}, "key", "peer", int64_t{i} * kNsPerUs));
  }
  const std::vector<SlowEntry> entries = log.Entries();
  ASSERT_EQ(entries.size(), SlowLog::kEntriesMax);
  EXPECT_EQ(entries.front().us, SlowLog::kEntriesMax + 4);
  EXPECT_EQ(entries.back().us, 5u);
  EXPECT_EQ(log.count(), SlowLog::kEntriesMax + 5);
}

}  // namespace
}  // namespace gannet
