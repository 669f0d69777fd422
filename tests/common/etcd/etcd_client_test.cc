// The client with one real process of etcd.

#include "common/etcd/etcd_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "softverbs/tests/support/temporary_directory.h"
#include "tests/common/etcd/etcd_caller.h"
#include "tests/common/etcd/etcd_processes.h"
#include "tests/common/etcd/gateway.h"
#include "tests/support/run_program.h"

namespace gannet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using enum EtcdTxnResult::Outcome;

// One process for all cases, each of which has keys of its own.
class EtcdClientTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { etcd_ = new EtcdProcesses(1); }
  static void TearDownTestSuite() { delete etcd_; }

  static EtcdProcesses* etcd_;
  EtcdCaller caller_{etcd_->Urls()};
};
EtcdProcesses* EtcdClientTest::etcd_ = nullptr;

// What a watch told. Keeps what is there, as its listener would.
struct Listener {
  EtcdClient::WatchHandler Handler() {
    return [this](EtcdNews news) {
      if (news.kind == EtcdNews::Kind::kListed) there.clear();
      for (const EtcdKeyValue& item : news.items) there[item.key] = item.value;
      for (const EtcdChange& change : news.changes) {
        if (change.deleted) {
          there.erase(change.item.key);
        } else {
          there[change.item.key] = change.item.value;
        }
      }
      all.push_back(std::move(news));
    };
  }
  size_t Count(EtcdNews::Kind kind) const {
    return static_cast<size_t>(
        std::ranges::count_if(all, [&](const EtcdNews& it) { return it.kind == kind; }));
  }

  std::vector<EtcdNews> all;
  std::map<std::string, std::string> there;
};

TEST_F(EtcdClientTest, ReadsWhatATransactionPut) {
  const EtcdTxnResult put = caller_.Put("read/key", "value", 0);
  ASSERT_EQ(put.outcome, kWon) << put.status;
  const auto answer = caller_.Range("read/key");
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_THAT(answer->items, ElementsAre(EtcdKeyValue{"read/key", "value", put.revision}));
  EXPECT_THAT(caller_.Range("read/other")->items, IsEmpty());
}

TEST_F(EtcdClientTest, KeysAndValuesAreAnyBytes) {
  const std::string key("any\0\xff\n\"key", 10);
  std::string value(100'000, '\0');
  for (size_t i = 0; i < value.size(); ++i) value[i] = static_cast<char>(i * 7);
  ASSERT_EQ(caller_.Put(key, value).outcome, kWon);
  const auto answer = caller_.Range(key);
  ASSERT_TRUE(answer.ok()) << answer.status();
  ASSERT_THAT(answer->items, SizeIs(1));
  EXPECT_EQ(answer->items[0].key, key);
  EXPECT_TRUE(answer->items[0].value == value);
}

TEST_F(EtcdClientTest, APrefixHasNothingOfItsNeighbours) {
  for (const char* key : {"prefix", "prefix/a", "prefix/b\xff", "prefix0"}) caller_.Put(key, "");
  const auto answer = caller_.RangeOfPrefix("prefix/");
  ASSERT_TRUE(answer.ok()) << answer.status();
  ASSERT_THAT(answer->items, SizeIs(2));
  EXPECT_EQ(answer->items[0].key, "prefix/a");
  EXPECT_EQ(answer->items[1].key, "prefix/b\xff");
}

TEST_F(EtcdClientTest, ATransactionIsRefusedIfAKeyHasChanged) {
  const int64_t first = caller_.Put("txn/a", "1", 0).revision;
  const EtcdTxnResult created_again = caller_.Put("txn/a", "2", 0);
  EXPECT_EQ(created_again.outcome, kRefused) << created_again.status;
  EXPECT_THAT(created_again.current, ElementsAre(EtcdKeyValue{"txn/a", "1", first}));

  EXPECT_EQ(caller_.Put("txn/a", "3", first).outcome, kWon);
  const EtcdTxnResult stale = caller_.Txn({.compares = {{.key = "txn/a", .mod_revision = first}},
                                           .puts = {{"txn/a", "4"}, {"txn/b", "4"}}});
  EXPECT_EQ(stale.outcome, kRefused);
  EXPECT_EQ(caller_.Range("txn/a")->items.at(0).value, "3");
  EXPECT_THAT(caller_.Range("txn/b")->items, IsEmpty());
}

TEST_F(EtcdClientTest, ATransactionPutsAllOfItsKeysAtOneRevision) {
  const EtcdTxnResult put = caller_.Txn(
      {.compares = {{.key = "all/", .prefix = true}}, .puts = {{"all/a", "1"}, {"all/b", "2"}}});
  ASSERT_EQ(put.outcome, kWon) << put.status;
  EXPECT_THAT(caller_.RangeOfPrefix("all/")->items,
              ElementsAre(EtcdKeyValue{"all/a", "1", put.revision},
                          EtcdKeyValue{"all/b", "2", put.revision}));
  // Now there is something below the prefix.
  const EtcdTxnResult again =
      caller_.Txn({.compares = {{.key = "all/", .prefix = true}}, .puts = {{"all/c", "3"}}});
  EXPECT_EQ(again.outcome, kRefused);
  EXPECT_THAT(again.current, SizeIs(2));
}

TEST_F(EtcdClientTest, ATransactionReadsInTheSameStep) {
  const int64_t other = caller_.Put("reads/other", "o", 0).revision;
  const EtcdTxn txn = {
      .compares = {{.key = "reads/a"}}, .puts = {{"reads/a", "1"}}, .reads = {"reads/other"}};
  const EtcdTxnResult won = caller_.Txn(txn);
  ASSERT_EQ(won.outcome, kWon) << won.status;
  EXPECT_THAT(won.current, ElementsAre(EtcdKeyValue{"reads/other", "o", other}));
  const EtcdTxnResult refused = caller_.Txn(txn);
  ASSERT_EQ(refused.outcome, kRefused) << refused.status;
  EXPECT_THAT(refused.current, ElementsAre(EtcdKeyValue{"reads/a", "1", won.revision},
                                           EtcdKeyValue{"reads/other", "o", other}));
}

TEST_F(EtcdClientTest, AWatchTellsEachChangeInOrder) {
  caller_.Put("watch/a", "0");
  Listener listener;
  caller_.client().Watch("watch/", listener.Handler());
  ASSERT_TRUE(caller_.PollUntil([&] { return !listener.all.empty(); }));
  EXPECT_EQ(listener.all[0].kind, EtcdNews::Kind::kListed);
  EXPECT_EQ(listener.there["watch/a"], "0");

  int64_t revision = 0;
  for (int i = 1; i <= 20; ++i) {
    caller_.Put("unwatched", absl::StrCat(i));
    revision = caller_.Put("watch/a", absl::StrCat(i)).revision;
  }
  ASSERT_TRUE(caller_.PollUntil([&] { return listener.there["watch/a"] == "20"; }));
  std::vector<std::string> values;
  for (const EtcdNews& news : listener.all) {
    for (const EtcdChange& change : news.changes) {
      EXPECT_EQ(change.item.key, "watch/a");
      values.push_back(change.item.value);
    }
  }
  EXPECT_EQ(listener.all.back().revision, revision);
  ASSERT_THAT(values, SizeIs(20));
  for (int i = 1; i <= 20; ++i) EXPECT_EQ(values[static_cast<size_t>(i) - 1], absl::StrCat(i));

  PostToEtcd(etcd_->Url(0) + "/v3/kv/deleterange",
             absl::StrCat(R"({"key":")", absl::Base64Escape("watch/a"), R"("})"));
  EXPECT_TRUE(caller_.PollUntil([&] { return listener.there.empty(); }));
  EXPECT_EQ(listener.Count(EtcdNews::Kind::kListed), 1u);
}

TEST_F(EtcdClientTest, ASilentWatchIsBegunAgainAndTellsNothingTwice) {
  EtcdCaller caller(EtcdClient::Options{.endpoints = etcd_->Urls(), .watch_silence_ms = 1});
  Listener listener;
  caller.client().Watch("silent/", listener.Handler());
  for (int i = 1; i <= 20; ++i) {
    caller.Put("silent/a", absl::StrCat(i));
    ASSERT_TRUE(caller.PollUntil([&] { return listener.there["silent/a"] == absl::StrCat(i); }));
  }
  // etcd tells a change a moment before its own revision shows it. A watch that is begun again in
  // that moment takes it for one that is behind, and lists.
  EXPECT_LT(listener.Count(EtcdNews::Kind::kListed), 10u);
  int64_t revision = 0;
  for (const EtcdNews& news : listener.all) {
    if (news.kind == EtcdNews::Kind::kListed) {
      EXPECT_GE(news.revision, revision);
      revision = news.revision;
    }
    for (const EtcdChange& change : news.changes) {
      EXPECT_GT(change.item.mod_revision, revision);
      revision = change.item.mod_revision;
    }
  }
}

TEST_F(EtcdClientTest, AWatchEndsWhenItsListenerSaysSo) {
  Listener ended, other;
  uint64_t watch = 0;
  watch = caller_.client().Watch("unwatch/", [&](EtcdNews news) {
    ended.all.push_back(std::move(news));
    caller_.client().Unwatch(watch);
  });
  caller_.client().Watch("unwatch/", other.Handler());
  caller_.Put("unwatch/a", "1");
  ASSERT_TRUE(caller_.PollUntil([&] { return other.there["unwatch/a"] == "1"; }));
  EXPECT_LE(ended.all.size(), 1u);
  ASSERT_TRUE(caller_.PollUntil([&] { return !ended.all.empty(); }));
}

TEST_F(EtcdClientTest, ListsAgainAfterACompaction) {
  EtcdProcesses etcd(1);
  EtcdCaller watching(etcd.Urls());
  Listener listener;
  watching.client().Watch("compacted/", listener.Handler());
  ASSERT_TRUE(watching.PollUntil([&] { return !listener.all.empty(); }));
  // Its stream breaks, and it does not see that until it polls.
  etcd.Kill(0);
  etcd.Restart(0);
  EtcdCaller caller(etcd.Urls());
  caller.Put("compacted/gone", "1");
  const int64_t revision = caller.Put("compacted/last", "2").revision;
  PostToEtcd(etcd.Url(0) + "/v3/kv/deleterange",
             absl::StrCat(R"({"key":")", absl::Base64Escape("compacted/gone"), R"("})"));
  const std::string compacted = PostToEtcd(etcd.Url(0) + "/v3/kv/compaction",
                                           absl::StrCat(R"({"revision":")", revision + 1, R"("})"));
  ASSERT_THAT(compacted, HasSubstr("header"));

  ASSERT_TRUE(watching.PollUntil([&] { return listener.Count(EtcdNews::Kind::kListed) == 2; }));
  EXPECT_EQ(listener.there, (std::map<std::string, std::string>{{"compacted/last", "2"}}));
  caller.Put("compacted/later", "3");
  EXPECT_TRUE(watching.PollUntil([&] { return listener.there["compacted/later"] == "3"; }));
}

// A process of its own, whose data is lost.
TEST_F(EtcdClientTest, RevisionsGrowAlsoIfEtcdHasLostItsData) {
  EtcdProcesses etcd(1);
  EtcdCaller caller(etcd.Urls());
  for (const char* const value : {"1", "2", "3", "4"}) caller.Put("a/x", value);
  Listener listener;
  caller.client().Watch("a/", listener.Handler());
  ASSERT_TRUE(caller.PollUntil([&] { return listener.Count(EtcdNews::Kind::kListed) == 1; }));
  EXPECT_FALSE(listener.all.back().went_back);
  const int64_t before = caller.Range("a/x")->items.front().mod_revision;

  etcd.Kill(0);
  std::filesystem::remove_all(etcd.DataFolder(0));
  etcd.Restart(0);
  ASSERT_TRUE(caller.PollUntil([&] { return listener.Count(EtcdNews::Kind::kListed) == 2; }));
  EXPECT_TRUE(listener.all.back().went_back);
  EXPECT_THAT(listener.there, IsEmpty());
  EXPECT_EQ(caller.Put("a/x", "old", before).outcome, kRefused);
  const EtcdTxnResult won = caller.Put("a/x", "new", 0);
  ASSERT_EQ(won.outcome, kWon) << won.status;
  EXPECT_GT(won.revision, before);
  EXPECT_EQ(caller.Range("a/x")->items.front().mod_revision, won.revision);
  ASSERT_TRUE(caller.PollUntil([&] { return listener.there["a/x"] == "new"; }));
  EXPECT_EQ(listener.all.back().revision, won.revision);
  EXPECT_EQ(caller.Put("a/x", "newer", won.revision).outcome, kWon);
}

// The list is so long that an answer would come before it.
TEST_F(EtcdClientTest, NoAnswerComesBeforeTheListOfAnEtcdThatWentBack) {
  EtcdProcesses etcd(1);
  EtcdCaller caller(etcd.Urls());
  for (int i = 0; i < 200; ++i) caller.Put("a/x", std::to_string(i));
  Listener listener;
  caller.client().Watch("a/", listener.Handler());
  ASSERT_TRUE(caller.PollUntil([&] { return listener.Count(EtcdNews::Kind::kListed) == 1; }));
  etcd.Kill(0);
  std::filesystem::remove_all(etcd.DataFolder(0));
  etcd.Restart(0);
  EtcdCaller other(etcd.Urls());
  for (int i = 0; i < 12; ++i) {
    ASSERT_EQ(other.Put(absl::StrCat("a/", i), std::string(200'000, 'v')).outcome, kWon);
  }
  ASSERT_EQ(other.Put("a/x", "of a backup").outcome, kWon);
  int answers = 0;
  std::function<void(absl::StatusOr<EtcdRangeAnswer>)> ask = [&](auto answer) {
    if (!answer.ok()) return caller.client().Range("a/x", ask);
    ++answers;
    EXPECT_TRUE(listener.all.back().went_back);
  };
  caller.client().Range("a/x", ask);
  ASSERT_TRUE(caller.PollUntil([&] { return answers > 0; }));
}

TEST_F(EtcdClientTest, ATransactionThatIsNotAnsweredIsUnknown) {
  EtcdProcesses etcd(1);
  EtcdCaller impatient(EtcdClient::Options{.endpoints = etcd.Urls(), .call_ms = 200});
  etcd.process(0).Stop();
  const EtcdTxnResult unknown = impatient.Put("unknown", "first", 0);
  EXPECT_EQ(unknown.outcome, kUnknown) << unknown.status;
  EXPECT_THAT(unknown.status.message(), HasSubstr("no answer within 200 ms"));
  etcd.process(0).Signal(SIGCONT);

  // Another one on the same revision settles it: one of them has won.
  EtcdCaller caller(etcd.Urls());
  const EtcdTxnResult second = caller.Put("unknown", "second", 0);
  const std::string value = caller.Range("unknown")->items.at(0).value;
  EXPECT_EQ(value, second.outcome == kWon ? "second" : "first") << second.status;
}

// Does what etcdctl does for "user add", "role grant-permission" and so on.
void EnableUsers(const EtcdProcesses& etcd) {
  const std::string end = absl::Base64Escape("/gannet0");
  for (const auto& [path, body] :
       {std::pair<std::string, std::string>{"user/add", R"({"name":"root","password":"secret"})"},
        {"user/grant", R"({"user":"root","role":"root"})"},
        {"user/add", R"({"name":"gannet","password":"sea gull"})"},
        {"role/add", R"({"name":"keys"})"},
        {"role/grant", R"({"name":"keys","perm":{"permType":"READWRITE","key":")" +
                           absl::Base64Escape("/gannet/") + R"(","range_end":")" + end + "\"}}"},
        {"user/grant", R"({"user":"gannet","role":"keys"})"},
        {"enable", "{}"}}) {
    ASSERT_THAT(PostToEtcd(etcd.Url(0) + "/v3/auth/" + path, body), HasSubstr("header"));
  }
}

TEST_F(EtcdClientTest, SaysThatEtcdWantsAUser) {
  EtcdProcesses etcd(1, {"--bcrypt-cost", "4"});
  ASSERT_NO_FATAL_FAILURE(EnableUsers(etcd));
  EtcdCaller caller(etcd.Urls());
  const auto answer = caller.Range("key");
  EXPECT_TRUE(absl::IsUnauthenticated(answer.status())) << answer.status();
  EXPECT_THAT(answer.status().message(), HasSubstr("--etcd_user"));
  const EtcdTxnResult put = caller.Put("key", "value");
  EXPECT_EQ(put.outcome, kFailed) << put.status;
}

TEST_F(EtcdClientTest, LogsInAndAgainWhenEtcdHasForgottenTheToken) {
  EtcdProcesses etcd(1, {"--bcrypt-cost", "4"});
  ASSERT_NO_FATAL_FAILURE(EnableUsers(etcd));
  EtcdCaller wrong(EtcdClient::Options{
      .endpoints = etcd.Urls(), .user = "gannet", .password = "duck", .retry_ms = 1});
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(wrong.Range("/gannet/key").status().message(),
                HasSubstr("invalid user ID or password"));
  }
  EXPECT_EQ(wrong.Put("/gannet/key", "value").outcome, kFailed);

  const EtcdClient::Options options = {
      .endpoints = etcd.Urls(), .user = "gannet", .password = "sea gull"};
  EtcdCaller caller(options);
  const EtcdTxnResult put = caller.Put("/gannet/key", "1");
  EXPECT_EQ(put.outcome, kWon) << put.status;
  EXPECT_EQ(caller.Range("/gannet/key")->items.at(0).value, "1");
  EXPECT_TRUE(absl::IsPermissionDenied(caller.Range("other").status()));
  EtcdCaller watching(options);
  Listener listener;
  watching.client().Watch("/gannet/", listener.Handler());
  EXPECT_TRUE(watching.PollUntil([&] { return listener.there["/gannet/key"] == "1"; }));

  // A process that was started again knows no token.
  etcd.Kill(0);
  etcd.Restart(0);
  EXPECT_TRUE(watching.PollUntil([&] { return listener.Count(EtcdNews::Kind::kLost) > 0; }));
  const EtcdTxnResult again = caller.Put("/gannet/key", "2");
  EXPECT_EQ(again.outcome, kWon) << again.status;
  EXPECT_TRUE(watching.PollUntil([&] { return listener.there["/gannet/key"] == "2"; }));
}

TEST_F(EtcdClientTest, SpeaksTlsWithACertificateThatItWasTold) {
  EtcdProcesses etcd(1, {"--auto-tls"});
  const std::string url = etcd.Url(0, "https");
  const std::string ca_file = etcd.DataFolder(0) + "/fixtures/client/cert.pem";
  EtcdCaller caller(EtcdClient::Options{.endpoints = {url}, .ca_file = ca_file});
  const EtcdTxnResult put = caller.Put("key", "value");
  EXPECT_EQ(put.outcome, kWon) << put.status;

  EtcdCaller strangers({url});
  EXPECT_THAT(strangers.Range("key").status().message(), HasSubstr("certificate"));
  EXPECT_EQ(strangers.Put("key", "other").outcome, kFailed);
  EtcdCaller plain({etcd.Url(0)});
  EXPECT_THAT(plain.Range("key").status().ToString(), HasSubstr("https://"));
}

TEST_F(EtcdClientTest, ShowsACertificateOfItsOwn) {
  const test_support::TemporaryDirectory folder;
  const std::string cert = folder.path() + "/cert.pem";
  const std::string key = folder.path() + "/key.pem";
  // It signs itself, and is etcd's, too.
  const test_support::Finished made = test_support::RunProgram(
      {"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
       "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=gannet", "-addext",
       "subjectAltName=IP:" + EtcdProcesses::Address()});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EtcdProcesses etcd(
      1, {"--cert-file", cert, "--key-file", key, "--trusted-ca-file", cert, "--client-cert-auth"});
  const std::string url = etcd.Url(0, "https");
  EtcdCaller caller(
      EtcdClient::Options{.endpoints = {url}, .ca_file = cert, .cert_file = cert, .key_file = key});
  const EtcdTxnResult put = caller.Put("key", "value");
  EXPECT_EQ(put.outcome, kWon) << put.status;
  EtcdCaller without(EtcdClient::Options{.endpoints = {url}, .ca_file = cert});
  EXPECT_FALSE(without.Range("key").ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(
      EtcdClient::Create({.endpoints = {url}, .cert_file = "/none"}).status()));
}

TEST_F(EtcdClientTest, SaysThatItIsThePortForMembers) {
  EtcdCaller caller({etcd_->PeerUrl(0)});
  const auto answer = caller.Range("key");
  EXPECT_TRUE(absl::IsFailedPrecondition(answer.status())) << answer.status();
  EXPECT_THAT(answer.status().message(), HasSubstr("not its port for clients"));
}

}  // namespace
}  // namespace gannet
