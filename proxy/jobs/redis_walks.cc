// Redis' KEYS and SCAN, and FLUSHDB and DBSIZE if there are several databases: walks through the
// servers' keys by READs, one server after another.
//
// A cursor of SCAN is the position in a server's walk, times the number of servers, plus the
// server's number. So the proxy need not remember cursors, and they never expire. They are below
// 2^53, which JavaScript's numbers keep, and are small while there are few keys.

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proxy/jobs/redis_commands.h"
#include "proxy/jobs/store_error.h"

namespace gannet::proxy::redis {
namespace {

using Kind = Operation::Kind;
using absl::StatusCode;

constexpr uint64_t kCursorEnd = uint64_t{1} << 53;
constexpr uint64_t kCountMax = 10'000;
// The most READs of one SCAN, if there are few keys, or few match.
constexpr uint64_t kScanReadsMax = 1'000;

void FailWalk(Job& job, const Operation& walk) {
  const bool is_told = walk.code == StatusCode::kOutOfRange;
  Fail(job, absl::StrCat("ERR ", is_told ? walk.refusal : ServerErrorText(walk)));
}

// --- KEYS ---

// Returns how many keys were found. Returns nullopt, and replies, if a walk failed.
std::optional<size_t> CountFound(Job& job) {
  size_t count = 0;
  for (Operation& walk : job.answers()) {
    if (walk.code != StatusCode::kOk) return FailWalk(job, walk), std::nullopt;
    // A walk may show a key more than once.
    std::sort(walk.keys.begin(), walk.keys.end());
    walk.keys.erase(std::unique(walk.keys.begin(), walk.keys.end()), walk.keys.end());
    count += walk.keys.size();
  }
  return count;
}

void KeysCounted(Job& job) {
  const std::optional<size_t> count = CountFound(job);
  if (count) Reply(job).Integer(static_cast<int64_t>(*count));
}

void KeysFound(Job& job) {
  const std::optional<size_t> count = CountFound(job);
  if (!count) return;
  RespReply reply = Reply(job);
  reply.Array(*count);
  for (const Operation& walk : job.answers()) {
    for (const std::string& key : walk.keys) reply.Bulk(key);
  }
}

void BeginWalks(Job& job, std::string_view pattern) {
  job.BeginOnEach(Kind::kWalk);
  for (Operation& walk : job.answers()) {
    walk.key = pattern;
    walk.database = job.scratch.database;
    walk.room = Operation::kWalkRoomMin;
    walk.part.items_min = walk.part.reads_max = std::numeric_limits<uint64_t>::max();
  }
}

void FindKeys(Job& job) {
  BeginWalks(job, job.words()[1]);
  job.Then(KeysFound);
}

// --- SCAN ---

// Returns where to go on behind a part of a walk; 0: nowhere.
uint64_t NextCursor(const Job& job, const Operation& walk) {
  const uint64_t servers = job.service->servers.size();
  if (walk.part.position != 0) return walk.part.position * servers + walk.server;
  return walk.server + 1 < servers ? walk.server + 1 : 0;
}

void Scanned(Job& job) {
  const Operation& walk = job.answer();
  if (walk.code != StatusCode::kOk) return FailWalk(job, walk);
  RespReply reply = Reply(job);
  reply.Array(2);
  reply.Bulk(absl::StrCat(NextCursor(job, walk)));
  reply.Array(walk.keys.size());
  for (const std::string& key : walk.keys) reply.Bulk(key);
}

void WalkPart(Job& job) {
  const uint64_t cursor = job.scratch.initial;
  Operation& walk = job.Begin(Kind::kWalk, job.scratch.word);
  const uint64_t servers = job.service->servers.size();
  walk.database = job.scratch.database;
  walk.server = static_cast<uint32_t>(cursor % servers);
  walk.room = Operation::kWalkRoomMin;
  walk.part = {
      .position = cursor / servers, .items_min = job.scratch.delta, .reads_max = kScanReadsMax};
}

void Scan(Job& job) {
  WalkPart(job);
  job.Then(Scanned);
}

// --- FLUSHDB of one database of several ---

void PartFlushed(Job& job) {
  for (const Operation& removed : job.answers()) {
    if (removed.code != StatusCode::kOk) return Fail(job, removed);
  }
  if (job.scratch.initial == 0) return Reply(job).Simple("OK");
  FlushDatabase(job);
}

void FlushPart(Job& job) {
  Operation& walk = job.answer();
  if (walk.code != StatusCode::kOk) return FailWalk(job, walk);
  job.scratch.initial = NextCursor(job, walk);
  std::vector<std::string>& keys = job.scratch.found_keys = std::move(walk.keys);
  const Database& database = job.scratch.database;
  for (std::string& key : keys) {
    if (database.number > 0) key = database.KeyOf(key);
    job.Begin(Kind::kDelete, key);
  }
  if (keys.empty()) {
    return job.scratch.initial == 0 ? Reply(job).Simple("OK") : FlushDatabase(job);
  }
  job.Then(PartFlushed);
}

// Takes MATCH, COUNT and TYPE. Returns false, and replies, if they are wrong.
bool TakeScanOptions(Job& job) {
  const auto& words = job.words();
  int64_t count = 10;
  for (size_t i = 2; i < words.size(); i += 2) {
    const std::string option = Upper(words[i]);
    if (i + 1 == words.size()) return SyntaxError(job), false;
    if (option == "MATCH") {
      job.scratch.word = words[i + 1];
    } else if (option == "TYPE") {
      job.scratch.over = Upper(words[i + 1]) != "STRING";  // no key is of another type
    } else if (option != "COUNT" || !ParseInteger(words[i + 1], &count) || count < 1) {
      return SyntaxError(job), false;
    }
  }
  job.scratch.delta = std::min(static_cast<uint64_t>(count), kCountMax);
  return true;
}

}  // namespace

void PrepareKeys(Job& job) {
  job.scratch.database = job.client->database;
  job.Then(FindKeys);
}

void CountKeys(Job& job) {
  BeginWalks(job, "*");
  job.Then(KeysCounted);
}

void FlushDatabase(Job& job) {
  constexpr uint64_t kKeysAtOnce = 1000;
  job.scratch.word = "*";
  job.scratch.delta = kKeysAtOnce;
  WalkPart(job);
  job.Then(FlushPart);
}

void PrepareScan(Job& job) {
  uint64_t cursor = 0;
  if (!ParseNumber(job.words()[1], &cursor) || cursor >= kCursorEnd) {
    return Fail(job, "ERR invalid cursor");
  }
  job.scratch.word = "*";
  job.scratch.database = job.client->database;
  if (!TakeScanOptions(job)) return;
  job.scratch.initial = cursor;
  if (!job.scratch.over) return job.Then(Scan);
  RespReply reply = Reply(job);
  reply.Array(2);
  reply.Bulk("0");
  reply.Array(0);
}

}  // namespace gannet::proxy::redis
