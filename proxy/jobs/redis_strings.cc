// Commands of Redis on parts of values, and on several keys that depend on each other. If the store
// has no such operation, the command is a ReadModifyWrite. RENAME is a Get, a Put, and a Delete
// that happens only if the item still has the version that was read.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/layout/item.h"
#include "proxy/jobs/read_modify_write.h"
#include "proxy/jobs/redis_commands.h"

namespace gannet::proxy::redis {
namespace {

using Kind = Operation::Kind;
using absl::StatusCode;

constexpr char kTooLong[] = "ERR string exceeds maximum allowed size (64 MiB)";

// --- GETRANGE ---

void RangeGot(Job& job) {
  const Operation& got = job.answer();
  if (got.code != StatusCode::kOk) return Fail(job, got);
  const std::string_view value = got.found ? got.found_value() : std::string_view();
  const auto size = static_cast<int64_t>(value.size());
  int64_t start = static_cast<int64_t>(job.scratch.initial);
  int64_t end = static_cast<int64_t>(job.scratch.delta);
  if (start < 0 && end < 0 && start > end) return Reply(job).Bulk("");
  if (start < 0) start = std::max<int64_t>(start + size, 0);
  if (end < 0) end = std::max<int64_t>(end + size, 0);
  end = std::min(end, size - 1);
  if (start > end) return Reply(job).Bulk("");
  Reply(job).Bulk(value.substr(static_cast<size_t>(start), static_cast<size_t>(end - start + 1)));
}

void Range(Job& job) {
  job.Begin(Kind::kGet, job.keys[0]);
  job.Then(RangeGot);
}

// --- SETRANGE, INCRBYFLOAT ---

std::optional<std::string_view> Overwritten(Job& job, const Operation& got, PutOptions&) {
  const std::string_view old = got.found ? got.found_value() : std::string_view();
  const std::string_view piece = job.words()[3];
  if (piece.empty()) {
    Reply(job).Integer(static_cast<int64_t>(old.size()));
    return std::nullopt;
  }
  std::string& value = job.scratch.value;
  value.reserve(std::max<size_t>(old.size(), job.scratch.delta + piece.size()));
  value.assign(old);
  value.resize(std::max<size_t>(old.size(), job.scratch.delta + piece.size()));
  return value.replace(job.scratch.delta, piece.size(), piece);
}

void OverwriteWritten(Job& job) {
  if (job.answer().code != StatusCode::kOk) return Fail(job, job.answer());
  Reply(job).Integer(static_cast<int64_t>(job.scratch.value.size()));
}

void Overwrite(Job& job) { ReadModifyWrite(job, Overwritten, OverwriteWritten); }

// Returns false if the whole word is not a number.
bool ParseFloat(std::string_view word, long double* number) {
  constexpr size_t kCharactersMax = 256;
  if (word.empty() || word.size() > kCharactersMax ||
      absl::ascii_isspace(static_cast<unsigned char>(word[0])))
    return false;
  const std::string text(word);
  char* end = nullptr;
  *number = std::strtold(text.c_str(), &end);
  return end == text.c_str() + text.size() && !std::isnan(*number);
}

// Writes the number as Redis does: at most 17 digits behind the point, and no zeros at the end.
std::string FloatText(long double number) {
  char text[5 * 1024];
  std::string digits(text,
                     static_cast<size_t>(std::snprintf(text, sizeof(text), "%.17Lf", number)));
  digits.erase(digits.find_last_not_of('0') + 1);
  if (digits.ends_with('.')) digits.pop_back();
  return digits == "-0" ? "0" : digits;
}

std::optional<std::string_view> FloatSum(Job& job, const Operation& got, PutOptions&) {
  long double sum = 0;
  long double delta = 0;
  if (!ParseFloat(got.found ? got.found_value() : "0", &sum) ||
      !ParseFloat(job.words()[2], &delta)) {
    Fail(job, "ERR value is not a valid float");
    return std::nullopt;
  }
  sum += delta;
  if (std::isnan(sum) || std::isinf(sum)) {
    Fail(job, "ERR increment would produce NaN or Infinity");
    return std::nullopt;
  }
  return job.scratch.value = FloatText(sum);
}

void FloatWritten(Job& job) {
  if (job.answer().code != StatusCode::kOk) return Fail(job, job.answer());
  Reply(job).Bulk(job.scratch.value);
}

void AddFloat(Job& job) { ReadModifyWrite(job, FloatSum, FloatWritten); }

// --- MSETNX ---

void SetAbsent(Job& job);

void TakenBack(Job& job) { Reply(job).Integer(0); }

// Another client made one of the keys. Removes those that this command made, unless others have
// changed them meanwhile.
void TakeBack(Job& job) {
  std::vector<std::pair<std::string_view, uint64_t>> made;
  for (const Operation& put : job.answers()) {
    if (put.code == StatusCode::kOk) made.emplace_back(put.key, put.info.version);
  }
  for (const auto& [key, version] : made) {
    job.Begin(Kind::kDelete, key).put.only_if_version = version;
  }
  job.Then(TakenBack);
}

void AbsentSet(Job& job) {
  bool all = true;
  for (const Operation& put : job.answers()) {
    if (put.code == StatusCode::kAlreadyExists) return TakeBack(job);
    all = all && put.code == StatusCode::kOk;
  }
  if (all) return Reply(job).Integer(1);
  for (const Operation& put : job.answers()) {
    if (put.code != StatusCode::kOk) return Fail(job, put);
  }
}

void AbsentLooked(Job& job) {
  for (const Operation& got : job.answers()) {
    if (got.code != StatusCode::kOk) return Fail(job, got);
    if (got.found) return Reply(job).Integer(0);
  }
  SetAbsent(job);
}

void SetAbsent(Job& job) {
  // If a key is named twice, its last value counts, as in Redis.
  for (size_t i = 0; i < job.keys.size(); ++i) {
    const auto later = job.keys.begin() + static_cast<ptrdiff_t>(i) + 1;
    if (std::find(later, job.keys.end(), job.keys[i]) != job.keys.end()) continue;
    Operation& put = job.Begin(Kind::kPut, job.keys[i]);
    put.value = job.words()[2 * i + 2];
    put.put.only_if_absent = true;
  }
  job.Then(AbsentSet);
}

void LookForAbsent(Job& job) {
  for (const std::string_view key : job.keys) job.Begin(Kind::kGet, key).wants_value = false;
  job.Then(AbsentLooked);
}

// --- RENAME, RENAMENX, COPY, MOVE ---

void ReadSource(Job& job);

void MovedAway(Job& job) {
  const Operation& removed = job.answer();
  if (removed.others_wrote() && job.TryAgain()) return ReadSource(job);
  if (removed.code != StatusCode::kOk) return Fail(job, removed);
  if (Upper(job.words()[0]) == "RENAME") return Reply(job).Simple("OK");
  Reply(job).Integer(1);
}

void CopyWritten(Job& job) {
  const Operation& put = job.answer();
  if (put.code == StatusCode::kAlreadyExists) return Reply(job).Integer(0);
  if (put.code != StatusCode::kOk) return Fail(job, put);
  if (Upper(job.words()[0]) == "COPY") return Reply(job).Integer(1);
  // If the source changes before it is removed, the next try may replace what this command wrote.
  job.scratch.put.only_if_absent = false;
  job.Begin(Kind::kDelete, job.keys[0]).put.only_if_version = job.scratch.initial;
  job.Then(MovedAway);
}

void SourceRead(Job& job) {
  const Operation& got = job.answer();
  if (got.code != StatusCode::kOk) return Fail(job, got);
  if (!got.found) {
    if (!Upper(job.words()[0]).starts_with("RENAME")) return Reply(job).Integer(0);
    return Fail(job, "ERR no such key");
  }
  if (job.keys[0] == job.keys[1]) {
    if (Upper(job.words()[0]) == "RENAME") return Reply(job).Simple("OK");
    return Reply(job).Integer(0);
  }
  job.scratch.value.assign(got.found_value());
  job.scratch.initial = got.info.version;
  PutOptions options = job.scratch.put;
  options.flags = got.info.flags;
  options.ttl = got.ttl_left();
  Operation& put = job.Begin(Kind::kPut, job.keys[1]);
  put.value = job.scratch.value;
  put.put = options;
  job.Then(CopyWritten);
}

void ReadSource(Job& job) {
  job.Begin(Kind::kGet, job.keys[0]);
  job.Then(SourceRead);
}

// Copies or moves the item to this name in a database.
void CopyTo(Job& job, std::string_view name, Database to) {
  job.keys.resize(1);
  const std::optional<std::string_view> key = KeyIn(job, to, name);
  if (!key) return;
  if (*key == job.keys[0]) return Fail(job, "ERR source and destination objects are the same");
  job.keys.push_back(*key);
  job.Then(ReadSource);
}

}  // namespace

void PrepareGetRange(Job& job) {
  int64_t start = 0;
  int64_t end = 0;
  if (!ParseInteger(job.words()[2], &start) || !ParseInteger(job.words()[3], &end)) {
    return Fail(job, kNoInteger);
  }
  job.scratch.initial = static_cast<uint64_t>(start);
  job.scratch.delta = static_cast<uint64_t>(end);
  job.Then(Range);
}

void PrepareSetRange(Job& job) {
  int64_t offset = 0;
  if (!ParseInteger(job.words()[2], &offset)) return Fail(job, kNoInteger);
  if (offset < 0) return Fail(job, "ERR offset is out of range");
  const auto most = static_cast<int64_t>(kValueBytesMax - job.words()[3].size());
  if (offset > most) return Fail(job, kTooLong);
  job.scratch.delta = static_cast<uint64_t>(offset);
  job.scratch.brings = job.scratch.delta + job.words()[3].size();
  job.counters->sets.Add();
  job.Then(Overwrite);
}

void PrepareIncrByFloat(Job& job) { job.Then(AddFloat); }

void PrepareMsetNx(Job& job) {
  if (job.words().size() % 2 == 0) {
    return Fail(job, "ERR wrong number of arguments for 'msetnx' command");
  }
  if (job.keys.size() > kMsetNxKeysMax) {
    return Fail(job, absl::StrCat("ERR MSETNX takes at most ", kMsetNxKeysMax, " keys here"));
  }
  job.counters->sets.Add(job.keys.size());
  job.Then(LookForAbsent);
}

void PrepareRename(Job& job) {
  job.scratch.put.only_if_absent = Upper(job.words()[0]) == "RENAMENX";
  job.Then(ReadSource);
}

void PrepareCopy(Job& job) {
  const auto& words = job.words();
  Database to = job.client->database;
  bool replaces = false;
  for (size_t i = 3; i < words.size(); ++i) {
    const std::string option = Upper(words[i]);
    if (option == "DB" && i + 1 < words.size()) {
      if (!TakeDatabase(job, words[++i], &to)) return;
    } else if (option == "REPLACE") {
      replaces = true;
    } else {
      return SyntaxError(job);
    }
  }
  job.scratch.put.only_if_absent = !replaces;
  CopyTo(job, words[2], to);
}

void PrepareMove(Job& job) {
  Database to = job.client->database;
  if (!TakeDatabase(job, job.words()[2], &to)) return;
  job.scratch.put.only_if_absent = true;
  CopyTo(job, job.words()[1], to);
}

}  // namespace gannet::proxy::redis
