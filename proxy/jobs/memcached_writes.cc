// The writes of memcached commands, as stages. If the store has no such operation, the command is a
// ReadModifyWrite.

#include <gannet/client.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "common/layout/item.h"
#include "proxy/jobs/memcached_commands.h"
#include "proxy/jobs/read_modify_write.h"

namespace gannet::proxy::memcached {
namespace {

using Kind = Operation::Kind;
using absl::StatusCode;

void CountCas(Job& job) {
  const Operation& write = job.answer();
  if (write.code == StatusCode::kOk) job.counters->cas_hits.Add();
  if (write.code != StatusCode::kFailedPrecondition) return;
  (write.info.version == 0 ? job.counters->cas_misses : job.counters->cas_badval).Add();
}

void EndOfWrite(Job& job) {
  const Operation& write = job.answer();
  if (job.scratch.put.only_if_version) CountCas(job);
  switch (write.code) {
    case StatusCode::kOk:
      return Conclude(job, Ending::kStored);
    case StatusCode::kAlreadyExists:
    case StatusCode::kNotFound:
      return Conclude(job, Ending::kNotStored);
    case StatusCode::kFailedPrecondition:
      return Conclude(job, write.info.version == 0 ? Ending::kNotFound : Ending::kExists);
    default:
      return Fail(job, write);
  }
}

// If an item's time is over before it is stored, it is stored all the same, but nobody sees it.
void Stored(Job& job) {
  const bool stored = job.answer().code == StatusCode::kOk;
  const uint64_t version = job.answer().info.version;
  EndOfWrite(job);
  if (!stored || !job.scratch.over) return;
  job.Begin(Kind::kDelete, job.keys[0]).put.only_if_version = version;
  job.Then(Ignore);
}

// Concludes the job if the command wants another version than that of the item that was read. As in
// memcached, the version is not looked at if there is no item.
bool IsOtherVersion(Job& job, const Operation& got) {
  const auto& wanted = job.scratch.put.only_if_version;
  if (!got.found || !wanted || *wanted == got.info.version) return false;
  Conclude(job, Ending::kExists);
  return true;
}

// --- append, prepend ---

std::optional<std::string_view> Extension(Job& job, const Operation& got, PutOptions& put) {
  if (IsOtherVersion(job, got)) return std::nullopt;
  std::string& value = job.scratch.value;
  const std::string_view old = got.found ? got.found_value() : std::string_view();
  if (!got.found) {
    if (job.scratch.put.only_if_present) {
      Conclude(job, Ending::kNotStored);
      return std::nullopt;
    }
    put.flags = job.scratch.put.flags;
    put.ttl = job.scratch.put.ttl;
  }
  value.reserve(old.size() + job.data().size());
  value.assign(old).insert(job.scratch.is_prefix ? 0 : old.size(), job.data());
  if (value.size() <= kValueBytesMax) return value;
  if (job.scratch.is_binary) {
    binary::RefuseWrite(job, /*is_too_large=*/true);
  } else {
    job.reply = "SERVER_ERROR object too large for cache\r\n";
  }
  return std::nullopt;
}

void ReadToExtend(Job& job) {
  job.scratch.brings = job.data().size();
  ReadModifyWrite(job, Extension, EndOfWrite);
}

void Extended(Job& job) {
  // The store extends only values of up to 1 MiB.
  if (job.answer().code == StatusCode::kOutOfRange) return ReadToExtend(job);
  EndOfWrite(job);
}

// --- incr, decr ---

// Returns the sum as memcached makes it: 64 bits without a sign. It wraps around above, and stops
// at 0 below.
uint64_t Sum(uint64_t number, const Job& job) {
  const uint64_t delta = job.scratch.delta;
  if (!job.scratch.is_subtraction) return number + delta;
  return number < delta ? 0 : number - delta;
}

// As memcached: there may be blanks before the digits, and anything behind them after a blank.
bool ParseCount(std::string_view text, uint64_t* number) {
  constexpr char kBlanks[] = " \t\n\v\f\r";
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  if (text.starts_with('+')) text.remove_prefix(1);
  return ParseNumber(text.substr(0, text.find_first_of(kBlanks)), number);
}

void RefuseNumber(Job& job) {
  if (job.scratch.is_binary) return binary::RefuseWrite(job, /*is_too_large=*/false);
  job.reply = "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n";
}

std::optional<std::string_view> NewCount(Job& job, const Operation& got, PutOptions& put) {
  if (IsOtherVersion(job, got)) return std::nullopt;
  if (!got.found) {
    if (!job.scratch.creates) {
      Conclude(job, Ending::kNotFound);
      return std::nullopt;
    }
    put.ttl = job.scratch.ttl = job.scratch.put.ttl;
    return job.scratch.value = std::to_string(job.scratch.initial);
  }
  uint64_t number = 0;
  if (ParseCount(got.found_value(), &number)) {
    if (job.scratch.keeps_ttl) put.ttl = job.scratch.wanted_ttl;
    job.scratch.ttl = put.ttl;
    return job.scratch.value = std::to_string(Sum(number, job));
  }
  RefuseNumber(job);
  return std::nullopt;
}

void CountWritten(Job& job) {
  const Operation& write = job.answer();
  if (write.code == StatusCode::kOk) {
    // A Put does not tell how long its item lives.
    ItemInfo info = write.info;
    info.ttl_left = job.scratch.ttl;
    info.expiry_ms = info.ttl_left.count() > 0 ? 1 : 0;
    return CountDone(job, job.scratch.value, info);
  }
  EndOfWrite(job);
}

void ReadToCount(Job& job) { ReadModifyWrite(job, NewCount, CountWritten); }

// The counters of the store have a sign, and a negative one is no number here. So it is counted
// back if nobody has written it meanwhile.
void CountBack(Job& job) {
  const uint64_t version = job.answer().info.version;
  Operation& incr = job.Begin(Kind::kIncr, job.keys[0]);
  incr.delta = -static_cast<int64_t>(job.scratch.delta);
  incr.put.only_if_version = version;
  job.Then(RefuseNumber);
}

// The store refuses numbers beyond its own, which may be right here.
void CountedByStore(Job& job) {
  const Operation& incr = job.answer();
  switch (incr.code) {
    case StatusCode::kOk:
      if (incr.number < static_cast<int64_t>(job.scratch.delta)) return CountBack(job);
      return CountDone(job, absl::StrCat(incr.number), incr.info);
    case StatusCode::kNotFound:
      if (job.scratch.creates) return ReadToCount(job);
      return Conclude(job, Ending::kNotFound);
    case StatusCode::kOutOfRange:
    case StatusCode::kFailedPrecondition:
      return ReadToCount(job);
    default:
      return Fail(job, incr);
  }
}

void Removed(Job& job) {
  const Operation& removed = job.answer();
  if (removed.code == StatusCode::kFailedPrecondition) {
    return Conclude(job, removed.info.version == 0 ? Ending::kNotFound : Ending::kExists);
  }
  if (removed.code != StatusCode::kOk) return Fail(job, removed);
  Conclude(job, removed.found ? Ending::kDeleted : Ending::kNotFound);
}

}  // namespace

void Store(Job& job) {
  Operation& put = job.Begin(Kind::kPut, job.keys[0]);
  put.value = job.data();
  put.put = job.scratch.put;
  job.Then(Stored);
}

void Extend(Job& job) {
  if (job.data().size() > Client::kPieceBytesMax || job.scratch.put.only_if_version) {
    return ReadToExtend(job);
  }
  const Kind kind = job.scratch.is_prefix ? Kind::kPrepend : Kind::kAppend;
  Operation& piece = job.Begin(kind, job.keys[0]);
  piece.value = job.data();
  piece.put = job.scratch.put;
  job.Then(Extended);
}

void Remove(Job& job) {
  job.Begin(Kind::kDelete, job.keys[0]).put.only_if_version = job.scratch.put.only_if_version;
  job.Then(Removed);
}

void Count(Job& job) {
  const bool by_store = !job.scratch.is_subtraction && !job.scratch.keeps_ttl &&
                        !job.scratch.asks_ttl && !job.scratch.put.only_if_version &&
                        job.scratch.delta <= uint64_t{std::numeric_limits<int64_t>::max()};
  if (!by_store) return ReadToCount(job);
  Operation& incr = job.Begin(Kind::kIncr, job.keys[0]);
  incr.delta = static_cast<int64_t>(job.scratch.delta);
  incr.put.only_if_present = true;
  job.Then(CountedByStore);
}

}  // namespace gannet::proxy::memcached
