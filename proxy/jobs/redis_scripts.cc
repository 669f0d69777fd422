// Redis' scripts, as far as programs use them for locks and counters. There is no Lua here: a
// script is recognised by its text. That of a lock runs as a Get and a write that happens only if
// the item still has the version that was read. So it is as atomic as in Redis. That of a counter
// is one increment, and a new counter begins with its time to live.

#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "proxy/jobs/redis_commands.h"
#include "proxy/jobs/scripts.h"

namespace gannet::proxy {
namespace {

// The known texts, without blanks, in small letters, with ' for ". They are those of redis-py's
// Lock, those that the documentation of Redis gives for SET NX, and the counters of django-redis,
// of limits (Flask-Limiter) and of rate-limiter-flexible.
constexpr struct {
  Script script;
  std::string_view text;
} kKnown[] = {
    {Script::kDelete,
     "ifredis.call('get',keys[1])==argv[1]thenreturnredis.call('del',keys[1])elsereturn0end"},
    {Script::kDelete,
     "localtoken=redis.call('get',keys[1])ifnottokenortoken~=argv[1]thenreturn0endredis.call('del',"
     "keys[1])return1"},
    {Script::kExpireMs,
     "ifredis.call('get',keys[1])==argv[1]thenreturnredis.call('pexpire',keys[1],argv[2])"
     "elsereturn0end"},
    {Script::kExpireSeconds,
     "ifredis.call('get',keys[1])==argv[1]thenreturnredis.call('expire',keys[1],argv[2])"
     "elsereturn0end"},
    {Script::kExpireMs,
     "localtoken=redis.call('get',keys[1])ifnottokenortoken~=argv[1]thenreturn0endredis.call("
     "'pexpire',keys[1],argv[2])return1"},
    {Script::kExtend,
     "localtoken=redis.call('get',keys[1])ifnottokenortoken~=argv[1]thenreturn0endlocalexpiration="
     "redis.call('pttl',keys[1])ifnotexpirationthenexpiration=0endifexpiration<0thenreturn0end"
     "localnewttl=argv[2]ifargv[3]=='0'thennewttl=argv[2]+expirationendredis.call('pexpire',"
     "keys[1],newttl)return1"},
    {Script::kCount, "returnredis.call('incrby',keys[1],argv[1])"},
    {Script::kCountIfThere,
     "localexists=redis.call('exists',keys[1])if(exists==1)thenreturnredis.call('incrby',keys[1],"
     "argv[1])elsereturnfalseend"},
    {Script::kCountFor,
     "localcurrentlocalamount=tonumber(argv[2])current=redis.call('incrby',keys[1],amount)"
     "iftonumber(current)==amountthenredis.call('expire',keys[1],argv[1])endreturncurrent"},
    {Script::kCountAndTell,
     "redis.call('set',keys[1],0,'ex',argv[2],'nx')localconsumed=redis.call('incrby',keys[1],"
     "argv[1])localttl=redis.call('pttl',keys[1])ifttl==-1thenredis.call('expire',keys[1],argv[2])"
     "ttl=1000*argv[2]endreturn{consumed,ttl}"},
};

std::string Normalised(std::string_view text) {
  std::string normal;
  for (const char c : text) {
    if (absl::ascii_isspace(static_cast<unsigned char>(c)) || c == ';') continue;
    normal += c == '"' ? '\'' : absl::ascii_tolower(static_cast<unsigned char>(c));
  }
  return normal;
}

}  // namespace

Script RecogniseScript(std::string_view text) {
  constexpr size_t kTextMax = 4096;
  if (text.size() > kTextMax) return Script::kUnknown;
  const std::string normal = Normalised(text);
  for (const auto& known : kKnown) {
    if (normal == known.text) return known.script;
  }
  return Script::kUnknown;
}

std::string Sha1Hex(std::string_view text) {
  std::array<unsigned char, SHA_DIGEST_LENGTH> digest;
  SHA1(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data());
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(digest.data()), digest.size()));
}

void LoadedScripts::Add(const std::string& sha1, Script script) {
  const MutexLock lock(mutex_);
  if (loaded_.size() < kMax) loaded_.emplace(sha1, script);
}

Script LoadedScripts::Find(const std::string& sha1) const {
  const MutexLock lock(mutex_);
  const auto found = loaded_.find(sha1);
  return found == loaded_.end() ? Script::kUnknown : found->second;
}

void LoadedScripts::Clear() {
  const MutexLock lock(mutex_);
  loaded_.clear();
}

namespace redis {
namespace {

using Kind = Operation::Kind;
using absl::StatusCode;
using std::chrono::milliseconds;

constexpr char kNoLua[] =
    "ERR there is no Lua here. The scripts of locks and counters of some libraries are known: see "
    "docs/proxy.md";

// The arguments behind the key.
std::string_view Argument(const Job& job, size_t number) {
  const size_t at = 3 + number;
  return at < job.words().size() ? job.words()[at] : std::string_view();
}

void Read(Job& job);

void Written(Job& job) {
  const Operation& write = job.answer();
  if (write.code == StatusCode::kFailedPrecondition && job.TryAgain()) return Read(job);
  if (write.code != StatusCode::kOk) return Fail(job, write);
  Reply(job).Integer(write.found ? 1 : 0);
}

void Remove(Job& job, uint64_t version) {
  job.Begin(Kind::kDelete, job.keys[0]).put.only_if_version = version;
  job.Then(Written);
}

// Sets how long the item lives from now on. If the time is over, removes it, as Redis does.
void Touch(Job& job, uint64_t version, int64_t ms) {
  if (ms <= 0) return Remove(job, version);
  PutOptions& put = job.Begin(Kind::kTouch, job.keys[0]).put;
  put.only_if_version = version;
  put.ttl = milliseconds(ms);
  job.Then(Written);
}

void Compared(Job& job) {
  const Operation& got = job.answer();
  if (got.code != StatusCode::kOk) return Fail(job, got);
  if (!got.found || got.found_value() != Argument(job, 1)) return Reply(job).Integer(0);
  const uint64_t version = got.info.version;
  const Script script = job.scratch.script;
  if (script == Script::kDelete) return Remove(job, version);
  if (script == Script::kExtend && got.info.expiry_ms == 0) return Reply(job).Integer(0);
  const int64_t left = got.info.ttl_left.count();
  const auto ms =
      MsFromNow(job, Argument(job, 2), {script == Script::kExpireSeconds, false}, Span::kAny);
  if (!ms) return;
  Touch(job, version, script == Script::kExtend && Argument(job, 3) == "0" ? *ms + left : *ms);
}

void Read(Job& job) {
  job.Begin(Kind::kGet, job.keys[0]);
  job.Then(Compared);
}

// --- counters ---

void ReplyCount(Job& job, int64_t left_ms) {
  RespReply reply = Reply(job);
  const bool tells = job.scratch.script == Script::kCountAndTell;
  if (tells) reply.Array(2);
  reply.Integer(static_cast<int64_t>(job.scratch.initial));
  if (tells) reply.Integer(left_ms);
}

void CountTouched(Job& job) {
  if (job.answer().code != StatusCode::kOk) return Fail(job, job.answer());
  ReplyCount(job, job.scratch.put.ttl.count());
}

void TouchCount(Job& job) {
  job.Begin(Kind::kTouch, job.keys[0]).put.ttl = job.scratch.put.ttl;
  job.Then(CountTouched);
}

void CountLooked(Job& job) {
  const Operation& got = job.answer();
  if (got.code != StatusCode::kOk) return Fail(job, got);
  if (got.found && got.info.expiry_ms == 0) return TouchCount(job);
  ReplyCount(job, got.found ? got.info.ttl_left.count() : -2);
}

void ScriptCounted(Job& job) {
  const Operation& incr = job.answer();
  const Script script = job.scratch.script;
  if (incr.code == StatusCode::kNotFound) return Reply(job).Null();
  if (incr.code == StatusCode::kFailedPrecondition) return Fail(job, kNoInteger);
  if (incr.code == StatusCode::kOutOfRange) {
    return Fail(job, "ERR increment or decrement would overflow");
  }
  if (incr.code != StatusCode::kOk) return Fail(job, incr);
  job.scratch.initial = static_cast<uint64_t>(incr.number);
  if (script == Script::kCountAndTell) {
    job.Begin(Kind::kGet, job.keys[0]).wants_value = false;
    return job.Then(CountLooked);
  }
  // The script of a counter that was 0 sets its time to live, too.
  const bool begins = incr.number == static_cast<int64_t>(job.scratch.delta);
  if (script == Script::kCountFor && begins) return TouchCount(job);
  ReplyCount(job, 0);
}

void CountByScript(Job& job) {
  Operation& incr = job.Begin(Kind::kIncr, job.keys[0]);
  incr.delta = static_cast<int64_t>(job.scratch.delta);
  incr.put.only_if_present = job.scratch.script == Script::kCountIfThere;
  incr.put.ttl = job.scratch.put.ttl;
  job.Then(ScriptCounted);
}

void PrepareCounter(Job& job, Script script) {
  const bool is_for = script == Script::kCountFor;
  int64_t delta = 0;
  if (!ParseInteger(Argument(job, is_for ? 2 : 1), &delta)) return Fail(job, kNoInteger);
  job.scratch.delta = static_cast<uint64_t>(delta);
  if (is_for || script == Script::kCountAndTell) {
    const auto ms = MsFromNow(job, Argument(job, is_for ? 1 : 2), {true, false}, Span::kForward);
    if (!ms) return;
    job.scratch.put.ttl = milliseconds(*ms);
  }
  job.Then(CountByScript);
}

void Run(Job& job, Script script) {
  if (job.words()[2] != "1" || job.words().size() < 4) {
    return Fail(job, "ERR this script has one key");
  }
  job.keys.assign(1, job.words()[3]);
  if (!KeysFit(job)) return;
  job.scratch.script = script;
  if (script >= Script::kCount) return PrepareCounter(job, script);
  job.Then(Read);
}

}  // namespace

void PrepareEval(Job& job) {
  const std::string_view text = job.words()[1];
  const Script script = RecogniseScript(text);
  if (script == Script::kUnknown) return Fail(job, kNoLua);
  // Adds the script, so that EVALSHA finds it, as in Redis.
  job.service->scripts->Add(Sha1Hex(text), script);
  Run(job, script);
}

void PrepareEvalSha(Job& job) {
  const Script script = job.service->scripts->Find(absl::AsciiStrToLower(
      absl::string_view(job.words()[1].data(), std::min<size_t>(job.words()[1].size(), 64))));
  if (script == Script::kUnknown) return Fail(job, "NOSCRIPT No matching script. Please use EVAL.");
  Run(job, script);
}

void PrepareScript(Job& job) {
  const auto& words = job.words();
  const std::string what = Upper(words[1]);
  if (what == "LOAD" && words.size() == 3) {
    const Script script = RecogniseScript(words[2]);
    if (script == Script::kUnknown) return Fail(job, kNoLua);
    const std::string sha1 = Sha1Hex(words[2]);
    job.service->scripts->Add(sha1, script);
    return Reply(job).Bulk(sha1);
  }
  if (what == "EXISTS" && words.size() > 2) {
    RespReply reply = Reply(job);
    reply.Array(words.size() - 2);
    for (size_t i = 2; i < words.size(); ++i) {
      const std::string sha1 = absl::AsciiStrToLower(Upper(words[i].substr(0, 64)));
      reply.Integer(job.service->scripts->Find(sha1) == Script::kUnknown ? 0 : 1);
    }
    return;
  }
  if (what == "FLUSH") {
    job.service->scripts->Clear();
    return Reply(job).Simple("OK");
  }
  Fail(job, "ERR of SCRIPT there are LOAD, EXISTS and FLUSH");
}

}  // namespace redis
}  // namespace gannet::proxy
