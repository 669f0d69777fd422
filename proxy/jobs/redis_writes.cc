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

void SetDone(Job& job) {
  const Operation& put = job.answer();
  switch (put.code) {
    case StatusCode::kOk:
      return EndOfSet(job, true);
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
  if (got.found) job.scratch.old_value.assign(got.found_value());
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
  const auto ms = MsFromNow(job, word, unit);
  if (!ms) return false;
  int64_t number = 0;
  ParseNumber(word, &number);
  if (number <= 0) {
    Fail(job, absl::StrCat("ERR invalid expire time in '",
                           absl::AsciiStrToLower(Upper(job.words()[0])), "' command"));
    return false;
  }
  // The moment is past, so the item is gone at once.
  job.scratch.put.ttl = milliseconds(std::max<int64_t>(*ms, 1));
  return true;
}

bool TakeSetOptions(Job& job) {
  const auto& words = job.words();
  PutOptions& put = job.scratch.put;
  bool has_ttl = false;
  for (size_t i = 3; i < words.size(); ++i) {
    const std::string option = Upper(words[i]);
    const auto unit = UnitOf(option);
    if (unit && !has_ttl && i + 1 < words.size()) {
      if (!TakeTtl(job, words[++i], *unit)) return false;
      has_ttl = true;
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
      (put.only_if_absent && put.only_if_present) || (has_ttl && job.scratch.keeps_ttl);
  if (contradicts) SyntaxError(job);
  return !contradicts;
}

// --- APPEND ---

void AppendMeasured(Job& job) {
  const Operation& got = job.answer();
  if (got.code != StatusCode::kOk) return Fail(job, got);
  ReplyInteger(job, got.found ? got.info.value_bytes : 0);
}

std::optional<std::string_view> Appendix(Job& job, const Operation& got, PutOptions&) {
  std::string& value = job.scratch.value;
  value.assign(got.found ? got.found_value() : std::string_view());
  return value.append(job.words()[2]);
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

void GetDel(Job& job);

void GetDelDone(Job& job) {
  const Operation& removed = job.answer();
  const bool others_wrote = removed.code == StatusCode::kFailedPrecondition ||
                            (removed.code == StatusCode::kOk && !removed.found);
  if (others_wrote && job.TryAgain()) return GetDel(job);
  if (removed.code != StatusCode::kOk) return Fail(job, removed);
  Reply(job).Bulk(job.scratch.old_value);
}

void GetDelRead(Job& job) {
  const Operation& got = job.answer();
  if (got.code != StatusCode::kOk || !got.found) return ReplyGot(job);
  job.scratch.old_value.assign(got.found_value());
  const uint64_t version = got.info.version;
  job.Begin(Kind::kDelete, job.keys[0]).put.only_if_version = version;
  job.Then(GetDelDone);
}

void GetDel(Job& job) {
  job.Begin(Kind::kGet, job.keys[0]);
  job.Then(GetDelRead);
}

void GetEx(Job& job) {
  if (job.scratch.over) return GetDel(job);
  const bool touches = job.words().size() > 2;
  job.Begin(touches ? Kind::kGetAndTouch : Kind::kGet, job.keys[0]).put.ttl = job.scratch.ttl;
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
  if (reads) job.access = Access::kSteps;
  job.Then(reads ? SetReadFirst : Set);
}

void PrepareGetDel(Job& job) { job.Then(GetDel); }

void PrepareGetEx(Job& job) {
  const auto& words = job.words();
  if (words.size() > 2) {
    const std::string option = Upper(words[2]);
    const auto unit = UnitOf(option);
    if (words.size() == 4 && unit) {
      if (!TakeTtl(job, words[3], *unit)) return;
      job.scratch.ttl = job.scratch.put.ttl;
    } else if (words.size() != 3 || option != "PERSIST") {
      return SyntaxError(job);
    }
  }
  job.Then(GetEx);
}

void PrepareAppend(Job& job) { job.Then(Append); }

void PrepareCount(Job& job) {
  const auto& words = job.words();
  const bool subtracts = Upper(words[0]).starts_with("DECR");
  int64_t delta = 1;
  if (words.size() == 3 && !ParseNumber(words[2], &delta)) return Fail(job, kNoInteger);
  if (subtracts && delta == std::numeric_limits<int64_t>::min()) {
    return Fail(job, "ERR decrement would overflow");
  }
  job.scratch.delta = static_cast<uint64_t>(subtracts ? -delta : delta);
  job.Then(Count);
}

}  // namespace gannet::proxy::redis
