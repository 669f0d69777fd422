#include "proxy/jobs/redis_commands.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/printable.h"
#include "proxy/jobs/store_error.h"

namespace gannet::proxy {
namespace redis {
namespace {

enum class Keys : uint8_t { kNone, kOne, kSecond, kTwo, kAll, kPairs };

constexpr size_t kMany = SIZE_MAX;

struct Entry {
  std::string_view name;
  size_t words_min;
  size_t words_max;
  Keys keys;
  Access access;
  void (*prepare)(Job&);
  // What MULTI does with it. Commands about the connection are not queued.
  enum class InMulti : uint8_t { kQueued, kAtOnce, kRefused } in_multi = InMulti::kQueued;
  bool before_auth = false;  // whoever has not given a password may use it
};

using InMulti = Entry::InMulti;

constexpr Entry kCommands[] = {
    {"GET", 2, 2, Keys::kOne, Access::kRead, PrepareGet},
    {"SET", 3, 16, Keys::kOne, Access::kWrite, PrepareSet},
    {"MGET", 2, kMany, Keys::kAll, Access::kRead, PrepareMget},
    {"MSET", 3, kMany, Keys::kPairs, Access::kWrite, PrepareMset},
    {"DEL", 2, kMany, Keys::kAll, Access::kWrite, PrepareDel},
    {"UNLINK", 2, kMany, Keys::kAll, Access::kWrite, PrepareDel},
    {"EXISTS", 2, kMany, Keys::kAll, Access::kRead, PrepareLook},
    {"TOUCH", 2, kMany, Keys::kAll, Access::kRead, PrepareLook},
    {"STRLEN", 2, 2, Keys::kOne, Access::kRead, PrepareLook},
    {"TYPE", 2, 2, Keys::kOne, Access::kRead, PrepareLook},
    {"TTL", 2, 2, Keys::kOne, Access::kRead, PrepareLook},
    {"PTTL", 2, 2, Keys::kOne, Access::kRead, PrepareLook},
    {"EXPIRETIME", 2, 2, Keys::kOne, Access::kRead, PrepareLook},
    {"PEXPIRETIME", 2, 2, Keys::kOne, Access::kRead, PrepareLook},
    {"OBJECT", 2, 3, Keys::kSecond, Access::kRead, PrepareObject},
    {"MEMORY", 2, 5, Keys::kSecond, Access::kRead, PrepareMemory},
    {"GETRANGE", 4, 4, Keys::kOne, Access::kRead, PrepareGetRange},
    {"SUBSTR", 4, 4, Keys::kOne, Access::kRead, PrepareGetRange},
    {"SETRANGE", 4, 4, Keys::kOne, Access::kSteps, PrepareSetRange},
    {"INCRBYFLOAT", 3, 3, Keys::kOne, Access::kSteps, PrepareIncrByFloat},
    {"MSETNX", 3, kMany, Keys::kPairs, Access::kSteps, PrepareMsetNx},
    {"RENAME", 3, 3, Keys::kTwo, Access::kSteps, PrepareRename},
    {"RENAMENX", 3, 3, Keys::kTwo, Access::kSteps, PrepareRename},
    {"COPY", 3, kMany, Keys::kTwo, Access::kSteps, PrepareCopy},
    {"MOVE", 3, 3, Keys::kOne, Access::kSteps, PrepareMove},
    {"SWAPDB", 3, 3, Keys::kNone, Access::kNothing, PrepareSwapDb},
    {"KEYS", 2, 2, Keys::kNone, Access::kAll, PrepareKeys},
    {"SCAN", 2, 8, Keys::kNone, Access::kAll, PrepareScan},
    {"MULTI", 1, 1, Keys::kNone, Access::kNothing, PrepareMulti, InMulti::kAtOnce},
    {"EXEC", 1, 1, Keys::kNone, Access::kAll, PrepareExec, InMulti::kAtOnce},
    {"DISCARD", 1, 1, Keys::kNone, Access::kNothing, PrepareDiscard, InMulti::kAtOnce},
    {"WATCH", 2, kMany, Keys::kAll, Access::kSteps, PrepareWatch, InMulti::kAtOnce},
    {"UNWATCH", 1, 1, Keys::kNone, Access::kNothing, PrepareUnwatch},
    {"EVAL", 3, kMany, Keys::kNone, Access::kSteps, PrepareEval},
    {"EVALSHA", 3, kMany, Keys::kNone, Access::kSteps, PrepareEvalSha},
    {"SCRIPT", 2, kMany, Keys::kNone, Access::kNothing, PrepareScript},
    {"TIME", 1, 1, Keys::kNone, Access::kNothing, PrepareTime},
    {"EXPIRE", 3, 6, Keys::kOne, Access::kWrite, PrepareExpire},
    {"PEXPIRE", 3, 6, Keys::kOne, Access::kWrite, PrepareExpire},
    {"EXPIREAT", 3, 6, Keys::kOne, Access::kWrite, PrepareExpire},
    {"PEXPIREAT", 3, 6, Keys::kOne, Access::kWrite, PrepareExpire},
    {"PERSIST", 2, 2, Keys::kOne, Access::kSteps, PreparePersist},
    {"INCR", 2, 2, Keys::kOne, Access::kWrite, PrepareCount},
    {"DECR", 2, 2, Keys::kOne, Access::kWrite, PrepareCount},
    {"INCRBY", 3, 3, Keys::kOne, Access::kWrite, PrepareCount},
    {"DECRBY", 3, 3, Keys::kOne, Access::kWrite, PrepareCount},
    {"APPEND", 3, 3, Keys::kOne, Access::kSteps, PrepareAppend},
    {"SETNX", 3, 3, Keys::kOne, Access::kWrite, PrepareSet},
    {"SETEX", 4, 4, Keys::kOne, Access::kWrite, PrepareSet},
    {"PSETEX", 4, 4, Keys::kOne, Access::kWrite, PrepareSet},
    {"GETSET", 3, 3, Keys::kOne, Access::kWrite, PrepareSet},
    {"GETDEL", 2, 2, Keys::kOne, Access::kSteps, PrepareGetDel},
    {"GETEX", 2, 4, Keys::kOne, Access::kSteps, PrepareGetEx},
    {"FLUSHALL", 1, 2, Keys::kNone, Access::kAll, PrepareFlush},
    {"FLUSHDB", 1, 2, Keys::kNone, Access::kAll, PrepareFlush},
    {"DBSIZE", 1, 1, Keys::kNone, Access::kAll, PrepareDbSize},
    {"INFO", 1, kMany, Keys::kNone, Access::kNothing, PrepareInfo},
    {"PING", 1, 2, Keys::kNone, Access::kNothing, PreparePing},
    {"ECHO", 2, 2, Keys::kNone, Access::kNothing, PrepareEcho},
    {"HELLO", 1, 8, Keys::kNone, Access::kNothing, PrepareHello, InMulti::kRefused, true},
    {"CLIENT", 2, kMany, Keys::kNone, Access::kNothing, PrepareClient, InMulti::kRefused},
    {"COMMAND", 1, kMany, Keys::kNone, Access::kNothing, PrepareCommand},
    {"CONFIG", 2, kMany, Keys::kNone, Access::kNothing, PrepareConfig},
    {"SLOWLOG", 2, 3, Keys::kNone, Access::kNothing, PrepareSlowLog},
    {"LATENCY", 2, kMany, Keys::kNone, Access::kNothing, PrepareLatency},
    {"SELECT", 2, 2, Keys::kNone, Access::kNothing, PrepareSelect},
    {"QUIT", 1, kMany, Keys::kNone, Access::kNothing, PrepareQuit, InMulti::kAtOnce, true},
    {"RESET", 1, 1, Keys::kNone, Access::kNothing, PrepareReset, InMulti::kAtOnce, true},
    {"AUTH", 2, 3, Keys::kNone, Access::kNothing, PrepareAuth, InMulti::kRefused, true},
};

const Entry* Find(std::string_view name) {
  for (const Entry& entry : kCommands) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

void TakeKeys(Job& job, Keys keys) {
  const auto& words = job.words();
  const size_t step = keys == Keys::kPairs ? 2 : 1;
  const size_t begin = keys == Keys::kSecond ? 2 : 1;
  size_t end = words.size();
  if (keys == Keys::kNone) end = 0;
  if (keys == Keys::kOne) end = 2;
  if (keys == Keys::kTwo || keys == Keys::kSecond) end = std::min<size_t>(end, 3);
  for (size_t i = begin; i < end; i += step) job.keys.push_back(words[i]);
}

// Families of commands that will not come, because the store has strings only.
constexpr struct {
  std::string_view what;
  std::string_view names;  // between blanks
} kRefused[] = {
    {"hashes",
     " HSET HGET HMSET HMGET HGETALL HDEL HEXISTS HINCRBY HINCRBYFLOAT HKEYS HVALS HLEN HSCAN "
     "HSETNX HSTRLEN HRANDFIELD "},
    {"lists",
     " LPUSH RPUSH LPOP RPOP LRANGE LLEN LINDEX LSET LREM LTRIM LINSERT LPUSHX RPUSHX LMOVE LPOS "
     "LMPOP BLPOP BRPOP BLMOVE BLMPOP RPOPLPUSH BRPOPLPUSH "},
    {"sets",
     " SADD SREM SMEMBERS SISMEMBER SMISMEMBER SCARD SPOP SRANDMEMBER SINTER SINTERSTORE "
     "SINTERCARD SUNION SUNIONSTORE SDIFF SDIFFSTORE SMOVE SSCAN "},
    {"sorted sets",
     " ZADD ZREM ZRANGE ZREVRANGE ZRANGEBYSCORE ZREVRANGEBYSCORE ZRANGEBYLEX ZRANGESTORE ZSCORE "
     "ZMSCORE ZCARD ZCOUNT ZRANK ZREVRANK ZINCRBY ZPOPMIN ZPOPMAX ZUNION ZINTER ZDIFF ZSCAN "
     "ZREMRANGEBYSCORE ZREMRANGEBYRANK BZPOPMIN BZPOPMAX GEOADD GEOSEARCH GEOPOS GEODIST "},
    {"streams",
     " XADD XREAD XRANGE XREVRANGE XLEN XDEL XTRIM XGROUP XREADGROUP XACK XINFO XPENDING XCLAIM "
     "XAUTOCLAIM "},
    {"channels",
     " PUBLISH SUBSCRIBE UNSUBSCRIBE PSUBSCRIBE PUNSUBSCRIBE PUBSUB SSUBSCRIBE SUNSUBSCRIBE "
     "SPUBLISH MONITOR "},
    {"bitmaps and counters of distinct things",
     " SETBIT GETBIT BITCOUNT BITOP BITPOS BITFIELD PFADD PFCOUNT PFMERGE "},
};

// Returns the error for a command that is not there.
std::string Unknown(std::string_view given, const std::string& name) {
  for (const auto& family : kRefused) {
    if (family.names.find(absl::StrCat(" ", name, " ")) == std::string_view::npos) continue;
    return absl::StrCat("ERR '", name, "' is not supported: Gannet has strings only, and no ",
                        std::string(family.what));
  }
  std::string shown(given);
  for (char& c : shown) c = PrintableOf(c);
  return absl::StrCat("ERR unknown command '", shown, "'");
}

// Returns what is wrong with the command's name and number of words, or nothing.
std::string WrongWords(const Job& job, const Entry* entry, std::string_view given,
                       const std::string& name) {
  if (entry == nullptr) return Unknown(given, name);
  const size_t words = job.words().size();
  if (words >= entry->words_min && words <= entry->words_max) return "";
  return absl::StrCat("ERR wrong number of arguments for '", absl::AsciiStrToLower(name),
                      "' command");
}

// A script sees some items only, and has no connection. WATCH is about the connection.
bool MayBeInScript(const Entry& entry) {
  const bool uses_keys = entry.keys != Keys::kNone && entry.in_multi == InMulti::kQueued;
  return uses_keys || entry.name == "TIME" || entry.name == "PING" || entry.name == "ECHO";
}

// Queues a command after MULTI. If the command is wrong, refuses it, and then EXEC refuses
// everything.
void QueueOrRefuse(Job& job, const Entry& entry) {
  if (entry.in_multi == InMulti::kRefused) {
    Fail(job, "ERR Command not allowed inside a transaction");
  } else if (KeysFit(job)) {
    return Queue(job);
  }
  job.client->transaction.refused = true;
}

}  // namespace

std::string Upper(std::string_view word) {
  std::string upper(word);
  absl::AsciiStrToUpper(&upper);
  return upper;
}

void Fail(Job& job, std::string_view error) {
  job.reply.clear();
  Reply(job).Error(error);
}

void Fail(Job& job, const Operation& operation) { Fail(job, ErrorOf(operation)); }

std::string ErrorOf(const Operation& operation) {
  const char* code = operation.code == absl::StatusCode::kResourceExhausted  ? "OOM "
                     : operation.code == absl::StatusCode::kPermissionDenied ? "NOPERM "
                                                                             : "ERR ";
  return code + StoreErrorText(operation);
}

namespace {

bool MayHave(Job& job, Database database, std::string_view name) {
  if (database.MayHave(name)) return true;
  if (database.IsReserved(name)) {
    Fail(job, "ERR a key of database 0 that begins as those of others do, with \\0db");
  } else {
    Fail(job, absl::StrCat("ERR a key of ", name.size(), " bytes: keys have 1 to ",
                           database.name_bytes_max()));
  }
  return false;
}

}  // namespace

bool KeysFit(Job& job) {
  return std::all_of(job.keys.begin(), job.keys.end(), [&](std::string_view name) {
    return MayHave(job, job.client->database, name);
  });
}

std::optional<std::string_view> KeyIn(Job& job, Database database, std::string_view name) {
  if (!MayHave(job, database, name)) return {};
  if (database.number == 0) return name;
  return job.KeepKey(database.KeyOf(name));
}

bool TakeNames(Job& job) {
  if (!KeysFit(job)) return false;
  const Database& database = job.client->database;
  if (database.number == 0) return true;
  for (std::string_view& key : job.keys) key = job.KeepKey(database.KeyOf(key));
  return true;
}

void SyntaxError(Job& job) { Fail(job, "ERR syntax error"); }

}  // namespace redis

void PrepareRedis(Job& job) {
  const auto& words = job.words();
  // No command has a longer name. And it must not break the line of the error.
  const std::string_view given = words[0].substr(0, 64);
  const std::string name = redis::Upper(given);
  const redis::Entry* entry = redis::Find(name);
  Transaction& transaction = job.client->transaction;
  if (const std::string wrong = redis::WrongWords(job, entry, given, name); !wrong.empty()) {
    transaction.refused = transaction.open;
    return redis::Fail(job, wrong);
  }
  if (!job.client->authenticated && !entry->before_auth) {
    return redis::Fail(job, "NOAUTH Authentication required.");
  }
  if (job.client->in_script && !redis::MayBeInScript(*entry)) {
    return redis::Fail(job, "ERR This Redis command is not allowed from script");
  }
  job.access = entry->access;
  redis::TakeKeys(job, entry->keys);
  if (transaction.open && entry->in_multi != redis::InMulti::kAtOnce) {
    return redis::QueueOrRefuse(job, *entry);
  }
  if (redis::TakeNames(job)) entry->prepare(job);
}

}  // namespace gannet::proxy
