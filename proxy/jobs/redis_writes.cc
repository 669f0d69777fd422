// Commands of Redis that write one key, as stages. If the store has no such operation, the command
// is a ReadModifyWrite.

#include <gannet/client.h>

#include <limits>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/layout/item.h"
#include "proxy/jobs/read_modify_write.h"
#include "proxy/jobs/redis_commands.h"

namespace gannet::proxy::redis {
namespace {

using Kind = Operation::Kind;
using absl::StatusCode;
using std::chrono::milliseconds;

void ReplyInteger(Job& job, int64_t number) { Reply(job).Integer(number); }

// --- SET and its kin ---

void SetReadFirst(Job& job);

bool IsSetnx(const Job& job) {
  return job.words()[0].size() == 5 && Upper(job.words()[0]) == "SETNX";
}

void EndOfSet(Job& job, bool stored) {
  if (IsSetnx(job)) return ReplyInteger(job, stored ? 1 : 0);
  if (job.scratch.returns_old) {
    if (!job.scratch.had_old) return Reply(job).Null();
    return Reply(job).Bulk(job.scratch.old_value);
  }
  if (!stored) return Reply(job).Null();
  Reply(job).Simple("OK");
}

void IgnoreRemoved(Job&) {}

// The time of what was stored is over already.
void RemoveStored(Job& job) {
  const uint64_t version = job.answer().info.version;
  job.Begin(Kind::kDelete, job.keys[0]).put.only_if_version = version;
  job.Then(IgnoreRemoved);
}

void SetDone(Job& job) {
  const Operation& put = job.answer();
  switch (put.code) {
    case StatusCode::kOk:
      EndOfSet(job, true);
      return job.scratch.over ? RemoveStored(job) : void();
    case StatusCode::kAlreadyExists:
    case StatusCode::kNotFound:
      return EndOfSet(job, false);
    case StatusCode::kFailedPrecondition:
      if (job.TryAgain()) return SetReadFirst(job);
      [[fallthrough]];
    default:
      return Fail(job, put);
  }
}

std::optional<std::string_view> NewWord(Job& job, const Operation& got, PutOptions& put) {
  job.scratch.had_old = got.found;
  if (got.found) job.TakeValue(&job.scratch.old_value);
  const PutOptions& wanted = job.scratch.put;
  if ((wanted.only_if_absent && got.found) || (wanted.only_if_present && !got.found)) {
    EndOfSet(job, false);
    return std::nullopt;
  }
  put.flags = wanted.flags;
  if (!job.scratch.keeps_ttl) put.ttl = wanted.ttl;
  return job.scratch.word;
}

void SetReadFirst(Job& job) { ReadModifyWrite(job, NewWord, SetDone); }

void Set(Job& job) {
  Operation& put = job.Begin(Kind::kPut, job.keys[0]);
  put.value = job.scratch.word;
  put.put = job.scratch.put;
  job.Then(SetDone);
}

bool TakeTtl(Job& job, std::string_view word, Unit unit) {
  const auto ms = MsFromNow(job, word, unit, Span::kForward);
  if (!ms) return false;
  job.scratch.over = *ms <= 0;
  job.scratch.put.ttl = milliseconds(std::max<int64_t>(*ms, 1));
  return true;
}

bool TakeSetOptions(Job& job) {
  const auto& words = job.words();
  PutOptions& put = job.scratch.put;
  std::string ttl_option;
  std::string_view ttl;
  for (size_t i = 3; i < words.size(); ++i) {
    const std::string option = Upper(words[i]);
    // One of these may be given again, and the last one counts.
    const bool is_ttl = UnitOf(option) && (ttl_option.empty() || ttl_option == option);
    if (is_ttl && i + 1 < words.size()) {
      ttl_option = option;
      ttl = words[++i];
    } else if (option == "NX") {
      put.only_if_absent = true;
    } else if (option == "XX") {
      put.only_if_present = true;
    } else if (option == "GET") {
      job.scratch.returns_old = true;
    } else if (option == "KEEPTTL") {
      job.scratch.keeps_ttl = true;
    } else {
      SyntaxError(job);
      return false;
    }
  }
  const bool contradicts =
      (put.only_if_absent && put.only_if_present) || (!ttl_option.empty() && job.scratch.keeps_ttl);
  if (contradicts) {
    SyntaxError(job);
    return false;
  }
  return ttl_option.empty() || TakeTtl(job, ttl, *UnitOf(ttl_option));
}

// --- APPEND ---

void AppendMeasured(Job& job) {
  const Operation& got = job.answer();
  if (got.code != StatusCode::kOk) return Fail(job, got);
  ReplyInteger(job, got.found ? got.info.value_bytes : 0);
}

std::optional<std::string_view> Appendix(Job& job, const Operation& got, PutOptions&) {
  std::string& value = job.scratch.value;
  const std::string_view old = got.found ? got.found_value() : std::string_view();
  value.reserve(old.size() + job.words()[2].size());
  return value.assign(old).append(job.words()[2]);
}

void AppendPut(Job& job) {
  if (job.answer().code != StatusCode::kOk) return Fail(job, job.answer());
  ReplyInteger(job, static_cast<int64_t>(job.scratch.value.size()));
}

void AppendByPut(Job& job) { ReadModifyWrite(job, Appendix, AppendPut); }

// The store does not say how long the value has become, so this asks for it.
void Appended(Job& job) {
  const StatusCode code = job.answer().code;
  if (code == StatusCode::kOutOfRange) return AppendByPut(job);
  if (code != StatusCode::kOk) return Fail(job, job.answer());
  job.Begin(Kind::kGet, job.keys[0]).wants_value = false;
  job.Then(AppendMeasured);
}

void Append(Job& job) {
  if (job.words()[2].size() > Client::kPieceBytesMax) return AppendByPut(job);
  job.Begin(Kind::kAppend, job.keys[0]).value = job.words()[2];
  job.Then(Appended);
}

// --- INCR ---

void Counted(Job& job) {
  const Operation& incr = job.answer();
  if (incr.code == StatusCode::kOk) return ReplyInteger(job, incr.number);
  if (incr.code == StatusCode::kFailedPrecondition) return Fail(job, kNoInteger);
  if (incr.code == StatusCode::kOutOfRange) {
    return Fail(job, "ERR increment or decrement would overflow");
  }
  Fail(job, incr);
}

void Count(Job& job) {
  job.Begin(Kind::kIncr, job.keys[0]).delta = static_cast<int64_t>(job.scratch.delta);
  job.Then(Counted);
}

// --- GETDEL, GETEX ---

void ReplyGot(Job& job) {
  const Operation& got = job.answer();
  if (got.code != StatusCode::kOk) return Fail(job, got);
  job.counters->gets.Add();
  if (!got.found) return Reply(job).Null();
  job.counters->hits.Add();
  Reply(job).Bulk(got.found_value());
}

void GetAndWrite(Job& job);

void WrittenAfterGet(Job& job) {
  const Operation& written = job.answer();
  if (written.others_wrote() && job.TryAgain()) return GetAndWrite(job);
  if (written.code != StatusCode::kOk) return Fail(job, written);
  job.counters->gets.Add();
  job.counters->hits.Add();
  Reply(job).Bulk(job.scratch.old_value);
}

void WriteAfterGet(Job& job) {
  const Operation& got = job.answer();
  if (got.code != StatusCode::kOk || !got.found) return ReplyGot(job);
  if (!job.scratch.value.empty()) return Fail(job, job.scratch.value);
  const bool persists = !job.scratch.over && job.scratch.ttl == milliseconds(0);
  if (persists && got.info.expiry_ms == 0) return ReplyGot(job);
  const uint64_t version = got.info.version;
  job.TakeValue(&job.scratch.old_value);
  Operation& write = job.Begin(job.scratch.over ? Kind::kDelete : Kind::kTouch, job.keys[0]);
  write.put.ttl = job.scratch.ttl;
  write.put.only_if_version = version;
  job.Then(WrittenAfterGet);
}

void GetAndWrite(Job& job) {
  job.Begin(Kind::kGet, job.keys[0]);
  job.Then(WriteAfterGet);
}

// A transaction makes its writes conditional, which a kGetAndTouch cannot be.
void GetEx(Job& job) {
  if (job.guard != nullptr) return GetAndWrite(job);
  job.Begin(Kind::kGetAndTouch, job.keys[0]).put.ttl = job.scratch.ttl;
  job.Then(ReplyGot);
}

void GetWithoutChange(Job& job) {
  job.Begin(Kind::kGet, job.keys[0]);
  job.Then(ReplyGot);
}

}  // namespace

void PrepareSet(Job& job) {
  const auto& words = job.words();
  const std::string name = Upper(words[0]);
  job.scratch.word = words.back();
  job.scratch.put.only_if_absent = name == "SETNX";
  job.scratch.returns_old = name == "GETSET";
  if (name == "SET") {
    job.scratch.word = words[2];
    if (!TakeSetOptions(job)) return;
  } else if (words.size() == 4 && !TakeTtl(job, words[2], {name == "SETEX", false})) {
    return;
  }
  job.counters->sets.Add();
  const bool reads = job.scratch.returns_old || job.scratch.keeps_ttl;
  if (reads || job.scratch.over) job.access = Access::kSteps;
  job.Then(reads ? SetReadFirst : Set);
}

void PrepareGetDel(Job& job) {
  job.scratch.over = true;
  job.Then(GetAndWrite);
}

void PrepareGetEx(Job& job) {
  const auto& words = job.words();
  if (words.size() == 2) return job.Then(GetWithoutChange);
  const std::string option = Upper(words[2]);
  const auto unit = UnitOf(option);
  if (words.size() == 3 && option == "PERSIST") return job.Then(GetAndWrite);
  if (words.size() != 4 || !unit) return SyntaxError(job);
  if (!TakeTtl(job, words[3], *unit)) {
    // As in Redis, this is no error if there is no such key.
    std::string_view error = job.reply;
    job.scratch.value.assign(error.substr(1, error.size() - 3));
    job.reply.clear();
  }
  job.scratch.ttl = job.scratch.put.ttl;
  job.Then(job.scratch.over || !job.scratch.value.empty() ? GetAndWrite : GetEx);
}

void PrepareAppend(Job& job) {
  job.scratch.brings = job.words()[2].size();
  job.Then(Append);
}

void PrepareCount(Job& job) {
  const auto& words = job.words();
  const bool subtracts = Upper(words[0]).starts_with("DECR");
  int64_t delta = 1;
  if (words.size() == 3 && !ParseInteger(words[2], &delta)) return Fail(job, kNoInteger);
  if (subtracts && delta == std::numeric_limits<int64_t>::min()) {
    return Fail(job, "ERR decrement would overflow");
  }
  job.scratch.delta = static_cast<uint64_t>(subtracts ? -delta : delta);
  job.Then(Count);
}

}  // namespace gannet::proxy::redis
