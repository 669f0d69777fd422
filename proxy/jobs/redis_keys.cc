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

// The most that a reply has beside a value: its length, and the ends of two lines.
constexpr size_t kReplyOverhead = 32;

void Get(Job& job);

// If a server is lost, the keys of the others are answered, and each of its keys is an error.
void Got(Job& job) {
  if (!AnyAnswered(job)) return Fail(job, job.answer());
  RespReply reply = Reply(job);
  const bool is_first = job.reply.empty();
  if (job.scratch.is_meta && is_first) reply.Array(job.keys.size());
  // Without this, a long reply would take up to twice its size.
  size_t bytes = job.reply.size();
  for (const Operation& got : job.answers()) bytes += kReplyOverhead + got.found_value().size();
  if (is_first) job.reply.reserve(bytes);
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
  if (!job.has_more_keys()) return;
  job.ChargeReply();
  Get(job);
}

void Get(Job& job) {
  job.BeginOnNextKeys([&](size_t i) { job.Begin(Kind::kGet, job.keys[i]); });
  job.Then(Got);
}

// --- EXISTS, TOUCH, STRLEN, TYPE, TTL, PTTL ---

void Look(Job& job);

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
  for (const Operation& one : job.answers()) job.scratch.initial += one.found;
  if (job.has_more_keys()) return Look(job);
  Reply(job).Integer(static_cast<int64_t>(job.scratch.initial));
}

void Look(Job& job) {
  job.BeginOnNextKeys([&](size_t i) { job.Begin(Kind::kGet, job.keys[i]).wants_value = false; });
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

void Delete(Job& job);
void SetMany(Job& job);

// Notes the first error. The other keys are written all the same.
void NoteError(Job& job) {
  for (const Operation& write : job.answers()) {
    if (write.code == StatusCode::kOk || !job.scratch.value.empty()) continue;
    job.scratch.value = ErrorOf(write);
  }
}

void Deleted(Job& job) {
  NoteError(job);
  for (const Operation& one : job.answers()) job.scratch.initial += one.found;
  if (job.has_more_keys()) return Delete(job);
  if (!job.scratch.value.empty()) return Fail(job, job.scratch.value);
  Reply(job).Integer(static_cast<int64_t>(job.scratch.initial));
}

void Delete(Job& job) {
  job.BeginOnNextKeys([&](size_t i) { job.Begin(Kind::kDelete, job.keys[i]); });
  job.Then(Deleted);
}

void BeginDelete(Job& job) {
  job.DropEqualKeys();
  Delete(job);
}

void ManySet(Job& job) {
  NoteError(job);
  if (job.has_more_keys()) return SetMany(job);
  if (!job.scratch.value.empty()) return Fail(job, job.scratch.value);
  Reply(job).Simple("OK");
}

void SetMany(Job& job) {
  job.BeginOnNextKeys(
      [&](size_t i) { job.Begin(Kind::kPut, job.keys[i]).value = job.words()[2 * i + 2]; });
  job.Then(ManySet);
}

void BeginSetMany(Job& job) {
  job.counters->sets.Add(job.keys.size());
  job.DropEqualKeys();
  SetMany(job);
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

void PrepareDel(Job& job) { job.Then(BeginDelete); }

void PrepareMset(Job& job) {
  if (job.words().size() % 2 == 0) {
    return Fail(job, "ERR wrong number of arguments for 'mset' command");
  }
  job.Then(BeginSetMany);
}

void PrepareFlush(Job& job) {
  if (job.words().size() == 2) {
    const std::string how = Upper(job.words()[1]);
    if (how != "ASYNC" && how != "SYNC") return SyntaxError(job);
  }
  job.scratch.database = job.client->database;
  const bool all = Upper(job.words()[0]) == "FLUSHALL" || job.service->databases == 1;
  job.Then(all ? Flush : FlushDatabase);
}

}  // namespace gannet::proxy::redis
