#include "proxy/jobs/redis_commands.h"

#include <cctype>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/layout/item.h"
#include "proxy/jobs/store_error.h"

namespace gannet::proxy {
namespace redis {
namespace {

using Kind = Operation::Kind;
using absl::StatusCode;

// Returns false, and replies, if an operation of the job failed.
bool AllAnswered(Job& job) {
  for (const Operation& asked : job.answers()) {
    if (asked.code == StatusCode::kOk) continue;
    Fail(job, asked);
    return false;
  }
  return true;
}

// --- GET, MGET
// ------------------------------------------------------------------------------------

void Got(Job& job) {
  if (!AllAnswered(job)) return;
  RespReply reply = Reply(job);
  if (job.scratch.is_meta) reply.Array(job.keys.size());
  for (const Operation& got : job.answers()) {
    job.counters->gets.Add();
    if (!got.found) {
      reply.Null();
      continue;
    }
    job.counters->hits.Add();
    reply.Bulk(got.found_value());
  }
}

void Get(Job& job) {
  for (const std::string_view key : job.keys) job.Begin(Kind::kGet, key);
  job.Then(Got);
}

void PrepareGet(Job& job) { job.Then(Get); }

void PrepareMget(Job& job) {
  job.scratch.is_meta = true;  // an array, also of one
  job.Then(Get);
}

// --- EXISTS, TOUCH, STRLEN, TYPE, TTL, PTTL
// -------------------------------------------------------

void Looked(Job& job) {
  if (!AllAnswered(job)) return;
  const std::string name = Upper(job.words()[0]);
  const Operation& got = job.answer();
  if (name == "TYPE") return Reply(job).Simple(got.found ? "string" : "none");
  if (name == "STRLEN") return Reply(job).Integer(got.found ? got.info.value_bytes : 0);
  if (name == "TTL" || name == "PTTL") {
    if (!got.found) return Reply(job).Integer(-2);
    if (got.info.expiry_ms == 0) return Reply(job).Integer(-1);
    const int64_t ms = got.info.ttl_left.count();
    return Reply(job).Integer(name == "TTL" ? (ms + 500) / 1000 : ms);
  }
  int64_t found = 0;
  for (const Operation& one : job.answers()) found += one.found;
  Reply(job).Integer(found);
}

void Look(Job& job) {
  for (const std::string_view key : job.keys) job.Begin(Kind::kGet, key).wants_value = false;
  job.Then(Looked);
}

void PrepareLook(Job& job) { job.Then(Look); }

// --- DEL, MSET, FLUSHALL
// --------------------------------------------------------------------------

void Deleted(Job& job) {
  if (!AllAnswered(job)) return;
  int64_t found = 0;
  for (const Operation& one : job.answers()) found += one.found;
  Reply(job).Integer(found);
}

void Delete(Job& job) {
  for (const std::string_view key : job.keys) job.Begin(Kind::kDelete, key);
  job.Then(Deleted);
}

void PrepareDel(Job& job) { job.Then(Delete); }

void SaidOk(Job& job) {
  if (AllAnswered(job)) Reply(job).Simple("OK");
}

void SetMany(Job& job) {
  for (size_t i = 1; i + 1 < job.words().size(); i += 2) {
    job.Begin(Kind::kPut, job.words()[i]).value = job.words()[i + 1];
  }
  job.counters->sets.Add(job.keys.size());
  job.Then(SaidOk);
}

void PrepareMset(Job& job) {
  if (job.words().size() % 2 == 0) {
    return Fail(job, "ERR wrong number of arguments for 'mset' command");
  }
  job.Then(SetMany);
}

void Flush(Job& job) {
  job.BeginOnEach(Kind::kFlush);
  job.Then(SaidOk);
}

void PrepareFlush(Job& job) {
  if (job.words().size() == 2) {
    const std::string how = Upper(job.words()[1]);
    if (how != "ASYNC" && how != "SYNC") return SyntaxError(job);
  }
  job.Then(Flush);
}

// --------------------------------------------------------------------------------------------------

enum class Keys : uint8_t { kNone, kOne, kAll, kPairs };

constexpr size_t kMany = SIZE_MAX;

struct Entry {
  std::string_view name;
  size_t words_min;
  size_t words_max;
  Keys keys;
  Access access;
  void (*prepare)(Job&);
};

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
    {"EXPIRE", 3, 3, Keys::kOne, Access::kWrite, PrepareExpire},
    {"PEXPIRE", 3, 3, Keys::kOne, Access::kWrite, PrepareExpire},
    {"EXPIREAT", 3, 3, Keys::kOne, Access::kWrite, PrepareExpire},
    {"PEXPIREAT", 3, 3, Keys::kOne, Access::kWrite, PrepareExpire},
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
    {"HELLO", 1, 8, Keys::kNone, Access::kNothing, PrepareHello},
    {"CLIENT", 2, kMany, Keys::kNone, Access::kNothing, PrepareClient},
    {"COMMAND", 1, kMany, Keys::kNone, Access::kNothing, PrepareCommand},
    {"CONFIG", 2, kMany, Keys::kNone, Access::kNothing, PrepareConfig},
    {"SELECT", 2, 2, Keys::kNone, Access::kNothing, PrepareSelect},
    {"QUIT", 1, kMany, Keys::kNone, Access::kNothing, PrepareQuit},
    {"RESET", 1, 1, Keys::kNone, Access::kNothing, PrepareReset},
    {"AUTH", 2, 3, Keys::kNone, Access::kNothing, PrepareAuth},
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
  const size_t end = keys == Keys::kNone ? 0 : keys == Keys::kOne ? 2 : words.size();
  for (size_t i = 1; i < end; i += step) job.keys.push_back(words[i]);
}

bool KeysFit(Job& job) {
  for (const std::string_view key : job.keys) {
    if (!key.empty() && key.size() <= kKeyBytesMax) continue;
    Fail(job, absl::StrCat("ERR a key of ", key.size(), " bytes: keys have 1 to ", kKeyBytesMax));
    return false;
  }
  return true;
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

void Fail(Job& job, const Operation& operation) {
  const char* code = operation.code == StatusCode::kResourceExhausted  ? "OOM "
                     : operation.code == StatusCode::kPermissionDenied ? "NOPERM "
                                                                       : "ERR ";
  Fail(job, code + StoreErrorText(operation));
}

void SyntaxError(Job& job) { Fail(job, "ERR syntax error"); }

}  // namespace redis

void PrepareRedis(Job& job) {
  const auto& words = job.words();
  // A name that is longer is none. It must not break the line of the error either.
  const std::string_view given = words[0].substr(0, 64);
  const std::string name = redis::Upper(given);
  const redis::Entry* entry = redis::Find(name);
  if (entry == nullptr) {
    std::string shown(given);
    for (char& c : shown) c = std::isprint(static_cast<unsigned char>(c)) != 0 ? c : '?';
    return redis::Fail(job, absl::StrCat("ERR unknown command '", shown, "'"));
  }
  if (words.size() < entry->words_min || words.size() > entry->words_max) {
    return redis::Fail(job, absl::StrCat("ERR wrong number of arguments for '",
                                         absl::AsciiStrToLower(name), "' command"));
  }
  job.access = entry->access;
  redis::TakeKeys(job, entry->keys);
  if (redis::KeysFit(job)) entry->prepare(job);
}

}  // namespace gannet::proxy
