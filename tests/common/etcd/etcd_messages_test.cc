#include "common/etcd/etcd_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace gannet {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr char kHeader[] =
    R"("header":{"cluster_id":"17446744073709551615","member_id":"3","revision":"2","raft_term":"2"})";
constexpr uint64_t kClusterId = 17446744073709551615u;

std::string Answer(const std::string& rest) {
  return std::string("{") + kHeader + (rest.empty() ? "" : ",") + rest + "}";
}
std::string WatchLine(const std::string& rest) { return R"({"result":)" + Answer(rest) + "}"; }

// "foo", "fop" and "bar" are Zm9v, Zm9w and YmFy in Base64.

TEST(EtcdMessagesTest, AskForARange) {
  EXPECT_EQ(EncodeRange("foo"), R"({"key":"Zm9v"})");
  EXPECT_EQ(EncodeRangeOfPrefix("foo"), R"({"key":"Zm9v","range_end":"Zm9w"})");
}

TEST(EtcdMessagesTest, APrefixEndsBeforeTheNext) {
  EXPECT_EQ(EndOfPrefix("a/"), "a0");
  EXPECT_EQ(EndOfPrefix("a\xff\xff"), "b");
}

TEST(EtcdMessagesTest, AskForATransaction) {
  EXPECT_EQ(EncodeTxn({.compares = {{.key = "foo", .mod_revision = 9007199254740993}},
                       .puts = {{"foo", "bar"}}}),
            R"({"compare":[{"key":"Zm9v","mod_revision":"9007199254740993","result":"EQUAL",)"
            R"("target":"MOD"}],"failure":[{"request_range":{"key":"Zm9v"}}],)"
            R"("success":[{"request_put":{"key":"Zm9v","value":"YmFy"}}]})");
  EXPECT_THAT(EncodeTxn({.compares = {{.key = "foo", .prefix = true}}}),
              HasSubstr(R"({"key":"Zm9v","mod_revision":"0","range_end":"Zm9w",)"));
  EXPECT_THAT(EncodeTxn({.compares = {{.key = "foo", .value_begins = "foo"}}}),
              HasSubstr(R"("compare":[{"key":"Zm9v","result":"GREATER","target":"VALUE",)"
                        R"("value":"Zm9v"},{"key":"Zm9v","result":"LESS","target":"VALUE",)"
                        R"("value":"Zm9w"}],"failure":[{"request_range":{"key":"Zm9v"}}])"));
  EXPECT_THAT(EncodeTxn({.compares = {{.key = "foo"}}, .puts = {{"foo", "bar"}}, .reads = {"f"}}),
              HasSubstr(R"("failure":[{"request_range":{"key":"Zm9v"}},)"
                        R"({"request_range":{"key":"Zg=="}}],"success":[{"request_put":)"
                        R"({"key":"Zm9v","value":"YmFy"}},{"request_range":{"key":"Zg=="}}])"));
  EXPECT_THAT(EncodeTxn({.deletes = {"foo"}}),
              HasSubstr(R"("success":[{"request_delete_range":{"key":"Zm9v"}}])"));
}

TEST(EtcdMessagesTest, AskForAWatch) {
  EXPECT_EQ(EncodeWatchOfPrefix("foo", 7),
            R"({"create_request":{"key":"Zm9v","range_end":"Zm9w","start_revision":"7"}})");
}

TEST(EtcdMessagesTest, WhatIsLeftOutOfAnAnswerHasItsDefault) {
  const auto empty = DecodeRangeAnswer(Answer(""));
  ASSERT_TRUE(empty.ok()) << empty.status();
  EXPECT_EQ(empty->header, (EtcdHeader{.cluster_id = kClusterId, .revision = 2}));
  EXPECT_THAT(empty->items, IsEmpty());

  const auto refused = DecodeTxnAnswer(Answer(""));
  ASSERT_TRUE(refused.ok()) << refused.status();
  EXPECT_FALSE(refused->succeeded);

  const auto quiet = DecodeWatchAnswer(WatchLine(""));
  ASSERT_TRUE(quiet.ok()) << quiet.status();
  EXPECT_FALSE(quiet->created);
  EXPECT_FALSE(quiet->canceled);
  EXPECT_EQ(quiet->compact_revision, 0);
}

TEST(EtcdMessagesTest, ReadsARange) {
  const auto answer = DecodeRangeAnswer(Answer(
      R"("kvs":[{"key":"Zm9v","create_revision":"2","mod_revision":"2","version":"1","value":"YmFy"},)"
      R"({"key":"Zm9w","mod_revision":"1"}],"count":"2")"));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_THAT(answer->items,
              ElementsAre(EtcdKeyValue{"foo", "bar", 2}, EtcdKeyValue{"fop", "", 1}));
}

TEST(EtcdMessagesTest, ReadsATransaction) {
  const auto won = DecodeTxnAnswer(
      Answer(R"("succeeded":true,"responses":[{"response_put":{"header":{"revision":"2"}}}])"));
  ASSERT_TRUE(won.ok()) << won.status();
  EXPECT_TRUE(won->succeeded);
  const auto refused = DecodeTxnAnswer(
      Answer(R"("responses":[{"response_range":{"kvs":[{"key":"Zm9v","mod_revision":"2"}]}},)"
             R"({"response_range":{"header":{"revision":"2"}}}])"));
  ASSERT_TRUE(refused.ok()) << refused.status();
  EXPECT_THAT(refused->current, ElementsAre(EtcdKeyValue{"foo", "", 2}));
}

TEST(EtcdMessagesTest, ReadsAWatch) {
  const auto changes = DecodeWatchAnswer(
      WatchLine(R"("events":[{"kv":{"key":"Zm9v","mod_revision":"4","value":"YmFy"}},)"
                R"({"type":"DELETE","kv":{"key":"Zm9v","mod_revision":"5"}}])"));
  ASSERT_TRUE(changes.ok()) << changes.status();
  EXPECT_THAT(changes->changes, ElementsAre(EtcdChange{.item = {"foo", "bar", 4}},
                                            EtcdChange{.item = {"foo", "", 5}, .deleted = true}));
  const auto compacted = DecodeWatchAnswer(WatchLine(R"("canceled":true,"compact_revision":"3")"));
  ASSERT_TRUE(compacted.ok()) << compacted.status();
  EXPECT_TRUE(compacted->canceled);
  EXPECT_EQ(compacted->compact_revision, 3);
}

TEST(EtcdMessagesTest, RefusesWhatIsNoAnswer) {
  for (const std::string& text :
       {std::string(),
        std::string("<html>"),
        std::string("[]"),
        std::string("{}"),
        std::string(R"({"header":{}})"),
        std::string(R"({"header":[]})"),
        std::string(R"({"header":{"cluster_id":7}})"),
        std::string(R"({"header":{"cluster_id":"-7"}})"),
        std::string(R"({"header":{"cluster_id":"17446744073709551615"})"),
        Answer(R"("kvs":{})"),
        Answer(R"("kvs":[7])"),
        Answer(R"("kvs":[{}])"),
        Answer(R"("kvs":[{"key":"Zm9v"}])"),
        Answer(R"("kvs":[{"mod_revision":"1"}])"),
        Answer(R"("kvs":[{"key":"!","mod_revision":"1"}])"),
        Answer(R"("kvs":[{"key":"Zm9v","mod_revision":"-1"}])"),
        Answer(R"("kvs":[{"key":"Zm9v","mod_revision":"9223372036854775807"}])"),
        Answer(R"("kvs":[{"key":"Zm9v","mod_revision":"9223372036854775808"}])"),
        Answer(R"("kvs":[{"key":"Zm9v","mod_revision":1}])"),
        Answer(R"("more":true)"),
        std::string(1 << 20, '['),
        std::string("{\"a\":\"\xff\"}")}) {
    EXPECT_EQ(DecodeRangeAnswer(text).status().code(), absl::StatusCode::kInvalidArgument)
        << text.substr(0, 100);
  }
  for (const char* rest :
       {R"("succeeded":"yes")", R"("responses":7)", R"("responses":[{"response_range":[]}])",
        R"("responses":[{"response_range":{"kvs":7}}])"}) {
    EXPECT_FALSE(DecodeTxnAnswer(Answer(rest)).ok()) << rest;
  }
  EXPECT_FALSE(DecodeWatchAnswer(Answer("")).ok());
  for (
      const char* rest :
      {R"("created":1)", R"("canceled":"no")", R"("cancel_reason":{})", R"("compact_revision":"x")",
       R"("events":[{}])", R"("events":[{"kv":7}])",
       R"("events":[{"type":"MOVE","kv":{"key":"Zm9v","mod_revision":"4"}}])",
       R"("events":[{"kv":{"key":"Zm9v","mod_revision":"4"}},{"kv":{"key":"Zm9v","mod_revision":"3"}}])"}) {
    EXPECT_FALSE(DecodeWatchAnswer(WatchLine(rest)).ok()) << rest;
  }
}

}  // namespace
}  // namespace gannet
