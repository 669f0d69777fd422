// The writes of memcached's commands, as stages. If the store has no such operation, the command is
// a Get and a Put that happens only if the item still has the version that was read. It is tried
// again until nobody was in between.

#include <gannet/client.h>

#include <limits>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/layout/item.h"
#include "proxy/jobs/memcached_commands.h"

namespace gannet::proxy::memcached {
namespace {

using Kind = Operation::Kind;
using absl::StatusCode;

void EndOfWrite(Job& job) {
  const Operation& write = job.answer();
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

// --- append, prepend ---

void ReadToExtend(Job& job);

void ExtensionWritten(Job& job) {
  const bool others_wrote = job.answer().code == StatusCode::kFailedPrecondition;
  if (!others_wrote || job.scratch.put.only_if_version || !job.TryAgain()) return EndOfWrite(job);
  ReadToExtend(job);
}

void WriteExtension(Job& job) {
  const Operation& got = job.answer();
  if (got.code != StatusCode::kOk) return Fail(job, got);
  const auto& wanted = job.scratch.put.only_if_version;
  if (wanted && *wanted != got.info.version) {
    return Conclude(job, got.found ? Ending::kExists : Ending::kNotFound);
  }
  std::string& value = job.scratch.value;
  PutOptions put;
  if (got.found) {
    value.assign(got.found_value());
    put.flags = got.info.flags;
    put.ttl = got.ttl_left();
  } else if (job.scratch.put.only_if_present) {
    return Conclude(job, Ending::kNotStored);
  } else {
    value.clear();
    put = job.scratch.put;
  }
  put.only_if_present = false;
  put.only_if_version = got.info.version;
  value.insert(job.scratch.is_prefix ? 0 : value.size(), job.data());
  if (value.size() > kValueBytesMax) {
    if (job.scratch.is_binary) return binary::RefuseWrite(job, /*is_too_large=*/true);
    job.reply = "SERVER_ERROR object too large for cache\r\n";
    return;
  }
  Operation& write = job.Begin(Kind::kPut, job.keys[0]);
  write.value = value;
  write.put = put;
  job.Then(ExtensionWritten);
}

void ReadToExtend(Job& job) {
  job.Begin(Kind::kGet, job.keys[0]);
  job.Then(WriteExtension);
}

void Extended(Job& job) {
  // The store extends only values of up to 1 MiB.
  if (job.answer().code == StatusCode::kOutOfRange) return ReadToExtend(job);
  EndOfWrite(job);
}

// --- incr, decr ---

void ReadToCount(Job& job);

// Returns the sum as memcached makes it: 64 bits without a sign. It wraps around above, and stops
// at 0 below.
uint64_t Sum(uint64_t number, const Job& job) {
  const uint64_t delta = job.scratch.delta;
  if (!job.scratch.is_subtraction) return number + delta;
  return number < delta ? 0 : number - delta;
}

void CountWritten(Job& job) {
  const Operation& write = job.answer();
  if (write.code == StatusCode::kOk) return CountDone(job, job.scratch.value, write.info);
  const bool others_wrote =
      write.code == StatusCode::kFailedPrecondition && !job.scratch.put.only_if_version;
  if (others_wrote && job.TryAgain()) return ReadToCount(job);
  EndOfWrite(job);
}

void WriteCount(Job& job, uint64_t number, const PutOptions& put) {
  job.scratch.value = std::to_string(number);
  Operation& write = job.Begin(Kind::kPut, job.keys[0]);
  write.value = job.scratch.value;
  write.put = put;
  job.Then(CountWritten);
}

void CountRead(Job& job) {
  const Operation& got = job.answer();
  if (got.code != StatusCode::kOk) return Fail(job, got);
  const auto& wanted = job.scratch.put.only_if_version;
  if (wanted && *wanted != got.info.version) {
    return Conclude(job, got.found ? Ending::kExists : Ending::kNotFound);
  }
  PutOptions put;
  put.only_if_version = got.info.version;
  put.ttl = job.scratch.put.ttl;
  if (!got.found) {
    if (!job.scratch.creates) return Conclude(job, Ending::kNotFound);
    return WriteCount(job, job.scratch.initial, put);
  }
  std::string_view digits = got.found_value();
  while (digits.ends_with(' ')) digits.remove_suffix(1);  // of a memcached's decr
  uint64_t number = 0;
  if (!ParseNumber(digits, &number)) {
    if (job.scratch.is_binary) return binary::RefuseWrite(job, /*is_too_large=*/false);
    job.reply = "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n";
    return;
  }
  put.flags = got.info.flags;
  put.ttl = job.scratch.keeps_ttl ? job.scratch.ttl : got.ttl_left();
  WriteCount(job, Sum(number, job), put);
}

void ReadToCount(Job& job) {
  job.Begin(Kind::kGet, job.keys[0]);
  job.Then(CountRead);
}

// The store's counters have a sign. It refuses numbers beyond theirs, which may be right here.
void CountedByStore(Job& job) {
  const Operation& incr = job.answer();
  switch (incr.code) {
    case StatusCode::kOk:
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
                        !job.scratch.put.only_if_version &&
                        job.scratch.delta <= uint64_t{std::numeric_limits<int64_t>::max()};
  if (!by_store) return ReadToCount(job);
  Operation& incr = job.Begin(Kind::kIncr, job.keys[0]);
  incr.delta = static_cast<int64_t>(job.scratch.delta);
  incr.put.only_if_present = true;
  job.Then(CountedByStore);
}

}  // namespace gannet::proxy::memcached
