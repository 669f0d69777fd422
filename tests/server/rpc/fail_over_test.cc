// Exactly-once across a fail-over. The server is a primary whose stream the test keeps. It dies,
// and another one takes over: it has any part of the stream that has what is committed, and the
// sessions that this part tells of. The clients come back, and send again what was not answered.

#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "server/rpc/adopt_sessions.h"
#include "server/rpc/waiting_replies.h"
#include "server/sessions/session/session_copies.h"
#include "softverbs/tests/support/test_seed.h"
#include "tests/server/rpc/kept_stream.h"
#include "tests/server/rpc/raw_peer.h"
#include "tests/server/rpc/server_fixture.h"

namespace gannet {
namespace {

// A request, and what its client was told.
struct Request {
  Opcode opcode;
  uint8_t flags = 0;
  std::string key, value;
  uint64_t sequence = 0;
  bool sent = false;
  std::optional<ReplyHeader> told;
};

// One client's items, if its requests are executed in their order, each once.
class Expected {
 public:
  // Looks at the next request and what was told. Returns what is wrong, or nothing.
  std::string Check(const Request& request) {
    const auto status = static_cast<ReplyStatus>(request.told->status);
    const auto item = items_.find(request.key);
    const bool there = item != items_.end();
    // It may be answered before the writes ahead of it are published.
    if (request.opcode == Opcode::kGet) return "";
    if (status == ReplyStatus::kIndexFull) {
      // It was undone, with all that was decided behind it.
      return there ? "undone, although the item was there" : "";
    }
    const ReplyStatus expected = StatusOf(request, there, there ? item->second : "");
    if (status != expected) {
      return "status " + std::to_string(static_cast<int>(status)) + " instead of " +
             std::to_string(static_cast<int>(expected));
    }
    if (status != ReplyStatus::kOk) return "";
    std::string& value = items_[request.key];
    switch (request.opcode) {
      case Opcode::kDelete:
        items_.erase(request.key);
        return "";
      case Opcode::kAppend:
        value += request.value;
        return "";
      case Opcode::kIncrement: {
        int64_t number = 0;
        if (there) std::from_chars(value.data(), value.data() + value.size(), number);
        value = std::to_string(++number);
        const int64_t told = request.told->increment.number;
        return told == number ? "" : "another number: " + std::to_string(told);
      }
      default:
        value = request.value;
        return "";
    }
  }
  const std::map<std::string, std::string>& items() const { return items_; }

 private:
  static ReplyStatus StatusOf(const Request& request, bool there, const std::string& value) {
    if ((request.flags & kOnlyIfAbsent) != 0 && there) return ReplyStatus::kExists;
    if ((request.flags & kOnlyIfPresent) != 0 && !there) return ReplyStatus::kNotFound;
    if (request.opcode == Opcode::kDelete && !there) return ReplyStatus::kNotFound;
    if (request.opcode != Opcode::kIncrement || !there) return ReplyStatus::kOk;
    int64_t number = 0;
    std::from_chars(value.data(), value.data() + value.size(), number);
    return std::to_string(number) == value ? ReplyStatus::kOk : ReplyStatus::kNotANumber;
  }

  std::map<std::string, std::string> items_;
};

constexpr size_t kInFlight = 8;

// A client with one session. It never waits before it has kInFlight requests under way.
struct Client {
  std::unique_ptr<RawPeer> peer;
  uint64_t token = 0;
  std::deque<Request> requests;  // all that it made
  size_t told = 0;               // all before this one were told

  bool Connect(SteppedServer* driver) {
    peer = std::make_unique<RawPeer>(driver);
    ConnectRequest request = NewConnectRequest();
    request.session_token = token;
    if (!peer->Connect(request)) return false;
    token = peer->grant().session_token;
    for (Request& unanswered : requests) unanswered.sent = unanswered.told.has_value();
    return true;
  }
  bool done(size_t of) const { return requests.size() == of && told == of; }
  void SendNext() {
    for (size_t i = told; i < requests.size(); ++i) {
      if (!requests[i].sent) return Send(&requests[i]);
    }
  }
  void Send(Request* request) {
    RequestHeader header{};
    header.opcode = static_cast<uint8_t>(request->opcode);
    header.flags = request->flags;
    header.sequence = request->sequence;
    header.key_bytes = static_cast<uint16_t>(request->key.size());
    const CounterOperands operands = {.delta = 1, .initial = 0};
    std::string value = request->value;
    if (request->opcode == Opcode::kIncrement) {
      value.assign(reinterpret_cast<const char*>(&operands), sizeof(operands));
    }
    header.value_bytes = static_cast<uint32_t>(value.size());
    request->sent = peer->Send(header, request->key, value);
  }
  void Receive() {
    while (const auto reply = peer->TryReceive()) {
      const uint64_t index = reply->header.sequence - requests.front().sequence;
      ASSERT_LT(index, requests.size());
      Request& request = requests[index];
      if (reply->status() == ReplyStatus::kTryAgain) {
        request.sent = false;
      } else {
        request.told = reply->header;
      }
    }
    while (told < requests.size() && requests[told].told) ++told;
  }
};

// A group of which one member at a time is a primary.
class FailOverTest : public ServerTest {
 protected:
  static constexpr size_t kDefaultIndex = 0;

  // Starts a server that has the first `records` of the stream, and these sessions.
  void Start(size_t records, const std::vector<SessionCopy>& sessions,
             uint64_t index_slots = kDefaultIndex) {
    StartServer([&](Server::Options* options) {
      options->streams_sessions = true;
      options->index_slots = index_slots;
      options->index_grows = false;
      options->workers = 2;
      options->memory_bytes = 8 << 20;
    });
    uint64_t version = 0;
    for (size_t i = 0; i < records; ++i) {
      const KeptStream::Record& record = stream_.log()[i];
      version = std::max({version, record.change.version, record.session.undone_by});
      if (!record.is_change) continue;
      ASSERT_EQ(server().store().Apply(record.Own(), now().server_time), ReplyStatus::kOk);
    }
    if (version > 0) server().store().BeginVersions(version + 1);
    if (index_slots != kDefaultIndex) FillIndex();
    stream_.TakeOver(records);
    server().AddConsumer(&stream_, ChangeStream::Need::kRequired);
    AdoptSessions(sessions, server().workers());
  }
  // Leaves room for a few of the clients' keys.
  void FillIndex() {
    const auto key = [](int i) { return "other" + std::to_string(i); };
    int items = 0;
    while (server().writes().Put(key(items), "", {}, {}, now().server_time).outcome.status ==
           ReplyStatus::kOk) {
      ++items;
    }
    for (int i = 0; i < 4; ++i) server().writes().Delete(key(i), {}, now().server_time);
  }
  // The primary dies, and a member that has the first `records` takes over.
  void FailOver(size_t records, bool joiner = false) {
    SessionCopies copies = joiner ? stream_.CopiesOfJoiner(records) : stream_.CopiesOf(records);
    copies.ForgetUndone();
    StopServer();  // what it still does is not in anybody's stream
    Start(records, copies.All());
  }
  void CommitAll() { stream_.Commit(stream_.log().size()); }
  std::optional<std::string> Seen(const std::string& key) {
    std::string value(64, '\0');
    const ReadOutcome read =
        server().store().Get(key, std::as_writable_bytes(std::span(value)), now().server_time);
    if (read.status != ReplyStatus::kOk) return std::nullopt;
    return value.substr(0, read.value_bytes);
  }

  KeptStream stream_;
};

// One run: clients with random requests, lost connections, and fail-overs.
class RandomRun {
 public:
  struct Primary {  // the test's own methods
    std::function<void(size_t records, bool joiner)> fail_over;
    std::function<std::optional<std::string>(const std::string&)> seen;
  };
  RandomRun(ServerTest* server, KeptStream* stream, Primary primary, uint64_t seed)
      : server_(server), stream_(stream), primary_(std::move(primary)), random_(seed) {}

  void Do() {
    clients_.resize(kClients);
    for (Client& client : clients_) ASSERT_TRUE(client.Connect(server_));
    stream_->Commit(stream_->log().size());  // from now on their sessions must not be lost
    while (!AllDone()) {
      ASSERT_NO_FATAL_FAILURE(DoSomething());
      server_->Step();
    }
    CheckAll();
  }
  size_t resent() const { return resent_; }
  size_t undone() const { return undone_; }
  size_t refused() const { return refused_; }

 private:
  static constexpr size_t kClients = 3;
  static constexpr size_t kRequests = 60;  // of each client
  static constexpr size_t kKeys = 30;

  uint64_t Below(uint64_t n) { return random_() % n; }
  bool AllDone() const {
    return std::ranges::all_of(clients_, [](const Client& c) { return c.done(kRequests); });
  }

  void DoSomething() {
    Client& client = clients_[Below(kClients)];
    const size_t records = stream_->log().size();
    switch (Below(64)) {
      case 0:
        if (fail_overs_++ < 3) FailOver();
        return;
      case 1:
        client.peer.reset();
        CountUnanswered(client);
        ASSERT_TRUE(client.Connect(server_));
        return;
      case 2:
        return stream_->Join();
      case 3:
        return stream_->Commit(records);
      default:
        break;
    }
    switch (Below(4)) {
      case 0:
        client.Receive();
        return;
      case 1:
        return stream_->Commit(stream_->committed() + Below(records - stream_->committed() + 1));
      default:
        if (client.requests.size() < kRequests &&
            client.requests.size() - client.told < kInFlight) {
          client.requests.push_back(NewRequest(&client - clients_.data(), client));
        }
        client.SendNext();
    }
  }

  Request NewRequest(ptrdiff_t of, const Client& client) {
    constexpr Opcode kOpcodes[] = {Opcode::kPut,       Opcode::kPut,    Opcode::kDelete,
                                   Opcode::kIncrement, Opcode::kAppend, Opcode::kGet};
    constexpr uint8_t kFlags[] = {0, kOnlyIfPresent, 0, kOnlyIfAbsent};
    Request request{.opcode = kOpcodes[Below(6)]};
    // Often the same key again.
    const uint64_t key = Below(2) == 0 ? client.requests.size() / 4 % kKeys : Below(kKeys);
    request.key = "c" + std::to_string(of) + "k" + std::to_string(key);
    request.sequence = 1 + client.requests.size();
    const bool writes = request.opcode != Opcode::kDelete && request.opcode != Opcode::kGet;
    if (writes) request.flags = kFlags[Below(request.opcode == Opcode::kPut ? 4 : 2)];
    if (writes && request.opcode != Opcode::kIncrement) request.value = std::to_string(Below(10));
    return request;
  }

  void CountUnanswered(const Client& client) {
    for (const Request& request : client.requests) resent_ += request.sent && !request.told;
  }

  void FailOver() {
    const bool joiner = stream_->joined() && Below(2) == 0;
    const size_t least =
        joiner ? std::max(stream_->committed(), stream_->joined_at()) : stream_->committed();
    const size_t records = least + Below(stream_->log().size() - least + 1);
    for (Client& client : clients_) {
      client.peer.reset();
      CountUnanswered(client);
    }
    ASSERT_NO_FATAL_FAILURE(primary_.fail_over(records, joiner));
    for (Client& client : clients_) {
      ASSERT_TRUE(client.Connect(server_)) << "the session was lost";
      EXPECT_EQ(client.peer->grant().resumed, 1);
    }
  }

  void CheckAll() {
    for (const Client& client : clients_) {
      Expected expected;
      for (const Request& request : client.requests) {
        const auto status = static_cast<ReplyStatus>(request.told->status);
        undone_ += status == ReplyStatus::kIndexFull;
        refused_ += status != ReplyStatus::kOk;
        const std::string wrong = expected.Check(request);
        EXPECT_EQ(wrong, "") << "request " << request.sequence << " of " << request.key
                             << ", opcode " << static_cast<int>(request.opcode);
        if (!wrong.empty()) return;
      }
      for (const Request& request : client.requests) {
        const auto item = expected.items().find(request.key);
        const auto seen = primary_.seen(request.key);
        EXPECT_EQ(seen.has_value(), item != expected.items().end()) << request.key;
        if (!seen || item == expected.items().end()) continue;
        EXPECT_EQ(*seen, item->second) << request.key;
      }
    }
  }

  ServerTest* const server_;
  KeptStream* const stream_;
  const Primary primary_;
  std::mt19937_64 random_;
  std::vector<Client> clients_;
  int fail_overs_ = 0;
  size_t resent_ = 0;
  size_t undone_ = 0;
  size_t refused_ = 0;
};

TEST_F(FailOverTest, EachRequestTakesEffectOnceAndInItsTurn) {
  const uint64_t first = test_support::TestSeed();
  size_t resent = 0, undone = 0, refused = 0;
  for (uint64_t seed = first; seed < first + 24; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    // In most runs the first server's index gets full, so that it undoes writes.
    stream_.TakeOver(0);
    Start(0, {}, seed % 4 == 0 ? kDefaultIndex : 64);
    RandomRun run(this, &stream_,
                  {.fail_over = [this](size_t records, bool joiner) { FailOver(records, joiner); },
                   .seen = [this](const std::string& key) { return Seen(key); }},
                  seed);
    run.Do();
    StopServer();
    resent += run.resent();
    undone += run.undone();
    refused += run.refused();
    if (HasFailure()) return;
  }
  EXPECT_GT(resent, 100u);
  EXPECT_GT(undone, 10u);
  EXPECT_GT(refused, 200u);
  RecordProperty("resent", static_cast<int>(resent));
  RecordProperty("undone", static_cast<int>(undone));
}

TEST_F(FailOverTest, AStepOfAFlushIsNotExecutedAgainAfterALaterPut) {
  Start(0, {});
  Client client;
  ASSERT_TRUE(client.Connect(this));
  RequestHeader flush = client.peer->Header(Opcode::kFlush);
  ASSERT_TRUE(client.peer->Send(flush));
  ASSERT_TRUE(client.peer->Receive());
  RequestHeader put = client.peer->Header(Opcode::kPut);
  put.key_bytes = put.value_bytes = 1;
  ASSERT_TRUE(client.peer->Send(put, "k", "v"));
  ASSERT_TRUE(StepUntil([this] { return stream_.log().back().is_change; }));
  client.peer.reset();  // both answers are lost
  FailOver(stream_.log().size());
  ASSERT_TRUE(client.Connect(this));
  EXPECT_EQ(client.peer->Call(flush)->status(), ReplyStatus::kOk);
  EXPECT_EQ(client.peer->Call(put, "k", "v")->status(), ReplyStatus::kOk);
  EXPECT_EQ(Seen("k"), "v");
}

// The refusal waits for the deletion that it tells of, and the PUT is decided meanwhile.
TEST_F(FailOverTest, ARefusalThatWaitsIsNotExecutedAgainAfterALaterPut) {
  Start(0, {});
  Client client;
  ASSERT_TRUE(client.Connect(this));
  client.requests = {{.opcode = Opcode::kPut, .key = "k", .value = "1", .sequence = 1},
                     {.opcode = Opcode::kDelete, .key = "k", .value = "", .sequence = 2},
                     {.opcode = Opcode::kDelete, .key = "k", .value = "", .sequence = 3},
                     {.opcode = Opcode::kPut, .key = "k", .value = "2", .sequence = 4}};
  for (int i = 0; i < 4; ++i) client.SendNext();
  const auto puts = [this] {
    return std::ranges::count_if(stream_.log(), [](const KeptStream::Record& record) {
      return record.is_change && record.change.kind == Change::Kind::kPut;
    });
  };
  ASSERT_TRUE(StepUntil([&] { return puts() == 2; }));
  client.Receive();
  EXPECT_EQ(client.told, 0u) << "nothing is committed";
  client.peer.reset();
  FailOver(stream_.log().size());
  ASSERT_TRUE(client.Connect(this));
  for (int i = 0; i < 4; ++i) client.SendNext();
  ASSERT_TRUE(StepUntil([&] {
    CommitAll();
    client.Receive();
    return client.done(4);
  }));
  EXPECT_EQ(client.requests[1].told->status, static_cast<uint8_t>(ReplyStatus::kOk));
  EXPECT_EQ(client.requests[2].told->status, static_cast<uint8_t>(ReplyStatus::kNotFound));
  EXPECT_EQ(Seen("k"), "2");
}

// A client gives its writes up while nothing is committed, and loses its connection. Then it has
// all credits again, and the next number says that the writes are over.
TEST_F(FailOverTest, WhatAClientGaveUpWithItsConnectionDoesNotHoldItUp) {
  Start(0, {});
  Client client;
  ASSERT_TRUE(client.Connect(this));
  const uint16_t credits = client.peer->grant().credits;
  const auto put = [&](uint64_t sequence, std::string_view value) {
    RequestHeader header{};
    header.opcode = static_cast<uint8_t>(Opcode::kPut);
    header.sequence = sequence;
    header.key_bytes = header.value_bytes = 1;
    return client.peer->Send(header, "k", value);
  };
  const auto puts = [this] {
    return std::ranges::count_if(stream_.log(),
                                 [](const auto& record) { return record.is_change; });
  };
  ASSERT_TRUE(put(1, "1") && put(2, "2"));
  ASSERT_TRUE(StepUntil([&] { return puts() == 2; }));
  ASSERT_TRUE(client.Connect(this));
  ASSERT_TRUE(put(credits + 2, "3"));
  ASSERT_TRUE(StepUntil([&] {
    client.peer->Poll();
    return puts() == 3 || client.peer->broken();
  }));
  ASSERT_FALSE(client.peer->broken());
  CommitAll();
  const auto reply = client.peer->Receive();
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->header.sequence, credits + 2u);
  EXPECT_EQ(reply->status(), ReplyStatus::kOk);
  ASSERT_TRUE(put(2, "2"));
  EXPECT_EQ(client.peer->Receive()->status(), ReplyStatus::kInvalidArgument) << "it is over";
  EXPECT_EQ(Seen("k"), "3");
  // No other reply came, or is to come.
  ASSERT_TRUE(put(credits + 3, "4"));
  ASSERT_TRUE(StepUntil([&] { return puts() == 4; }));
  CommitAll();
  EXPECT_EQ(client.peer->Receive()->header.sequence, credits + 3u);
}

// A client does that again and again. What waits for it here has a bound. Beyond that its requests
// are put off, and it keeps its connection.
TEST_F(FailOverTest, WhoGivesUpOnOneConnectionAfterTheOtherIsPutOff) {
  Start(0, {});
  Client client;
  ASSERT_TRUE(client.Connect(this));
  const uint16_t credits = client.peer->grant().credits;
  uint64_t sequence = 0;
  const auto put = [&](uint8_t flags = 0) {
    RequestHeader header{};
    header.opcode = static_cast<uint8_t>(Opcode::kPut);
    header.flags = flags;
    header.sequence = ++sequence;
    header.key_bytes = header.value_bytes = 1;
    ASSERT_TRUE(client.peer->Send(header, "k", "v"));
  };
  const auto held = [this] {
    return server().workers()[0]->busy() + server().workers()[1]->busy();
  };
  const size_t most = size_t{credits} * (1 + WaitingReplies::kGivenUpPerCredit);
  for (size_t sent = credits; sent <= most; sent += credits) {
    for (uint16_t n = 0; n < credits; ++n) put();
    ASSERT_TRUE(StepUntil([&] { return held() == sent; }));
    ASSERT_TRUE(client.Connect(this));
  }
  for (int n = 0; n < 2; ++n) {
    put(n == 0 ? 0 : kSentAgain);
    const auto reply = client.peer->Receive();
    ASSERT_TRUE(reply) << "the connection broke";
    EXPECT_EQ(reply->header.sequence, sequence);
    EXPECT_EQ(reply->status(), ReplyStatus::kTryAgain);
    EXPECT_EQ(reply->header.write.version, kPutOffInOrder) << "what follows must not overtake it";
  }
  ASSERT_TRUE(StepUntil([&] { return held() == most; }));
  CommitAll();
  ASSERT_TRUE(StepUntil([&] { return held() == 0; }));
  put();
  EXPECT_EQ(client.peer->Receive()->status(), ReplyStatus::kTryAgain) << "it is behind the others";
  put(kSentAgain);
  ASSERT_TRUE(StepUntil([&] { return held() == 1; }));
  CommitAll();
  EXPECT_EQ(client.peer->Receive()->status(), ReplyStatus::kOk);
}

TEST_F(FailOverTest, WhoHasMoreThanCreditsUnansweredOnOneConnectionIsDropped) {
  Start(0, {});
  Client client;
  ASSERT_TRUE(client.Connect(this));
  RequestHeader header{};
  header.opcode = static_cast<uint8_t>(Opcode::kPut);
  header.key_bytes = header.value_bytes = 1;
  header.sequence = 1;
  ASSERT_TRUE(client.peer->Send(header, "k", "1"));
  header.sequence = client.peer->grant().credits + 1;
  ASSERT_TRUE(client.peer->Send(header, "k", "2"));
  EXPECT_TRUE(client.peer->WaitBroken());
}

TEST_F(FailOverTest, ASessionThatIsNotInTheStreamIsUnknown) {
  Start(0, {});
  Client client;
  ASSERT_TRUE(client.Connect(this));
  client.peer.reset();
  FailOver(0);
  EXPECT_FALSE(client.Connect(this));
  EXPECT_EQ(client.peer->reject()->code, static_cast<uint32_t>(RejectCode::kSessionUnknown));
}

}  // namespace
}  // namespace gannet
