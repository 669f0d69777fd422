// What others do while a script runs, at a real server, and the limits of scripts.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/proxy/jobs/jobs_fixture.h"

namespace gannet::proxy {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string Eval(const std::string& text, const std::string& rest) {
  return "EVAL \"" + text + "\" " + rest;
}

class ScriptTest : public JobsFixture {
 protected:
  // Begins a script, and goes on until its reply is there and its writes are under way.
  Job& BeginWrites(const std::string& line) {
    Job& job = Begin(line);
    while (!job.finished && job.reply.empty()) store_.Poll(&finished_);
    EXPECT_FALSE(job.finished);
    return job;
  }
};

const std::string kAddOne = Eval(
    "local n = tonumber(redis.call('get', KEYS[1]) or 0) redis.call('set', KEYS[1], n + 1, 'EX', "
    "100) return n + 1",
    "1 n");
const std::string kMove =
    Eval("redis.call('set', KEYS[2], redis.call('get', KEYS[1])) return redis.call('del', KEYS[1])",
         "2 from to");

TEST_F(ScriptTest, RunsAnewIfAnotherClientWroteItsKeyMeanwhile) {
  ASSERT_TRUE(other_->Put("n", "5").ok());
  Job& script = BeginWrites(kAddOne);
  EXPECT_EQ(script.reply, ":6\r\n");
  ASSERT_TRUE(other_->Put("n", "70").ok());
  EXPECT_EQ(End(script), ":71\r\n");
  EXPECT_EQ(Value("n"), "71");
}

TEST_F(ScriptTest, NothingIsLostAmongScriptsOfOneKey) {
  std::vector<Job*> scripts;
  for (int i = 0; i < 300; ++i) scripts.push_back(&Begin(kAddOne));
  for (Job* script : scripts) EXPECT_THAT(End(*script), StartsWith(":"));
  EXPECT_EQ(Value("n"), "300");
}

TEST_F(ScriptTest, WaitsForAnotherThatWasGivenItsKey) {
  Job& first = BeginWrites(
      Eval("for i, key in ipairs(KEYS) do redis.call('set', key, i) end return 1", "3 a b c"));
  std::vector<Job*> others;
  for (const char* key : {"a", "b", "c"}) {
    others.push_back(&Begin(Eval("return redis.call('get', KEYS[1])", std::string("1 ") + key)));
    EXPECT_TRUE(others.back()->turns.empty()) << key;
  }
  EXPECT_EQ(End(first), ":1\r\n");
  for (Job* other : others) EXPECT_THAT(End(*other), StartsWith("$1\r\n"));
}

TEST_F(ScriptTest, NothingIsLostAmongScriptsOfSeveralKeys) {
  const char* const pairs[] = {"a b", "b c", "c a", "b a", "a a"};
  std::vector<Job*> scripts;
  for (int i = 0; i < 200; ++i) {
    scripts.push_back(&Begin(Eval("redis.call('decr', KEYS[1]) return redis.call('incr', KEYS[2])",
                                  std::string("2 ") + pairs[i % 5])));
  }
  for (Job* script : scripts) EXPECT_THAT(End(*script), StartsWith(":"));
  EXPECT_EQ(Value("a") + " " + Value("b") + " " + Value("c"), "40 -40 0");
}

TEST_F(ScriptTest, AKeyThatWasOnlyReadIsCompared) {
  ASSERT_TRUE(other_->Put("from", "a").ok());
  Job& script =
      Begin(Eval("redis.call('set', KEYS[2], redis.call('get', KEYS[1])) return 1", "2 from to"));
  while (script.reply.empty()) store_.Poll(&finished_);
  ASSERT_TRUE(other_->Put("from", "b").ok());
  EXPECT_EQ(End(script), ":1\r\n");
  EXPECT_EQ(Value("to"), "b");
}

TEST_F(ScriptTest, UndoesItsWritesIfAnotherClientWroteOneOfItsKeys) {
  ASSERT_TRUE(other_->Put("from", "a").ok());
  Job& script = BeginWrites(kMove);
  ASSERT_TRUE(other_->Put("from", "b").ok());
  EXPECT_EQ(End(script), ":1\r\n");
  EXPECT_EQ(Value("to"), "b");
  EXPECT_EQ(Value("from"), "absent");
}

// Each of the writes was another kind of change: a new value, a removal, a time to live.
TEST_F(ScriptTest, WhatItUndoesIsAsItWas) {
  for (const char* key : {"a", "b", "c", "z"}) ASSERT_TRUE(other_->Put(key, key).ok());
  Job& script =
      BeginWrites(Eval("if redis.call('get', KEYS[5]) == 'stop' then return 'stopped' end "
                       "redis.call('set', KEYS[1], 'x') redis.call('del', KEYS[2]) "
                       "redis.call('expire', KEYS[3], 100) redis.call('set', KEYS[4], 'x') "
                       "return redis.call('set', KEYS[5], 'x')",
                       "5 a b c new z"));
  ASSERT_TRUE(other_->Put("z", "stop").ok());
  EXPECT_EQ(End(script), "$7\r\nstopped\r\n");
  EXPECT_EQ(Value("a") + Value("b") + Value("c") + Value("new"), "abcabsent");
  EXPECT_EQ(Do("TTL c"), ":-1\r\n");
}

TEST_F(ScriptTest, SaysSoIfItCannotUndoAWrite) {
  ASSERT_TRUE(other_->Put("from", "a").ok());
  Job& script = BeginWrites(kMove);
  ASSERT_TRUE(other_->Put("from", "b").ok());
  // What begins in one Poll is posted by the next one, so the write is seen before it is undone.
  while (!script.finished && Value("to") != "a") store_.Poll(&finished_);
  ASSERT_TRUE(other_->Put("to", "theirs").ok());
  EXPECT_THAT(End(script), HasSubstr("some of them are written"));
  EXPECT_EQ(Value("to"), "theirs");
  EXPECT_EQ(Value("from"), "b");
}

TEST_F(ScriptTest, MayUseKeysThatItDidNotName) {
  ASSERT_TRUE(other_->Put("b:a", "1").ok());
  EXPECT_EQ(Do(Eval("return redis.call('incr', 'b:' .. ARGV[1])", "0 a")), ":2\r\n");
  EXPECT_EQ(Do(Eval("return {pcall(redis.call, 'incr', 'b:a')}", "1 other")), "*2\r\n:1\r\n:3\r\n");
  EXPECT_EQ(Value("b:a"), "3");
}

TEST_F(ScriptTest, EndsWhenItsTimeIsOver) {
  service_.script_cpu_ms = 100;
  for (const std::string& line :
       {Eval("while true do end", "0"),
        Eval("while true do pcall(function() while true do end end) end", "0"),
        Eval("while true do pcall(redis.call, 'get', 'a') end", "0")}) {
    EXPECT_THAT(Do(line), HasSubstr("took more than 100 ms")) << line;
  }
}

TEST_F(ScriptTest, HasNoMoreMemoryThanItMayHave) {
  EXPECT_THAT(
      Do(Eval("local t = {} while true do t[#t + 1] = string.rep('x', 100000) .. #t end", "0")),
      HasSubstr("not enough memory"));
  EXPECT_THAT(Do(Eval("return string.rep('x', 1000000000)", "0")), HasSubstr("not enough memory"));
  EXPECT_THAT(
      Do(Eval(
          "local s = string.rep('x', 1000000) local t = {} for i = 1, 100 do t[i] = s end return t",
          "0")),
      HasSubstr("its reply is too long"));
  EXPECT_THAT(Do(Eval("local s, r = string.rep('x', 1000000) for i = 1, 70 do r = "
                      "redis.pcall('set', 'k' .. i, s) end "
                      "for i = 1, 70 do redis.call('del', 'k' .. i) end return r",
                      "0")),
              StartsWith("-OOM the values of a script"));
  EXPECT_THAT(Do(Eval("redis.call('set', KEYS[1], string.rep('x', 100000)) "
                      "return #redis.call('get', KEYS[1])",
                      "1 long")),
              ":100000\r\n");
}

TEST_F(ScriptTest, WhatItWroteBeforeAnErrorStays) {
  EXPECT_THAT(Do(Eval("redis.call('set', KEYS[1], 'x') error('why')", "1 k")),
              StartsWith("-ERR user_script:1: why script: "));
  EXPECT_EQ(Value("k"), "x");
}

TEST_F(ScriptTest, CannotLeaveItsLua) {
  for (const char* name : {"io", "os", "debug", "package", "require", "loadstring", "load",
                           "dofile", "newproxy", "coroutine"}) {
    EXPECT_THAT(Do(Eval(std::string("return ") + name, "0")),
                HasSubstr("nonexistent global variable '" + std::string(name)));
  }
  EXPECT_THAT(Do(Eval("\\x1bLua", "0")), HasSubstr("bytecode is refused"));
  EXPECT_EQ(Do(Eval("return {string.find(ARGV[1], '(%d+)')}", "0 a17")),
            "*3\r\n:2\r\n:3\r\n$2\r\n17\r\n");
  EXPECT_THAT(Do(Eval("return string.find(string.rep('a', 10000), '.-.-.-b')", "0")),
              HasSubstr("this pattern takes too long"));
  EXPECT_THAT(Do(Eval("return string.match(string.rep('a', 60), string.rep('a?', 60))", "0")),
              HasSubstr("this pattern takes too long"));
  EXPECT_EQ(Do(Eval("local s = string.rep('a-', 4000) .. 'b-b-b' "
                    "return {string.find(s, 'b-b-b', 1, true), #s:match('[a-z%-]+')}",
                    "0")),
            "*2\r\n:8001\r\n:8005\r\n");
}

TEST_F(ScriptTest, TheTextOfATableIsBounded) {
  EXPECT_EQ(Do(Eval("return cjson.encode({a = cjson.decode(ARGV[1])})", "0 [1,2]")),
            "$11\r\n{\"a\":[1,2]}\r\n");
  EXPECT_THAT(Do(Eval("local t = {} for i = 1, 40 do t = {t, t} end return cjson.encode(t)", "0")),
              HasSubstr("the text of the table is too long"));
  EXPECT_THAT(Do(Eval("local t = {} for i = 1, 5000 do t = {t} end return #cjson.encode(t)", "0")),
              HasSubstr("too"));
}

TEST_F(ScriptTest, OldScriptsAreForgotten) {
  const std::string first = "return 1";
  scripts_.Add(Sha1Hex(first), first);
  for (size_t i = 1; i < LoadedScripts::kMax; ++i) scripts_.Add(Sha1Hex(std::to_string(i)), "x");
  EXPECT_NE(scripts_.Find(Sha1Hex(first)), nullptr);
  scripts_.Add(Sha1Hex("one more"), "one more");
  EXPECT_EQ(scripts_.Find(Sha1Hex(first)), nullptr);
  EXPECT_NE(scripts_.Find(Sha1Hex("one more")), nullptr);
}

}  // namespace
}  // namespace gannet::proxy
