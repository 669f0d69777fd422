// What a session knows of its server's rails, and the READs that move from one to another.

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "client/session/client_connections.h"
#include "client/session/kept_reads.h"
#include "client/session/request_rails.h"
#include "client/session/request_window.h"
#include "client/session/send_chain.h"
#include "client/session/server_rails.h"
#include "tests/common/protocol/example_rails.h"

namespace gannet {
namespace {

constexpr uint32_t kAll = kRailsMax;

std::vector<std::string> Texts(const ServerRails& rails) {
  std::vector<std::string> texts;
  for (const SocketAddress& it : rails.Addresses()) texts.push_back(it.ToString());
  return texts;
}

class ServerRailsTest : public ::testing::Test {
 protected:
  ServerRailsTest() { rails_.Restart(NumericAddress("10.0.9.9", 1).value(), /*asked=*/true); }
  ServerRails rails_;
};

TEST_F(ServerRailsTest, HasOneUntilTheServerTells) {
  EXPECT_TRUE(rails_.awaited());
  EXPECT_FALSE(rails_.several());
  EXPECT_EQ(Texts(rails_), (std::vector<std::string>{"10.0.9.9:1"}));
}

TEST_F(ServerRailsTest, TheFirstConnectionsRailComesFirst) {
  rails_.Learn(kExampleRails, kAll);
  EXPECT_FALSE(rails_.awaited());
  EXPECT_TRUE(rails_.several());
  EXPECT_EQ(Texts(rails_), (std::vector<std::string>{"10.0.1.1:7471", "10.0.0.1:7471"}));
}

TEST_F(ServerRailsTest, WhatIsToldAgainLeavesTheRest) {
  rails_.Learn(kExampleRails, kAll);
  rails_[0].works = 7;
  RailsReply again = kExampleRails;
  again.rails[1].state = static_cast<uint8_t>(RailState::kUp);
  rails_.Learn(again, kAll);
  EXPECT_EQ(rails_.size(), 2u);
  EXPECT_EQ(rails_[0].works, 7u);
  EXPECT_EQ(rails_[0].entry.state, static_cast<uint8_t>(RailState::kUp));
}

TEST_F(ServerRailsTest, UsesNoMoreThanWanted) {
  rails_.Learn(kExampleRails, 1);
  EXPECT_FALSE(rails_.several());
  EXPECT_FALSE(rails_.awaited());
}

TEST_F(ServerRailsTest, AServerThatTellsNoneHasOne) {
  rails_.Learn(RailsReply{}, kAll);
  EXPECT_FALSE(rails_.several());
  EXPECT_FALSE(rails_.awaited());
}

TEST_F(ServerRailsTest, AnAddressMayBeOfIpVersionSix) {
  RailsReply told = kExampleRails;
  told.rails[0].address = {0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 7};
  rails_.Learn(told, kAll);
  EXPECT_EQ(Texts(rails_).back(), "[fd00::7]:7471");
}

TEST_F(ServerRailsTest, WhatWasReachedOnceIsKnownAfterTheNextFirstConnection) {
  rails_.Learn(kExampleRails, kAll);
  EXPECT_TRUE(rails_[0].reached) << "the first connection's";
  EXPECT_FALSE(rails_[1].reached);
  rails_[1].reached = true;
  rails_.Restart(rails_[1].address, /*asked=*/true);
  RailsReply told = kExampleRails;
  told.own_rail = 0;
  rails_.Learn(told, kAll);
  EXPECT_TRUE(rails_[1].reached);
}

QueuedRead ReadOf(uint32_t op) {
  return {.local = nullptr, .offset = 16 * op, .op = op, .bytes = 64, .keys = nullptr};
}

TEST(KeptReadsTest, GivesBackWhatWasNotCompletedInTheOrderOfPosting) {
  InFlightWork works(8);
  KeptReads kept;
  kept.Restart(works.room());
  const auto post = [&](uint32_t op) {
    kept.Keep(works.posted(), ReadOf(op), {});
    works.Push({op, InFlightWork::Kind::kRead});
  };
  const auto complete = [&](uint32_t position) {
    EXPECT_TRUE(works.Complete(position, [](auto, bool) {}));
  };
  for (uint32_t op = 0; op < 6; ++op) post(op);
  works.Push({0, InFlightWork::Kind::kMessage});
  complete(3);
  for (uint32_t op = 6; op < 9; ++op) post(op);  // in places that were used before
  const MemoryKeys keys;
  const LocalPiece pieces[] = {{1, 2, &keys}, {3, 4, &keys}};
  kept.Keep(works.posted(), ReadOf(9), pieces);
  works.Push({9, InFlightWork::Kind::kRead});
  std::vector<uint32_t> ops;
  size_t pieces_of_last = 0;
  kept.TakeUnfinished(works, [&](const KeptReads::Read& read) {
    ops.push_back(read.read.op);
    EXPECT_EQ(read.read.offset, 16 * read.read.op);
    pieces_of_last = read.pieces.size();
  });
  EXPECT_EQ(ops, (std::vector<uint32_t>{4, 5, 6, 7, 8, 9})) << "without the message";
  EXPECT_EQ(pieces_of_last, 2u);
}

TEST(RailReadsTest, AReadHasTheKeysOfItsConnection) {
  ClientConnection first;
  ClientConnection other;
  first.work = other.work = InFlightWork(8);
  other.domain = 1;
  other.region_rkey = 70;
  other.op_lkey = 30;
  SendChain chain(SendChain::kMax);
  chain.SetRegion(1000, 7, 3);
  const MemoryKeys lent = {.lkeys = {9, 90}, .rkeys = {}};
  chain.Open(&other);
  chain.AllowReadByKeys();
  chain.AddRead(ReadOf(1));
  EXPECT_FALSE(chain.TakesRead()) << "one at a time";
  chain.AllowReadByKeys();
  QueuedRead into_lent = ReadOf(2);
  into_lent.keys = &lent;
  chain.AddRead(into_lent);
  EXPECT_EQ(chain.request(0).wr.rdma.rkey, 70u);
  EXPECT_EQ(chain.request(0).sg_list->lkey, 30u);
  EXPECT_EQ(chain.request(1).wr.rdma.rkey, 70u);
  EXPECT_EQ(chain.request(1).sg_list->lkey, 90u);
  chain.Clear();
  first.region_rkey = 7;
  first.op_lkey = 3;
  chain.Open(&first);
  chain.AllowReadByKeys();
  chain.AddRead(ReadOf(3));
  EXPECT_EQ(chain.request(0).wr.rdma.rkey, 7u);
  EXPECT_EQ(chain.request(0).sg_list->lkey, 3u);
}

// Three connections: two by the first rail, one by another.
class RequestRailsTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kMegabyte = 1 << 20;

  RequestRailsTest() {
    for (const uint32_t rail : {0, 0, 1}) {
      ClientConnection& it = connections_.Add(nullptr);
      it.phase = ClientConnection::Phase::kReady;
      it.rail = it.domain = rail;
      it.work = InFlightWork(64);
    }
    window_.Restart(RequestWindow::kCreditsMax);
    rails_.Use();
  }
  static RequestHeader PutOf(uint32_t value_bytes) {
    RequestHeader header{};
    header.opcode = static_cast<uint8_t>(Opcode::kPut);
    header.value_bytes = value_bytes;
    return header;
  }
  // Sends it, and returns the index of its connection.
  uint32_t Send(const RequestHeader& header, bool to_first = false) {
    ClientConnection* const to = rails_.Choose(header, to_first, window_);
    if (to == nullptr) return RequestRails::kNowhere;
    const RequestWindow::Entry& entry = window_.Begin({.sequence = window_.next(), .op = 1});
    rails_.OnSent(window_.IndexOf(entry.sequence), entry.sequence, header, *to);
    to->work.Push({0, InFlightWork::Kind::kMessage});
    return to->index;
  }
  void Answer(uint64_t sequence) { window_.End(*window_.Find(sequence)); }
  RequestRails::Sent& SentOf(uint64_t sequence) {
    return *rails_.Find(window_.IndexOf(sequence), sequence);
  }

  ClientConnections connections_;
  RequestRails rails_{&connections_};
  RequestWindow window_;
};

TEST_F(RequestRailsTest, LongValuesTakeTheRailsInTurn) {
  EXPECT_EQ(Send(PutOf(kMegabyte)), 0u);
  EXPECT_EQ(Send(PutOf(kMegabyte)), 2u) << "one connection of each rail carries requests";
  EXPECT_EQ(Send(PutOf(2 * kMegabyte)), 2u) << "neither has less, so it stays";
  EXPECT_EQ(Send(PutOf(kMegabyte)), 0u);
  Answer(2);
  Answer(3);
  EXPECT_EQ(Send(PutOf(100)), 2u);
}

TEST_F(RequestRailsTest, SmallRequestsStayTogetherUntilTheyAreMany) {
  uint32_t together = 0;
  while (together < 60 && Send(PutOf(100)) == 0) ++together;
  EXPECT_EQ(together, 25u);  // each is 164 bytes, and these are more than 4096
  EXPECT_EQ(Send(PutOf(100)), 2u);
}

TEST_F(RequestRailsTest, AGetCountsWhatMayBeWrittenForIt) {
  RequestHeader get{};
  get.opcode = static_cast<uint8_t>(Opcode::kGet);
  get.flags = kValueInBuffer;
  get.get.buffer_bytes = kMegabyte;
  EXPECT_EQ(Send(get), 0u);
  EXPECT_EQ(Send(get), 2u);
}

TEST_F(RequestRailsTest, LocksAndOwnQuestionsGoByTheFirst) {
  EXPECT_EQ(Send(PutOf(kMegabyte)), 0u);
  RequestHeader lock{};
  lock.opcode = static_cast<uint8_t>(Opcode::kLock);
  EXPECT_EQ(Send(lock), 0u);
  RequestHeader under_lock = PutOf(100);
  under_lock.flags = kUnderLock | kOnlyIfVersion;
  EXPECT_EQ(Send(under_lock), 0u);
  EXPECT_EQ(Send(PutOf(100), /*to_first=*/true), 0u);
  EXPECT_EQ(Send(PutOf(100)), 2u);
}

TEST_F(RequestRailsTest, AConnectionThatIsOverOrFullCarriesNone) {
  EXPECT_EQ(Send(PutOf(kMegabyte)), 0u);
  EXPECT_EQ(Send(PutOf(100)), 2u);
  connections_[2].phase = ClientConnection::Phase::kOver;
  EXPECT_EQ(Send(PutOf(100)), 0u);
  EXPECT_EQ(rails_.Other(0), nullptr);
  connections_[2].phase = ClientConnection::Phase::kReady;
  while (connections_[0].work.room() > 0)
    connections_[0].work.Push({0, InFlightWork::Kind::kMessage});
  EXPECT_EQ(Send(PutOf(100)), 2u);
  EXPECT_EQ(rails_.Other(0), &connections_[2]);
  EXPECT_EQ(rails_.Other(2), nullptr);
}

TEST_F(RequestRailsTest, AnEarlierRequestOfThePlaceIsNotFound) {
  Send(PutOf(100));
  EXPECT_EQ(SentOf(1).connection, 0u);
  EXPECT_EQ(rails_.Find(window_.IndexOf(1), 1 + RequestWindow::kCreditsMax), nullptr);
  rails_.Forget();
  EXPECT_EQ(rails_.Find(window_.IndexOf(1), 1), nullptr);
}

// Its device may still send the buffer, and each connection has a receive for one answer to it.
TEST_F(RequestRailsTest, WhatWasGivenUpEndsWhenBothAreAnswered) {
  ReplyHeader told{};
  told.opcode = static_cast<uint8_t>(Opcode::kRails);
  const ReplyHeader answer{.opcode = static_cast<uint8_t>(Opcode::kPut)};
  Send(PutOf(100));
  EXPECT_TRUE(RequestRails::EndsBy(answer, SentOf(1))) << "nobody was told";
  for (const auto& [first, second] : {std::pair{told, told}, {answer, told}, {told, answer}}) {
    SentOf(1) = {.sequence = 1, .connection = 0, .told_by = 2};
    EXPECT_FALSE(RequestRails::EndsBy(first, SentOf(1)));
    EXPECT_TRUE(SentOf(1).server_knows);
    EXPECT_TRUE(RequestRails::EndsBy(second, SentOf(1)));
  }
  EXPECT_FALSE(rails_.WasSent(SentOf(1)));
  connections_[0].work.Complete(SentOf(1).position, [](auto, bool) {});
  EXPECT_TRUE(rails_.WasSent(SentOf(1)));
}

TEST_F(RequestRailsTest, WhatIsUnderWayIsAnsweredLaterOrLost) {
  ReplyHeader told{};
  told.opcode = static_cast<uint8_t>(Opcode::kRails);
  told.status = static_cast<uint8_t>(ReplyStatus::kTryAgain);
  Send(PutOf(100));
  SentOf(1).told_by = 2;
  EXPECT_FALSE(RequestRails::EndsBy(told, SentOf(1)));
  EXPECT_FALSE(SentOf(1).server_knows);
  EXPECT_TRUE(RequestRails::EndsBy({.opcode = static_cast<uint8_t>(Opcode::kPut)}, SentOf(1)));
}

// Its own connection is flushed when the answer comes, so what told of it stands for it, and the
// server still executes it.
TEST_F(RequestRailsTest, WhatIsUnderWayAfterItsConnectionIsGivenUpAnew) {
  ReplyHeader told{};
  told.opcode = static_cast<uint8_t>(Opcode::kRails);
  told.status = static_cast<uint8_t>(ReplyStatus::kTryAgain);
  Send(PutOf(100));
  SentOf(1).connection = 2;
  EXPECT_FALSE(RequestRails::EndsBy(told, SentOf(1)));
  EXPECT_EQ(SentOf(1).connection, RequestRails::kNowhere);
  told.status = static_cast<uint8_t>(ReplyStatus::kOk);
  EXPECT_TRUE(RequestRails::EndsBy(told, SentOf(1)));
}

}  // namespace
}  // namespace gannet
