// Redis' commands that ask for keys, or remove them.

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/layout/item.h"
#include "common/layout/size_class.h"
#include "proxy/jobs/redis_commands.h"
#include "proxy/jobs/store_error.h"

namespace gannet::proxy::redis {
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

// --- GET, MGET ---

bool AnyAnswered(Job& job) {
  const auto answered = [](const Operation& it) { return it.code == StatusCode::kOk; };
  return std::any_of(job.answers().begin(), job.answers().end(), answered);
}

// If a server is lost, the keys of the others are answered, and each of its keys is an error.
void Got(Job& job) {
  if (!AnyAnswered(job)) return Fail(job, job.answer());
  RespReply reply = Reply(job);
  if (job.scratch.is_meta) reply.Array(job.keys.size());
  for (const Operation& got : job.answers()) {
    if (got.code != StatusCode::kOk) {
      reply.Error(ErrorOf(got));
      continue;
    }
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

// --- EXISTS, TOUCH, STRLEN, TYPE, TTL, PTTL ---

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
  if (name == "EXPIRETIME" || name == "PEXPIRETIME") {
    if (!got.found) return Reply(job).Integer(-2);
    if (got.info.expiry_ms == 0) return Reply(job).Integer(-1);
    const int64_t at_ms = NowMs() + got.info.ttl_left.count();
    return Reply(job).Integer(name == "EXPIRETIME" ? (at_ms + 500) / 1000 : at_ms);
  }
  if (name == "MEMORY") {
    if (!got.found) return Reply(job).Null();
    const uint64_t bytes = ItemBytes(job.keys[0].size(), got.info.value_bytes);
    return Reply(job).Integer(static_cast<int64_t>(SizeClassBytes(SizeClassFor(bytes))));
  }
  int64_t found = 0;
  for (const Operation& one : job.answers()) found += one.found;
  Reply(job).Integer(found);
}

void Look(Job& job) {
  for (const std::string_view key : job.keys) job.Begin(Kind::kGet, key).wants_value = false;
  job.Then(Looked);
}

// --- OBJECT ---

// Returns how Redis would keep such a value.
const char* EncodingOf(std::string_view value) {
  constexpr size_t kEmbeddedMax = 44;
  int64_t number = 0;
  const bool is_integer =
      value.size() <= 20 && ParseNumber(value, &number) && std::to_string(number) == value;
  if (is_integer) return "int";
  return value.size() <= kEmbeddedMax ? "embstr" : "raw";
}

void ObjectRead(Job& job) {
  if (!AllAnswered(job)) return;
  const Operation& got = job.answer();
  if (!got.found) return Reply(job).Null();
  if (Upper(job.words()[1]) == "REFCOUNT") return Reply(job).Integer(1);
  Reply(job).Bulk(EncodingOf(got.found_value()));
}

void ReadObject(Job& job) {
  job.Begin(Kind::kGet, job.keys[0]);
  job.Then(ObjectRead);
}

// --- DEL, MSET, FLUSHALL ---

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

void Flushed(Job& job) {
  const std::string failed = FailedServers(job);
  if (failed.empty()) return Reply(job).Simple("OK");
  Fail(job, absl::StrCat("ERR the other servers are flushed, but not ", failed));
}

void Flush(Job& job) {
  job.BeginOnEach(Kind::kFlush);
  job.Then(Flushed);
}

}  // namespace

void PrepareGet(Job& job) { job.Then(Get); }

void PrepareMget(Job& job) {
  job.scratch.is_meta = true;  // an array, also of one
  job.Then(Get);
}

void PrepareLook(Job& job) { job.Then(Look); }

void PrepareObject(Job& job) {
  const std::string what = Upper(job.words()[1]);
  if (what == "HELP") {
    Reply(job).Array(1);
    return Reply(job).Bulk("OBJECT ENCODING|REFCOUNT key");
  }
  if (job.keys.empty()) return SyntaxError(job);
  if (what == "FREQ") {
    return Fail(job, "ERR An LFU maxmemory policy is not selected, access frequency not tracked");
  }
  if (what == "IDLETIME") return Fail(job, "ERR idle times are not tracked here");
  if (what != "ENCODING" && what != "REFCOUNT") return SyntaxError(job);
  job.Then(ReadObject);
}

void PrepareMemory(Job& job) {
  const auto& words = job.words();
  const bool is_usage = Upper(words[1]) == "USAGE" && words.size() >= 3;
  if (!is_usage) return Fail(job, "ERR of MEMORY there is USAGE key [SAMPLES count]");
  if (words.size() != 3 && (words.size() != 5 || Upper(words[3]) != "SAMPLES")) {
    return SyntaxError(job);
  }
  job.Then(Look);
}

void PrepareDel(Job& job) { job.Then(Delete); }

void PrepareMset(Job& job) {
  if (job.words().size() % 2 == 0) {
    return Fail(job, "ERR wrong number of arguments for 'mset' command");
  }
  job.Then(SetMany);
}

void PrepareFlush(Job& job) {
  if (job.words().size() == 2) {
    const std::string how = Upper(job.words()[1]);
    if (how != "ASYNC" && how != "SYNC") return SyntaxError(job);
  }
  job.Then(Flush);
}

}  // namespace gannet::proxy::redis
